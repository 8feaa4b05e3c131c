"""The static folder: complete, hashed, listed, and careful with what was there before."""

import hashlib
import json
import re

import pytest

from tiny_model import tiny_gguf
from webgpu_py.errors import FormatError
from webgpu_py.host import cli
from webgpu_py.host.site import build_site, integrity, module_closure
from webgpu_py.host.urls import PYODIDE_CDN


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "tiny model.gguf"
    path.write_bytes(tiny_gguf())
    return path


@pytest.fixture(scope="module")
def built(tmp_path_factory, tiny):
    return build_site(tmp_path_factory.mktemp("site") / "out", tiny, bundled=True)


@pytest.fixture(scope="module")
def on_cdn(tmp_path_factory):
    return build_site(tmp_path_factory.mktemp("site"), None, bundled=False)


def one(site, pattern):
    (found,) = site.folder.glob(pattern)
    return found


def python_files(site):
    return one(site, "app-*/python-files.js").read_text()


def test_manifest_lists_every_file_with_its_bytes_and_hash(built):
    manifest = json.loads((built.folder / "manifest.json").read_text())
    listed = {f["path"]: (f["nbytes"], f["sha256"]) for f in manifest["files"]}
    found = {}
    for path in built.folder.rglob("*"):
        if path.is_file() and path.name != "manifest.json":
            data = path.read_bytes()
            digest = hashlib.sha256(data).hexdigest()
            found[path.relative_to(built.folder).as_posix()] = (len(data), digest)
    assert listed == found
    assert manifest["nbytes"] == sum(n for n, _ in found.values()) == built.nbytes()
    assert manifest["app"] == one(built, "app-*").name + "/"


def test_everything_the_page_refers_to_is_there_and_pinned(built):
    text = (built.folder / "index.html").read_text()
    refs = dict(re.findall(r'(?:href|src)="([^"#:]+)" integrity="([^"]+)"', text))
    app = one(built, "app-*")
    assert f"{app.name}/app.js" in refs and f"{app.name}/style.css" in refs
    modules = {f"{app.name}/{name}" for name in module_closure(app, "app.js")}
    assert modules <= set(refs) and f"{app.name}/js/device.js" in modules
    for name, value in refs.items():
        digest = hashlib.sha256((built.folder / name).read_bytes()).digest()
        assert value == integrity(built.folder / name), name
        assert len(digest) == 32
    for name in re.findall(r'(?:href|src)="([^"#:]+)"', text):
        assert (built.folder / name).exists(), name
    model = one(built, "model-*/tiny model.gguf")
    assert f'data-model="{model.parent.name}/tiny%20model.gguf"' in text


def test_only_what_a_page_needs_of_python(built):
    names = {p.name.split("-")[0] for p in one(built, "python-*").iterdir()}
    wheels = {"numpy", "flatbuffers", "tiktoken", "regex", "jinja2", "markupsafe", "webgpu_py"}
    assert names == wheels | {
        "pyodide.mjs",
        "pyodide.asm.mjs",
        "pyodide.asm.wasm",
        "python_stdlib.zip",
    }
    assert '"micropip"' not in python_files(built)


def test_cdn_leaves_pyodide_where_it_is_and_pins_it(on_cdn):
    names = {p.name.split("-")[0] for p in one(on_cdn, "python-*").iterdir()}
    assert names == {"flatbuffers", "jinja2", "markupsafe", "webgpu_py"}
    text = python_files(on_cdn)
    assert f'pyodideURL: "{PYODIDE_CDN}"' in text
    assert "e7f8fac36f8bf11085309cbc5c829b3ec3057c18bf1d73b05a6741612d63cdbf" in text
    page = (on_cdn.folder / "index.html").read_text()
    assert "script-src 'self' https://cdn.jsdelivr.net 'wasm-unsafe-eval'" in page
    assert "connect-src 'self' https://cdn.jsdelivr.net;" in page
    assert 'data-model=""' in page
    assert on_cdn.nbytes() < 2_000_000


def test_a_model_elsewhere_is_in_the_policy(tmp_path):
    url = "https://models.example/a/b.gguf?x=1&y=2"
    build_site(tmp_path, url, bundled=False)
    page = (tmp_path / "index.html").read_text()
    assert "connect-src 'self' https://models.example https://cdn.jsdelivr.net;" in page
    assert 'data-model="https://models.example/a/b.gguf?x=1&amp;y=2"' in page


def test_a_models_folder_comes_along_without_what_no_page_reads(tmp_path):
    model = tmp_path / "Tiny-Instruct"
    model.mkdir()
    with pytest.raises(FormatError, match=r"no config\.json"):
        build_site(tmp_path / "out", model, bundled=False)
    parts = ["config.json", "model.safetensors", "tokenizer.json"]
    for name in [*parts, "pytorch_model.bin", "README.md"]:
        (model / name).write_text(name)
    site = build_site(tmp_path / "out", model, bundled=False)
    placed = one(site, "model-*/Tiny-Instruct")
    assert sorted(p.name for p in placed.iterdir()) == parts
    page = (site.folder / "index.html").read_text()
    assert f'data-model="{placed.parent.name}/Tiny-Instruct/"' in page


def test_the_same_again_gives_the_same_names_and_leaves_nothing_old(tmp_path, tiny):
    first = build_site(tmp_path, tiny, bundled=False)
    names = {p.name for p in tmp_path.iterdir()}
    again = build_site(tmp_path, tiny, bundled=False)
    assert again.files == first.files and {p.name for p in tmp_path.iterdir()} == names
    without = build_site(tmp_path, None, bundled=False)
    assert not list(tmp_path.glob("model-*")) and without.nbytes("model-") == 0


def test_another_model_of_the_same_name_has_another_address(tmp_path):
    names = set()
    for seed in (1, 2):
        (tmp_path / "m.gguf").write_bytes(tiny_gguf(seed=seed))
        site = build_site(tmp_path / "out", tmp_path / "m.gguf", bundled=False)
        names.add(one(site, "model-*/m.gguf").parent.name)
    assert len(names) == 2


def test_a_folder_with_other_things_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(FormatError, match=r"thesis\.tex"):
        build_site(tmp_path, None, bundled=False)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("path", ["../precious.txt", "/etc/hosts"])
def test_a_manifest_cannot_point_outside(tmp_path, path):
    (tmp_path / "precious.txt").write_text("precious")
    out = tmp_path / "out"
    out.mkdir()
    (out / "manifest.json").write_text(json.dumps({"files": [{"path": path}]}))
    with pytest.raises(FormatError, match="outside"):
        build_site(out, None, bundled=False)
    assert (tmp_path / "precious.txt").is_file()


def test_command_refuses_what_is_no_model_before_it_writes(tmp_path, capsys):
    text = tmp_path / "notes.gguf"
    text.write_text("<!doctype html>")
    assert cli.main(["build", str(tmp_path / "out"), "--model", str(text)]) == 1
    assert "begins with b'<!doctype'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert cli.main(["build", str(tmp_path / "out"), "--model", str(tmp_path / "none.gguf")]) == 1


def test_command_prints_what_it_weighs(tmp_path, tiny, capsys):
    out = tmp_path / "out"
    assert cli.main(["build", str(out), "--model", str(tiny), "--pyodide", "cdn"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("bytes")[1].split()[0] for line in lines[:3]] == ["page", "Python", "model"]
    files = [p for p in out.rglob("*") if p.is_file() and p.name != "manifest.json"]
    total = sum(p.stat().st_size for p in files)
    assert lines[-1].split()[0] == f"{total:,}"
    assert f"{tiny.stat().st_size:,} bytes  model" in lines[2]
