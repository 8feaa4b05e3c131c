"""Package data is found in an installed package, in a checkout and from an archive."""

import sys
import zipfile

import pytest

from webgpu_py import assets


def make_tree(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


@pytest.fixture
def package_at(monkeypatch):
    def use(path):
        monkeypatch.setattr(assets.resources, "files", lambda _name: path)

    return use


def test_checkout_reads_from_repository_root(tmp_path, package_at):
    make_tree(
        tmp_path,
        {
            "pyproject.toml": "",
            "webgpu_py/js/bridge.js": "js",
            "wgsl/add.wgsl": "add",
            "wgsl/lib/half.wgsl": "half",
        },
    )
    package_at(tmp_path / "webgpu_py")
    assert assets.asset_text("wgsl/add.wgsl") == "add"
    assert assets.asset_bytes("js/bridge.js") == b"js"
    assert assets.list_assets("wgsl") == ["wgsl/add.wgsl", "wgsl/lib/half.wgsl"]
    assert assets.asset_path("wgsl") == tmp_path / "wgsl"


def test_installed_package_wins_and_ignores_its_neighbours(tmp_path, package_at):
    make_tree(tmp_path, {"webgpu_py/wgsl/add.wgsl": "inside", "wgsl/other.wgsl": "outside"})
    package_at(tmp_path / "webgpu_py")
    assert assets.asset_text("wgsl/add.wgsl") == "inside"
    with pytest.raises(FileNotFoundError, match=r"other\.wgsl"):
        assets.asset_text("wgsl/other.wgsl")


def test_archive_is_readable_but_has_no_path(tmp_path, package_at):
    archive = tmp_path / "package.zip"
    with zipfile.ZipFile(archive, "w") as z:
        z.writestr("webgpu_py/wgsl/add.wgsl", "zipped")
    package_at(zipfile.Path(archive, "webgpu_py/"))
    assert assets.asset_text("wgsl/add.wgsl") == "zipped"
    assert assets.list_assets("wgsl") == ["wgsl/add.wgsl"]
    with pytest.raises(FileNotFoundError, match="archive"):
        assets.asset_path("wgsl/add.wgsl")


def test_an_edit_is_seen_at_the_next_call(tmp_path, package_at):
    make_tree(tmp_path, {"webgpu_py/wgsl/add.wgsl": "one"})
    package_at(tmp_path / "webgpu_py")
    assert assets.asset_text("wgsl/add.wgsl") == "one"
    make_tree(tmp_path, {"webgpu_py/wgsl/add.wgsl": "two"})
    assert assets.asset_text("wgsl/add.wgsl") == "two"


def test_missing_asset_names_every_place_tried(tmp_path, package_at):
    make_tree(tmp_path, {"pyproject.toml": "", "webgpu_py/__init__.py": ""})
    package_at(tmp_path / "webgpu_py")
    with pytest.raises(FileNotFoundError) as error:
        assets.asset_text("wgsl/nope.wgsl")
    message = str(error.value)
    assert str(tmp_path / "webgpu_py" / "wgsl" / "nope.wgsl") in message
    assert str(tmp_path / "wgsl" / "nope.wgsl") in message


@pytest.mark.parametrize("name", ["", "/etc/passwd", "wgsl/../x", "graph/values.py", "wgsl\\a"])
def test_names_outside_the_asset_folders_are_refused(name):
    with pytest.raises(ValueError, match="asset name"):
        assets.asset_text(name)


def test_this_checkout_has_its_web_folder():
    assert "web/boot.js" in assets.list_assets("web")
    assert sys.modules["webgpu_py.assets"] is assets
