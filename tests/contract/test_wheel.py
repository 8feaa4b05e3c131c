"""The wheel: pure, complete, and the same whether the build backend or `host/wheel.py` packs it."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from webgpu_py.host.wheel import build_wheel

ROOT = Path(__file__).resolve().parents[2]


def content(path):
    with zipfile.ZipFile(path) as opened:
        return {n: opened.read(n) for n in opened.namelist() if ".dist-info/" not in n}


@pytest.fixture(scope="module")
def backend_wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("backend")
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return Path(built)


def test_is_pure_and_carries_kernels_pages_and_javascript(backend_wheel):
    assert backend_wheel.name.endswith("-py3-none-any.whl")
    folders = {tuple(name.split("/")[:2]) for name in content(backend_wheel)}
    assert {("webgpu_py", "wgsl"), ("webgpu_py", "js"), ("webgpu_py", "web")} <= folders


def test_both_ways_of_packing_agree(backend_wheel, tmp_path):
    ours = content(build_wheel(tmp_path).path)
    theirs = content(backend_wheel)
    assert sorted(ours) == sorted(theirs)
    assert ours == theirs


def test_ours_has_the_metadata_that_pip_and_micropip_read(tmp_path):
    with zipfile.ZipFile(build_wheel(tmp_path).path) as opened:
        (name,) = (n for n in opened.namelist() if n.endswith(".dist-info/METADATA"))
        text = opened.read(name).decode()
    head = text.partition("\n\n")[0].splitlines()
    assert "Name: webgpu-py" in head
    assert {"Requires-Dist: numpy>=1.26", "Requires-Dist: flatbuffers>=24.3"} <= set(head)


def test_an_unchanged_tree_gives_an_unchanged_wheel(tmp_path):
    first = build_wheel(tmp_path / "a").path.read_bytes()
    assert build_wheel(tmp_path / "b").path.read_bytes() == first


def test_unpacked_wheel_finds_its_own_files_and_not_the_checkouts(backend_wheel, tmp_path):
    with zipfile.ZipFile(backend_wheel) as opened:
        opened.extractall(tmp_path)
    code = (
        "import webgpu_py.assets as a\n"
        "for folder in ('wgsl', 'js', 'web'):\n"
        "    names = a.list_assets(folder)\n"
        "    assert names and a.asset_bytes(names[0])\n"
        "    print(a.asset_path(folder))\n"
    )
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{code}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = [Path(line) for line in done.stdout.split()]
    assert found == [tmp_path / "webgpu_py" / name for name in ("wgsl", "js", "web")]
