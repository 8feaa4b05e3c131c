"""A model ready to run as one safetensors file: packed weights, and the small files beside them.

Loading it uploads what it holds and quantizes nothing. It has, under the weights' own names:

| tensor | what it is |
|---|---|
| `NAME.codes` U32 [N, W], `NAME.scales` U32 [words] | a matrix, laid out as `quant.layouts` says |
| `NAME` F32 [n] | a norm weight or bias, as the device has it |
| `files/NAME` U8 [n] | `config.json`, `tokenizer.json` and what else the model's folder had |

`__metadata__` has `webgpu_py.packed`, the version of this layout; `webgpu_py.matrices`, in JSON for
each matrix its type (a name in `quant.LAYOUTS`), its dims and what quantizing it lost; and
`webgpu_py.source`, the SHA-256 of the header or index that the weights were read by.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from math import inf, prod
from typing import Any

import numpy as np

from ..errors import FormatError, ShapeError, UnsupportedModel
from ..formats.bounded_json import parse_json
from ..formats.safetensors import SafetensorsFile, SafetensorsTensor, safetensors_header
from ..graph.builder import Graph, Var
from ..graph.session import Session
from ..graph.values import Constant, Source, TensorSpec
from ..quant.layouts import F32, LAYOUTS, PackedWeight
from ..quant.repack import unpack
from ..quant.snr import Snr
from .safetensors_weights import HEAD, SafetensorsWeights
from .weights import Packed, StoredWeights, read_rows

VERSION = "1"
MARK, MATRICES, SOURCE = "webgpu_py.packed", "webgpu_py.matrices", "webgpu_py.source"
FOLDER = "files/"
PIECE_NBYTES = 4 << 20


def is_packed(file: SafetensorsFile) -> bool:
    """Whether a file is one of these; UnsupportedModel for a later version."""
    version = file.metadata.get(MARK)
    if version not in (None, VERSION):
        raise UnsupportedModel(
            f"{file.name}: packed weights of version {version!r}, this release reads {VERSION} — "
            "update it, or save the model again"
        )
    return version is not None


class PackedWeights(StoredWeights):
    """The weights of a packed file, as they are."""

    form = "packed"

    def __init__(self, file: SafetensorsFile, source: Source) -> None:
        self.matrices: dict[str, Packed] = {}
        self.vectors: dict[str, Var] = {}
        self.digest = file.metadata.get(SOURCE, "")
        self._file = file
        self._source = source
        self._kinds: dict[str, Any] = {}
        self._losses: dict[str, Snr] = {}
        try:
            self._kinds = parse_json(MATRICES, file.metadata[MATRICES].encode())
            for name, kind in self._kinds.items():
                self._losses[name] = _loss(kind["signal"], kind["noise"])
                n, k = map(int, kind["dims"])
                layout = LAYOUTS[kind["type"]]
                self._check(f"{name}.codes", "U32", (n, layout.row_words(k)))
                if layout.scales != "none":
                    self._check(f"{name}.scales", "U32", (layout.scale_words(n, k),))
        except (LookupError, ArithmeticError, TypeError, AttributeError, ValueError) as error:
            raise FormatError(f"{file.name}: {MATRICES} can't be read: {error!r}") from error

    def __contains__(self, name: str) -> bool:
        return name in self._kinds or (name != HEAD and name in self._file.tensors)

    def vector(self, g: Graph, name: str, length: int, plus: float = 0.0) -> Var:
        """See Weights; `plus` is in what is stored."""
        self._check(name, "F32", (length,))
        self.vectors[name] = self._constant(g, name, TensorSpec("float32", (length,)))
        return self.vectors[name]

    def matrix(self, g: Graph, name: str, dims: tuple[int, int]) -> Packed:
        if name in self.matrices:
            return self.matrices[name]
        if name not in self._kinds:
            raise FormatError(f"{self._file.name}: there is no matrix {name!r}")
        kind = self._kinds[name]
        if tuple(kind["dims"]) != dims:
            raise ShapeError(
                f"{self._file.name}: {name} is {kind['dims']}, config.json says {list(dims)}"
            )
        layout = LAYOUTS[kind["type"]]
        codes = TensorSpec("uint32", (dims[0], layout.row_words(dims[1])))
        scales = TensorSpec("uint32", (layout.scale_words(*dims),))
        self.matrices[name] = Packed(
            kind["type"],
            self._constant(g, f"{name}.codes", codes),
            self._constant(g, f"{name}.scales", scales) if layout.scales != "none" else None,
            dims[1],
        )
        return self.matrices[name]

    def fresh(self) -> PackedWeights:
        return PackedWeights(self._file, self._source)

    @property
    def types(self) -> Mapping[str, int]:
        kinds = Counter(kind["type"] for kind in self._kinds.values())
        parts = len(self._kinds) + sum(LAYOUTS[k].scales != "none" for k in kinds.elements())
        small = sum(name.startswith(FOLDER) for name in self._file.tensors)
        kinds["F32"] += len(self._file.tensors) - parts - small
        return +kinds

    async def values(self, name: str, rows: Sequence[int] | None = None, plus: float = 0.0) -> F32:
        """See StoredWeights; `plus` is in what is stored."""
        if name not in self._kinds:
            return np.frombuffer(await self._read(name), np.float32)
        n, k = self._kinds[name]["dims"]
        layout = LAYOUTS[self._kinds[name]["type"]]
        codes = np.frombuffer(await self._read(f"{name}.codes", rows), np.uint32)
        scales = np.empty(0, np.uint32)
        if layout.scales != "none":
            scales = np.frombuffer(await self._read(f"{name}.scales"), np.uint32)
            if rows is not None:
                halves = scales.view(np.uint16)[: n * -(-k // layout.group)].reshape(n, -1)
                some = halves[list(rows)].reshape(-1)
                scales = np.pad(some, (0, some.size % 2)).view(np.uint32)
        n = n if rows is None else len(rows)
        return unpack(PackedWeight(layout, n, k, codes.reshape(n, -1), scales))

    async def _read(self, name: str, rows: Sequence[int] | None = None) -> bytes:
        tensor = self._file.tensors[name]
        return await read_rows(self._source, tensor.offset, tensor.nbytes, tensor.dims, rows)

    def _check(self, name: str, dtype: str, dims: tuple[int, ...]) -> None:
        tensor = self._file.tensors.get(name)
        if tensor is None:
            raise FormatError(f"{self._file.name}: there is no tensor {name!r}")
        if (tensor.dtype, tensor.dims) != (dtype, dims):
            raise ShapeError(
                f"{self._file.name}: {name} is {tensor.dtype} {list(tensor.dims)}, must be "
                f"{dtype} {list(dims)}"
            )

    def _constant(self, g: Graph, name: str, spec: TensorSpec) -> Var:
        tensor = self._file.tensors[name]
        return g.constant(
            Constant(
                spec,
                source=self._source,
                offset=tensor.offset,
                nbytes=tensor.nbytes,
                key=name,
            )
        )

    async def losses(self, session: Session) -> dict[str, Snr]:
        """What was lost when the matrices were quantized."""
        return self._losses


class PackedTexts:
    """The small files in a packed file; see `checkpoint.ModelFiles`."""

    def __init__(self, file: SafetensorsFile, source: Source) -> None:
        self.name = file.name
        self._file = file
        self._source = source

    async def open(self, name: str) -> Source | None:
        """See ModelFiles."""
        tensor = self._file.tensors.get(FOLDER + name)
        return None if tensor is None else _Part(self._source, tensor)


class _Part:
    """One tensor's bytes as a source."""

    def __init__(self, source: Source, tensor: SafetensorsTensor) -> None:
        self.name = tensor.name.removeprefix(FOLDER)
        self.nbytes = tensor.nbytes
        self._source = source
        self._offset = tensor.offset

    async def read(self, offset: int, nbytes: int) -> bytes:
        """See Source."""
        if offset < 0 or nbytes < 0 or offset + nbytes > self.nbytes:
            raise FormatError(f"{self.name}: {nbytes} bytes from {offset}, it has {self.nbytes}")
        return await self._source.read(self._offset + offset, nbytes)


async def packed_file(
    session: Session,
    weights: SafetensorsWeights | PackedWeights,
    texts: Mapping[str, bytes],
    losses: Mapping[str, Snr],
) -> AsyncIterator[bytes]:
    """A packed file of a model on a device, in pieces of at most 4 MiB."""
    kept = dict(_tensors(weights))
    entries = {
        name: ("F32" if var.dtype == "float32" else "U32", var.shape) for name, var in kept.items()
    }
    entries |= {FOLDER + name: ("U8", (len(raw),)) for name, raw in texts.items()}
    metadata = {
        MARK: VERSION,
        MATRICES: json.dumps({n: _kind(m, losses.get(n)) for n, m in weights.matrices.items()}),
        SOURCE: weights.digest,
    }
    yield safetensors_header(entries, metadata)
    for var in kept.values():
        total = 4 * prod(var.shape)
        for start in range(0, total, PIECE_NBYTES):
            yield await session.read(var.id, start, min(PIECE_NBYTES, total - start))
    for raw in texts.values():
        yield raw


def _loss(signal: float, noise: float) -> Snr:
    if not (0 <= signal < inf and 0 <= noise < inf):
        raise ValueError(f"a loss of {noise} in {signal}")
    return Snr(float(signal), float(noise))


def _tensors(weights: SafetensorsWeights | PackedWeights) -> Iterator[tuple[str, Var]]:
    for name, matrix in weights.matrices.items():
        yield f"{name}.codes", matrix.codes
        if matrix.scales is not None:
            yield f"{name}.scales", matrix.scales
    yield from weights.vectors.items()


def _kind(matrix: Packed, loss: Snr | None) -> dict[str, Any]:
    lost = loss or Snr()
    return {
        "type": matrix.kind,
        "dims": [matrix.codes.shape[0], matrix.columns],
        "signal": lost.signal,
        "noise": lost.noise,
    }
