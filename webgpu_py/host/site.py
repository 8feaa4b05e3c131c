"""The page as a folder of plain files, for any web server and any path on it.

```
index.html                the one file with a fixed name; refers to the others, with their hashes
manifest.json             every file with its bytes and SHA-256
app-<hash>/               pages, worker, the JavaScript half
python-<hash>/            Pyodide, packages, this package's wheel
model-<hash>/             the model, when one is given
```

A folder's hash is of its content, so everything in it may be cached for ever: browsers keep a model
by its address and do not look for another there.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePosixPath
from urllib.parse import quote, urlsplit

from webgpu_py.assets import asset_path, asset_text
from webgpu_py.errors import FormatError
from webgpu_py.host.browser import CONTENT_SECURITY_POLICY
from webgpu_py.host.fetch import sha256_of
from webgpu_py.host.python_files import gather
from webgpu_py.host.urls import PYODIDE_CDN, PYODIDE_VERSION

MANIFEST = "manifest.json"
HASH_DIGITS = 12
DEVELOPMENT_ONLY = (
    "README.md",
    "index.html",
    "package.json",
    "pyodide-lock.json",
    "runner.html",
    "runner.js",
    "remote.js",
    "remote-page.js",
)
FOLDER_PARTS = (".json", ".jinja", ".safetensors")
"""What a page reads of a Hugging Face model's folder."""

_IMPORT = re.compile(r"""(?:from|^import) '(\.{1,2}/[^']+)'""", re.M)
_PLAIN = re.compile(r'(<(?:img src|link rel="icon" href)=")([^":]+)')
_CHECKED = re.compile(r'(<(?:link rel="stylesheet" href|script type="module" src)=")([^":]+)(")')


@dataclass(frozen=True)
class Site:
    """A folder that was built, with its files as the manifest lists them."""

    folder: Path
    files: dict[str, int]
    """Path below the folder -> bytes, `manifest.json` left out."""

    def nbytes(self, top: str = "") -> int:
        """Bytes of the files whose path starts with `top`."""
        return sum(n for path, n in self.files.items() if path.startswith(top))


def build_site(folder: Path, model: Path | str | None, *, bundled: bool) -> Site:
    """Write the page into `folder`, in place of what an earlier build left there.

    `model` is a file or a Hugging Face folder to carry along, an address to load from, or None for
    a page that asks.

    Raises:
        FormatError: `folder` holds other things, or the model is not of a kind that a page opens.
        NetworkError: Pyodide's files cannot be had.
    """
    if isinstance(model, Path):
        _check_model(model)
    _clear(folder)
    staging = folder / "python"
    python = gather(staging, bundled=bundled)
    staging = staging.rename(folder / f"python-{_digest(staging)}")
    app = folder / "app"
    write_app(app, python.module(f"../{staging.name}"))
    app = app.rename(folder / f"app-{_digest(app)}")
    address = _place_model(folder, model)
    page = _page(app, _policy(address, bundled), address)
    (folder / "index.html").write_text(page, encoding="utf-8")
    return _sealed(folder, app.name)


def write_app(folder: Path, python_module: str) -> None:
    """The client, the pages' modules, the worker and the JavaScript half as one folder."""
    ignored = shutil.ignore_patterns(*DEVELOPMENT_ONLY, ".DS_Store")
    shutil.copytree(asset_path("web"), folder, ignore=ignored)
    shutil.copytree(asset_path("js"), folder / "js")
    (folder / "python-files.js").write_text(python_module, encoding="utf-8")


def module_closure(app: Path, *entries: str) -> list[str]:
    """The modules `entries` and all that they import when they load, as paths below `app`."""
    found = list(entries)
    for name in found:
        text = (app / name).read_text(encoding="utf-8")
        for target in _IMPORT.findall(text):
            inner = (app / name).parent.joinpath(target).resolve().relative_to(app.resolve())
            if inner.as_posix() not in found:
                found.append(inner.as_posix())
    return found


def integrity(path: Path) -> str:
    """A file's hash as an `integrity` attribute has it."""
    return f"sha256-{base64.b64encode(bytes.fromhex(sha256_of(path))).decode()}"


def _page(app: Path, policy: str, address: str) -> str:
    text = asset_text("web/index.html")
    text = re.sub(r'data-model="[^"]*"', f'data-model="{html.escape(address)}"', text)
    text = _PLAIN.sub(rf"\1{app.name}/\2", text)

    def hashed(match: re.Match[str]) -> str:
        name = match[2]
        return f'{match[1]}{app.name}/{name}" integrity="{integrity(app / name)}{match[3]}'

    text = _CHECKED.sub(hashed, text)
    head = [f'<meta http-equiv="Content-Security-Policy" content="{policy}" />']
    head += [
        f'<link rel="modulepreload" href="{app.name}/{name}" integrity="{integrity(app / name)}" />'
        for name in module_closure(app, "app.js")[1:]
    ]
    mark = '<meta charset="utf-8" />\n'
    return text.replace(mark, mark + "".join(f"    {line}\n" for line in head), 1)


def _policy(address: str, bundled: bool) -> str:
    parts = urlsplit(address)
    hosts = [f"{parts.scheme}://{parts.netloc}"] if parts.netloc else []
    policy = CONTENT_SECURITY_POLICY
    if not bundled:
        cdn = urlsplit(PYODIDE_CDN)
        hosts.append(f"{cdn.scheme}://{cdn.netloc}")
        policy = policy.replace("script-src 'self'", f"script-src 'self' {hosts[-1]}")
    return policy.replace("connect-src 'self'", " ".join(["connect-src 'self'", *hosts]))


def _check_model(model: Path) -> None:
    if model.is_dir():
        if not (model / "config.json").is_file():
            raise FormatError(
                f"{model}: no config.json; a model's folder has one, with its weights"
            )
        return
    with model.open("rb") as stream:
        start = stream.read(9)
    if start[:4] != b"GGUF" and start[4:6] != b"ET" and start[8:] != b"{":
        raise FormatError(
            f"{model}: begins with {start!r}; a model is a GGUF file (begins with b'GGUF'), "
            "an ExecuTorch program (.pte, b'ET12' at byte 4), a safetensors file that LLM.save "
            "wrote (b'{' at byte 8), or a folder with config.json, tokenizer.json and safetensors"
        )


def _place_model(folder: Path, model: Path | str | None) -> str:
    if not isinstance(model, Path):
        return model or ""
    staging = folder / "model"
    staging.mkdir()
    if model.is_dir():
        (staging / model.resolve().name).mkdir()
        for path in sorted(p for p in model.iterdir() if p.name.endswith(FOLDER_PARTS)):
            shutil.copyfile(path, staging / model.resolve().name / path.name)
        name = f"{quote(model.resolve().name)}/"
    else:
        shutil.copyfile(model, staging / model.name)
        name = quote(model.name)
    placed = staging.rename(folder / f"model-{_digest(staging)}")
    return f"{placed.name}/{name}"


def _clear(folder: Path) -> None:
    """Remove an earlier build, and nothing else."""
    if not folder.exists() or not any(folder.iterdir()):
        folder.mkdir(parents=True, exist_ok=True)
        return
    names = {path.relative_to(folder).as_posix() for path in _files(folder)}
    built = _manifest_names(folder / MANIFEST)
    if not built or names - built:
        seen = ", ".join(sorted(names - built)[:4])
        raise FormatError(
            f"{folder}: holds what no earlier build put there ({seen}); give a folder that is "
            "empty, new, or an earlier build's"
        )
    for name in built:
        (folder / name).unlink(missing_ok=True)
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir()


def _manifest_names(path: Path) -> set[str]:
    if not path.is_file():
        return set()
    try:
        names = [str(entry["path"]) for entry in json.loads(path.read_text("utf-8"))["files"]]
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{path}: is no manifest of a build ({error})") from error
    if any(PurePosixPath(n).is_absolute() or ".." in PurePosixPath(n).parts for n in names):
        raise FormatError(f"{path}: lists files outside its folder; it is no manifest of a build")
    return {*names, MANIFEST}


def _sealed(folder: Path, app: str) -> Site:
    paths = {path.relative_to(folder).as_posix(): path for path in _files(folder)}
    sizes = {name: path.stat().st_size for name, path in paths.items()}
    manifest = {
        "name": "webgpu-py",
        "version": metadata.version("webgpu-py"),
        "pyodide": PYODIDE_VERSION,
        "app": f"{app}/",
        "nbytes": sum(sizes.values()),
        "files": [
            {"path": name, "nbytes": sizes[name], "sha256": sha256_of(path)}
            for name, path in paths.items()
        ],
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    return Site(folder, sizes)


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def _digest(folder: Path) -> str:
    content = [f"{p.relative_to(folder).as_posix()} {sha256_of(p)}\n" for p in _files(folder)]
    return hashlib.sha256("".join(content).encode()).hexdigest()[:HASH_DIGITS]
