"""Find the files that travel with the package: `wgsl/` kernels, `js/` and `web/` pages.

An installed wheel carries all three inside the package. A checkout and an editable install keep
`wgsl/` and `web/` beside it, so each name is tried in the package first and in the repository root
second. Nothing is cached: an edited kernel is seen at the next call.
"""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath

ASSET_ROOTS = ("wgsl", "js", "web")


def asset_bytes(name: str) -> bytes:
    """The content of an asset, such as `asset_bytes("web/index.html")`."""
    return _find(name).read_bytes()


def asset_text(name: str) -> str:
    """The UTF-8 text of an asset, such as `asset_text("wgsl/add.wgsl")`."""
    return _find(name).read_text(encoding="utf-8")


def asset_path(name: str) -> Path:
    """Where an asset, or a folder of them, lies on disk.

    Raises:
        FileNotFoundError: there is no such asset, or the package is imported from an archive.
    """
    found = _find(name, folder=True)
    if not isinstance(found, Path):
        raise FileNotFoundError(
            f"asset {name!r} is inside an archive ({found}) and has no path of its own; "
            "use asset_bytes or asset_text, or install the package unpacked"
        )
    return found


def list_assets(folder: str) -> list[str]:
    """The files below an asset folder, as sorted names for the other functions here."""
    prefix = _checked(folder)
    names: list[str] = []
    pending = [(str(prefix), _find(folder, folder=True))]
    while pending:
        path, node = pending.pop()
        for child in node.iterdir():
            name = f"{path}/{child.name}"
            if child.is_dir():
                pending.append((name, child))
            else:
                names.append(name)
    return sorted(names)


def _find(name: str, *, folder: bool = False) -> Traversable:
    parts = _checked(name).parts
    roots = _roots()
    for root in roots:
        node = root.joinpath(*parts)
        if node.is_file() or (folder and node.is_dir()):
            return node
    kind = "folder or file" if folder else "file"
    tried = ", ".join(str(root.joinpath(*parts)) for root in roots)
    raise FileNotFoundError(f"no asset {kind} {name!r}; looked for {tried}")


def _roots() -> list[Traversable]:
    package = resources.files("webgpu_py")
    roots: list[Traversable] = [package]
    if isinstance(package, Path) and (package.parent / "pyproject.toml").is_file():
        roots.append(package.parent)
    return roots


def _checked(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\\" in name:
        raise ValueError(f"asset name {name!r}: expected a relative path such as 'wgsl/add.wgsl'")
    if path.parts[0] not in ASSET_ROOTS:
        allowed = ", ".join(ASSET_ROOTS)
        raise ValueError(f"asset name {name!r}: must begin with one of {allowed}")
    return path
