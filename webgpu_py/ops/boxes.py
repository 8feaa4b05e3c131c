"""Copies between strided boxes of elements: what every shape operator lowers to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ..graph.call import Call, TensorRef
from ..graph.dims import Axis, ceil_div, merge_axes, pack_axes, strides_of
from ..graph.lowering import Lowering, Scratch
from ..graph.values import itemsize

_WRAP = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Box:
    """Which element of x goes where in y.

    y is row-major over `whole`; the box covers `dims` of it from `offset` on, and its element at
    (i, j, ...) is x[base + i * src[0] + j * src[1] + ...]. Strides of 0 repeat, negative ones
    run backwards. A live integer times `live_step` is added where `live` names its word.
    """

    whole: Sequence[int]
    src: Sequence[int]
    base: int = 0
    dims: Sequence[int] | None = None
    offset: Sequence[int] | None = None
    live: int | None = None
    live_step: int = 0

    @property
    def size(self) -> Sequence[int]:
        """Dims of the box."""
        return self.whole if self.dims is None else self.dims

    @property
    def start(self) -> Sequence[int]:
        """Offset of the box in y."""
        return [0] * len(self.whole) if self.offset is None else self.offset


def copy_box(
    call: Call,
    out: Lowering,
    dtype: str,
    x: TensorRef | Scratch,
    y: TensorRef | Scratch,
    box: Box,
    filler: int | None = None,
) -> None:
    """Dispatch a box; around it y keeps what it has, or becomes the bits `filler`."""
    strides = strides_of(box.whole)
    dst = sum(o * s for o, s in zip(box.start, strides, strict=True))
    axes = merge_axes(box.size, box.src, strides)
    moves = {"moves": box.live is not None}
    live_step = 0 if box.live is None else box.live_step
    move = {"live_word": box.live or 0}
    width = out.width(256)
    for unit in (4, 1) if itemsize(dtype) == 4 else (16, 4):
        steps = [box.base, dst, live_step]
        if _divides(axes, steps, unit):
            break
    else:
        _copy_bytes(call, out, x, y, box, filler)
        return
    if filler is not None:
        fill(out, y, prod(box.whole) * itemsize(dtype), filler)
    if unit > 1:
        inner = (axes[0][0] // unit, *axes[0][1:])
        axes = [inner, *((n, *(s // unit for s in step)) for n, *step in axes[1:])]
    count = prod(box.size) // unit
    out.dispatch(
        "box_copy" if unit * itemsize(dtype) == 4 else "box_copy_vec4",
        {"x": x, "y": y},
        {
            "count": count,
            "src": (box.base // unit) & _WRAP,
            "dst": dst // unit,
            **move,
            "live_step": (live_step // unit) & _WRAP,
            "axes": pack_axes(call, axes),
        },
        ceil_div(count, width),
        {**moves, "wg_size": width},
    )


def _divides(axes: Sequence[Axis], steps: Sequence[int], unit: int) -> bool:
    """Whether the copy moves whole units of that many elements."""
    if unit == 1:
        return True
    if not axes or axes[0][1:] != (1, 1) or axes[0][0] % unit:
        return False
    return not any(s % unit for s in steps) and not any(
        s % unit for axis in axes[1:] for s in axis[1:]
    )


def _copy_bytes(
    call: Call,
    out: Lowering,
    x: TensorRef | Scratch,
    y: TensorRef | Scratch,
    box: Box,
    filler: int | None,
) -> None:
    whole: list[list[int]] = []
    for d in reversed(range(len(box.whole))):
        size, step = box.whole[d], box.src[d]
        start, window = box.start[d], box.size[d]
        if size == 1:
            continue
        if whole:
            stride, at, covered, inner = whole[-1]
            if at == 0 and covered == inner and step == inner * stride:
                whole[-1] = [stride, start * inner, window * inner, size * inner]
                continue
        whole.append([step, start, window, size])
    call.check(len(whole) <= 12, f"{len(whole)} separate axes, allowed are 12; use a lower rank")
    width = out.width(256)
    numel = prod(box.whole)
    out.dispatch(
        "box_copy_bytes",
        {"x": x, "y": y},
        {
            "numel": numel,
            "src": box.base & _WRAP,
            "filler": (filler or 0) & 0xFF,
            "live_word": box.live or 0,
            "live_step": box.live_step & _WRAP,
            "axes": [v & _WRAP for axis in whole for v in axis],
        },
        ceil_div(ceil_div(numel, 4), width),
        {"keep": filler is None, "moves": box.live is not None, "wg_size": width},
    )


def copy_flat(out: Lowering, x: TensorRef, y: TensorRef) -> None:
    """Dispatch y = x, byte for byte; padding is copied too."""
    count = ceil_div(y.spec.nbytes, 16)
    width = out.width(256)
    out.dispatch(
        "box_copy_vec4",
        {"x": x, "y": y},
        {
            "count": count,
            "src": 0,
            "dst": 0,
            "live_word": 0,
            "live_step": 0,
            "axes": [1, 1, 0, count],
        },
        ceil_div(count, width),
        {"wg_size": width},
    )


def fill(
    out: Lowering,
    y: TensorRef | Scratch,
    nbytes: int,
    bits: int,
    live: int | None = None,
    live_kind: int = 0,
) -> None:
    """Dispatch y = the 32 bits `bits` everywhere, or a live integer in the form `live_kind`."""
    words = ceil_div(nbytes, 4)
    width = out.width(256)
    out.dispatch(
        "fill",
        {"y": y},
        {
            "words": words,
            "bits": bits,
            "last_mask": _WRAP >> (8 * (4 * words - nbytes)),
            "live_word": live or 0,
        },
        ceil_div(ceil_div(words, 4), width),
        {"live_kind": live_kind, "wg_size": width},
    )
