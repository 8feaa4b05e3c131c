"""What `LLM.load` is given: one file, or a folder of a model's files, on a disk or a server."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from .bridge import is_offline
from .errors import FormatError, NetworkError
from .formats.safetensors import read_safetensors
from .graph.values import Source
from .models.checkpoint import OPTIONAL, SINGLE, ModelFiles
from .models.packed_file import is_packed
from .models.safetensors_weights import Quantize
from .models.stored_model import StoredModel, checkpoint_model, gguf_model, packed_model
from .program import is_address, open_any
from .sources import BytesSource, FileSource

WEIGHTS, INDEX = ".safetensors", ".safetensors.index.json"
GONE = (404, 410)
UNSURE = (SINGLE, *OPTIONAL)
"""Files that are looked for without a sign that they are there."""


class Folder:
    """A folder on a disk."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._path = path

    async def open(self, name: str) -> Source | None:
        """See ModelFiles."""
        path = self._path / name
        return FileSource(path) if path.is_file() else None


class WebFolder:
    """A folder on a server; `url` ends with a slash."""

    def __init__(self, url: str) -> None:
        self.name = url
        self._url = url

    async def open(self, name: str) -> Source | None:
        """See ModelFiles; NetworkError for any answer but that there is no such file.

        Without a network a file that need not be there and is not kept is not there.
        """
        try:
            return await open_any(urljoin(self._url, name))
        except NetworkError as error:
            if error.status in GONE or (name in UNSURE and is_offline()):
                return None
            raise


class FileSet:
    """Files by name: what was dropped on a page."""

    def __init__(self, files: Mapping[str, Source | bytes]) -> None:
        self.name = "the files"
        self._files = files

    async def open(self, name: str) -> Source | None:
        """See ModelFiles."""
        given = self._files.get(name)
        return BytesSource(given, name) if isinstance(given, bytes) else given


class Noting:
    """Files of a folder, each noted in `opened` for whoever has to close it."""

    def __init__(self, files: ModelFiles, opened: list[Source]) -> None:
        self.name = files.name
        self._files, self._opened = files, opened

    async def open(self, name: str) -> Source | None:
        """See ModelFiles."""
        source = await self._files.open(name)
        if source is not None:
            self._opened.append(source)
        return source


async def open_model(given: Any, quantize: Quantize | None, opened: list[Source]) -> StoredModel:
    """A model from a file, a folder, or several files by name; no weight is read.

    Sources that are opened on the way are added to `opened`, also when it ends in an error.

    A folder is a path of one, an address that ends with a slash, or what a `.safetensors` file or
    an index of several lies in. FormatError, UnsupportedModel.
    """
    files, name = _folder(given)
    if files is None:
        source = await open_any(given)
        if source is not given:
            opened.append(source)
        if not await _is_safetensors(source):
            return await gguf_model(source)
        file = await read_safetensors(source)
        if is_packed(file):
            return await packed_model(file, source)
        raise FormatError(
            f"{source.name}: weights alone are no model — load the folder that they lie in, with "
            "config.json and tokenizer.json, or a file that LLM.save wrote"
        )
    if not isinstance(files, FileSet):
        files = Noting(files, opened)
    if name is not None and name.endswith(WEIGHTS):
        found = await files.open(name)
        if found is None:
            raise FormatError(f"{files.name}: there is no {name}")
        file = await read_safetensors(found)
        if is_packed(file):
            return await packed_model(file, found)
    return await checkpoint_model(files, name, quantize)


def is_folder(given: Any) -> bool:
    """Whether `open_model` takes this for more than one file."""
    return _folder(given)[0] is not None


def _folder(given: Any) -> tuple[ModelFiles | None, str | None]:
    """The folder that is meant, None for one file; and the file of weights where it is named."""
    if isinstance(given, Mapping):
        return FileSet(given), None
    if not isinstance(given, (str, os.PathLike)):
        return None, None
    text = os.fspath(given)
    if os.path.isdir(text):
        return Folder(Path(text)), None
    on_web = is_address(text)
    place = urlsplit(text).path if on_web else text
    if place.endswith((WEIGHTS, INDEX)):
        name = place.rsplit("/", 1)[-1]
        return (WebFolder(_base(text)) if on_web else Folder(Path(text).parent)), name
    return (WebFolder(_base(text)), None) if on_web and place.endswith("/") else (None, None)


def _base(url: str) -> str:
    whole = url.partition("?")[0]
    return whole[: whole.rfind("/") + 1]


async def _is_safetensors(source: Source) -> bool:
    """By its beginning: the length of a header, and the brace that opens it."""
    start = await source.read(0, min(9, source.nbytes))
    return start[:4] != b"GGUF" and start[8:] == b"{"
