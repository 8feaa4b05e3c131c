"""What a notebook shows of arrays and of loading; graphs and sessions draw themselves."""

from __future__ import annotations

import base64
import importlib
import struct
import sys
import zlib
from html import escape
from typing import Any

import numpy as np

from .errors import DtypeError

MAX_CELLS = 512
"""Rows and columns of a heat map; larger arrays are shown every n-th row or column, as it says."""

ZERO, LOW, HIGH, ODD = (250, 250, 252), (38, 84, 196), (214, 90, 20), (30, 30, 30)
"""Colours of zero, the most negative, the most positive, and what is not finite."""


class Heatmap:
    """An array as a picture: blue below zero, orange above, black where it is not finite.

    The last dimension runs to the right, all others downwards.
    """

    def __init__(self, array: Any, title: str = "") -> None:
        self.array = np.asarray(array)
        self.title = title
        if self.array.dtype.kind not in "biuf":
            raise DtypeError(f"heatmap: an array of {self.array.dtype}; it takes real numbers")

    def caption(self) -> str:
        """Type, shape, range, and what is left out or not finite."""
        a = self.array
        words = [self.title, f"{a.dtype} {' × '.join(map(str, a.shape)) or 'scalar'}"]
        finite = a[np.isfinite(a)]
        if finite.size:
            words.append(f"{finite.min():g} … {finite.max():g}")
        if finite.size < a.size:
            words.append(f"{a.size - finite.size} not finite")
        steps = _steps(_matrix(a))
        if max(steps) > 1:
            words.append(f"every {steps[0]}. row and {steps[1]}. column")
        return " · ".join(filter(None, words))

    def png(self) -> bytes:
        """The picture, a pixel a value."""
        matrix = _matrix(self.array)
        rows, columns = _steps(matrix)
        return png_bytes(colours(matrix[::rows, ::columns]))

    def _repr_html_(self) -> str:
        caption = escape(self.caption())
        if not self.array.size:
            return f"<p>{caption} · empty</p>"
        height, width = (-(-n // s) for n, s in zip(*_shapes(self.array), strict=True))
        scale = max(1, min(16, 640 // max(width, height)))
        data = base64.b64encode(self.png()).decode()
        size = f'width="{width * scale}" height="{height * scale}"'
        style = "image-rendering:pixelated;border:1px solid #7c93b5"
        return (
            f'<figure style="margin:0"><img alt="{caption}" {size} style="{style}" '
            f'src="data:image/png;base64,{data}"/><figcaption>{caption}</figcaption></figure>'
        )


class ProgressBar:
    """Progress of loading as a bar that moves: `await LLM.load(file, progress=ProgressBar())`.

    Outside a notebook it only keeps the numbers.
    """

    def __init__(self) -> None:
        self.stages: dict[str, tuple[int, int]] = {}
        self._handle: Any = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Hear of a stage: units done, units in all or 0."""
        before = self.stages.get(stage)
        self.stages[stage] = done, total
        if before and total and 100 * before[0] // total == 100 * done // total:
            return
        if self._handle is not None:
            self._handle.update(self)
        elif "IPython" in sys.modules:
            self._handle = importlib.import_module("IPython.display").display(self, display_id=True)

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><td style="text-align:left">{escape(stage)}</td>'
            f'<td><progress max="{total or 1}" value="{done if total else 0}"></progress></td>'
            f"<td>{f'{100 * done / total:.0f} %' if total else done}</td></tr>"
            for stage, (done, total) in self.stages.items()
        )
        return f"<table>{rows}</table>"


def colours(matrix: np.ndarray) -> np.ndarray:
    """Pixels [rows, columns, 3] of a matrix; the ends of the scale are its largest magnitude."""
    values = matrix.astype(np.float64)
    finite = np.isfinite(values)
    values = np.where(finite, values, 0)
    share = values / (np.abs(values).max(initial=0) or 1)
    ends = np.where(share[..., None] < 0, LOW, HIGH)
    pixels = np.asarray(ZERO) + (ends - np.asarray(ZERO)) * np.abs(share)[..., None]
    pixels[~finite] = ODD
    found: np.ndarray = np.rint(pixels).astype(np.uint8)
    return found


def png_bytes(pixels: np.ndarray) -> bytes:
    """An RGB picture [height, width, 3] as a PNG file."""
    height, width, _ = pixels.shape
    # Each line begins with its filter, 0 for none.
    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines.tobytes()))
    return b"\x89PNG\r\n\x1a\n" + body + chunk(b"IEND", b"")


def _matrix(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1, array.shape[-1] if array.ndim and array.shape[-1] else 1)


def _steps(matrix: np.ndarray) -> tuple[int, int]:
    rows, columns = (max(1, -(-n // MAX_CELLS)) for n in matrix.shape)
    return rows, columns


def _shapes(array: np.ndarray) -> tuple[tuple[int, ...], tuple[int, int]]:
    matrix = _matrix(array)
    return matrix.shape, _steps(matrix)
