"""Average and maximum over windows of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph.call import Call, TensorRef
from ..graph.dims import ceil_div
from ..graph.lowering import Lowering, Operand
from ..graph.operator import Operator, operator
from ..graph.values import Tensor, TensorSpec
from .window import Window, pair, taps

LOWEST_BITS = 0xFF800000
"""-infinity as a word."""


class _Pool(Operator):
    """What both operators share: shapes, windows and the dispatch."""

    @staticmethod
    def _window(call: Call, dilation: bool) -> Window:
        kernel = pair(call, "kernel_size", 1)
        return Window(
            kernel,
            pair(call, "stride", 1, kernel),
            pair(call, "padding", 0, (0, 0)),
            pair(call, "dilation", 1, (1, 1)) if dilation else (1, 1),
        )

    @staticmethod
    def _results(call: Call, window: Window, x: TensorRef) -> tuple[int, ...]:
        call.check(x.rank in (3, 4), f"x {list(x.dims)}, must be [C, H, W] or [N, C, H, W]")
        size = (x.dims[-2], x.dims[-1])
        return (*x.dims[:-2], *window.results(call, size, call.bool("ceil_mode")))

    @staticmethod
    def _dispatch(
        call: Call, out: Lowering, window: Window, op: int, indices: Operand, **given: int
    ) -> None:
        x, y = call.tensor("x"), call.out()
        width = out.width(64)
        out.dispatch(
            "pool",
            {"x": x, "y": y, "indices": indices},
            {
                "numel": y.numel,
                "in_height": x.dims[-2],
                "in_width": x.dims[-1],
                "out_height": y.dims[-2],
                "out_width": y.dims[-1],
                **window.params(),
                "divisor": 0,
                "include_pad": 0,
                "has_indices": int(indices is not None),
                "lowest": LOWEST_BITS,
                **given,
            },
            ceil_div(y.numel, width),
            {"wg_size": width, "op": op},
        )


@operator(
    "aten.avg_pool2d.default(x, kernel_size, stride=None, padding=None, ceil_mode=False, "
    "count_include_pad=True, divisor_override=None) -> out"
)
class AvgPool2d(_Pool):
    """out = sum over the window / divisor.

    The divisor is divisor_override, else the cells of the window within the padded input
    (count_include_pad) or within the input; a window without cells gives 0. An empty stride is
    the kernel's size. ceil_mode adds a last window that overhangs.
    Shapes: x [N, C, H, W] or [C, H, W]. float32; all dims may be live.
    Errors: ShapeError (rank, windows, divisor 0), DtypeError.
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x = call.tensor("x", "float32")
        call.bool("count_include_pad")
        self._divisor(call)
        return [TensorSpec("float32", self._results(call, self._window(call, False), x))]

    @staticmethod
    def _divisor(call: Call) -> int:
        """The override, or 0 where there is none."""
        if call.is_null("divisor_override"):
            return 0
        divisor = call.int("divisor_override")
        call.check(divisor != 0, "divisor_override=0, must not be 0")
        return divisor

    def lower(self, call: Call, out: Lowering) -> None:
        self._dispatch(
            call,
            out,
            self._window(call, False),
            0,
            None,
            divisor=self._divisor(call),
            include_pad=int(call.bool("count_include_pad")),
        )

    def reference(self, call: Call, x: np.ndarray) -> Any:  # type: ignore[override]
        window = self._window(call, False)
        results = self._results(call, window, call.tensor("x"))[-2:]
        sums = windows(x.astype(np.float64), window, results, 0).sum(0)
        if divisor := self._divisor(call):
            return sums / divisor
        inside = np.ones(x.shape[-2:])
        cells = windows(inside, window, results, 0).sum(0)
        counted = cells
        if call.bool("count_include_pad"):
            padded = np.pad(inside, [(p, p) for p in window.padding], constant_values=1)
            unpadded = Window(window.kernel, window.stride, (0, 0))
            counted = windows(padded, unpadded, results, 0).sum(0)
        return np.where(cells > 0, sums / np.maximum(counted, 1), 0)


@operator(
    "aten.max_pool2d_with_indices.default(x, kernel_size, stride=None, padding=None, "
    "dilation=None, ceil_mode=False) -> [values, indices]"
)
class MaxPool2d(_Pool):
    """values = maximum over the window, padding left out; indices = where, as h * W + w.

    Of equal values the first counts, of NaNs the last. An empty stride is the kernel's size.
    ceil_mode adds a last window that overhangs.
    Shapes: x [N, C, H, W] or [C, H, W]; indices int32, may be missing. float32; all dims may be
    live.
    Errors: ShapeError (rank, windows, padding above half of the kernel), DtypeError.
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x = call.tensor("x", "float32")
        window = self._window(call, True)
        most = [((k - 1) * d + 1) // 2 for k, d in zip(window.kernel, window.dilation, strict=True)]
        call.check(
            all(p <= m for p, m in zip(window.padding, most, strict=True)),
            f"padding {list(window.padding)}, allowed are at most {most}, half of the kernel",
        )
        dims = self._results(call, window, x)
        return [TensorSpec("float32", dims), TensorSpec("int32", dims)]

    def lower(self, call: Call, out: Lowering) -> None:
        ids = call.result_ids
        kept = len(ids) > 1 and isinstance(call.graph.values[ids[1]], Tensor)
        self._dispatch(call, out, self._window(call, True), 1, call.out(1) if kept else None)

    def reference(self, call: Call, x: np.ndarray) -> Any:  # type: ignore[override]
        window = self._window(call, True)
        results = self._results(call, window, call.tensor("x"))[-2:]
        size = x.shape[-2:]
        cells = np.arange(size[0] * size[1]).reshape(size)
        places = windows(cells, window, results, -1)
        taken = windows(x, window, results, -np.inf)
        places = places.reshape(len(places), *(1,) * (x.ndim - 2), *results)
        # Padding never wins, also where every value is -infinity; the last NaN always does.
        taken = np.where(places >= 0, taken, -np.inf)
        best = np.where(
            np.isnan(taken).any(0),
            len(taken) - 1 - np.isnan(taken[::-1]).argmax(0),
            taken.argmax(0),
        )[None]
        first = (places >= 0).argmax(0)[None]
        places = np.broadcast_to(places, taken.shape)
        index = np.take_along_axis(places, best, 0)
        index = np.where(index < 0, np.take_along_axis(places, first, 0), index)
        return [taken.max(0), np.maximum(index[0], 0)]


def windows(x: np.ndarray, window: Window, results: tuple[int, ...], fill: float) -> Any:
    """The cells under every tap, [taps, ..., OH, OW]; `fill` outside of x."""
    edges = []
    for i, size in enumerate(x.shape[-2:]):
        reach = (
            (results[i] - 1) * window.stride[i] + window.dilation[i] * (window.kernel[i] - 1) + 1
        )
        edges.append((window.padding[i], max(0, reach - window.padding[i] - size)))
    plane = np.pad(x, [(0, 0)] * (x.ndim - 2) + edges, constant_values=fill)
    count = (results[0], results[1])
    return np.stack([plane[..., *taps(window, i, j, count)] for i, j in np.ndindex(*window.kernel)])
