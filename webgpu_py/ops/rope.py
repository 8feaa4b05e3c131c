"""Rotary position embeddings: pairs (Llama), halves (Qwen, HF), interleaved table (EdgeTAM)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ..errors import IndexOutOfRange
from ..graph.call import Call, TensorRef
from ..graph.dims import ceil_div
from ..graph.lowering import Lowering, Operand
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec

PAIRS, HALVES, INTERLEAVED, LIVE_PAIRS, LIVE_HALVES = range(5)


def _query_key(call: Call) -> tuple[TensorRef, TensorRef]:
    """The operands q [.., S, Hq, D] and k [.., S, Hk, D], checked against each other."""
    q, k = call.tensor("q", "float32"), call.tensor("k", "float32")
    call.check(
        q.rank >= 3 and q.rank == k.rank,
        f"q {list(q.dims)} and k {list(k.dims)} must have one rank, at least 3",
    )
    call.check(
        q.dims[:-2] == k.dims[:-2] and q.dims[-1] == k.dims[-1],
        f"q {list(q.dims)} and k {list(k.dims)} may differ in the heads (dim -2) only",
    )
    if call.has_results:
        call.check(
            len(call.result_ids) == 2, f"{len(call.result_ids)} results, there must be 2: q and k"
        )
    return q, k


def _tables(call: Call) -> tuple[TensorRef, TensorRef]:
    cos, sin = call.tensor("cos", "float32"), call.tensor("sin", "float32")
    call.check(
        cos.dims == sin.dims,
        f"cos {list(cos.dims)} and sin {list(sin.dims)} must have the same shape",
    )
    return cos, sin


def _dispatch_both(call: Call, out: Lowering, arrangement: int, rotary: int, start: int) -> None:
    q, k = call.tensor("q"), call.tensor("k")
    cos, sin = call.tensor("cos"), call.tensor("sin")
    bind: dict[str, Operand] = {
        "q": q,
        "k": k,
        "cosines": cos,
        "sines": sin,
        "q_out": call.out(0),
        "k_out": call.out(1),
    }
    tokens, _, dim = q.dims[-3:]
    params = {
        "count": prod(q.dims[:-2]),
        "tokens": tokens,
        "q_heads": q.dims[-2],
        "k_heads": k.dims[-2],
        "dim": dim,
        "rotary": rotary,
        "rows": prod(cos.max_spec.dims[:-1]),
        "start": start,
    }
    fixed = q.fixed(-2) and k.fixed(-2) and cos.fixed(-1)
    _dispatch(out, bind, params, arrangement, fixed)


def _dispatch(
    out: Lowering,
    bind: dict[str, Operand],
    params: dict[str, int],
    arrangement: int,
    fixed: bool = True,
) -> None:
    kernel, width, items = _kernel(out, params, arrangement)
    constants = {"arrangement": arrangement, "wg_size": width}
    baked = out.bakes(params["count"], fixed)
    out.dispatch(kernel, bind, params, ceil_div(items, width), constants, baked)


def _kernel(out: Lowering, params: dict[str, int], arrangement: int) -> tuple[str, int, int]:
    """The kernel, its workgroups' width, and invocations."""
    dim, rotary = params["dim"], params["rotary"]
    heads = params["count"] * (params["q_heads"] + params["k_heads"])
    unit = 8 if arrangement in (HALVES, LIVE_HALVES) else 4
    if dim % 4 or rotary % (8 if out.software else unit):
        return "rope", out.width(64), heads * (dim - rotary // 2)
    if out.software:
        return "rope_vec4", out.width(16), params["count"] * (dim // 4 - rotary // 8)
    return "rope_heads", out.width(128), heads * (rotary // unit + (dim - rotary) // 4)


@operator("et_vk.apply_rotary_emb.default(q, k, cos, sin) -> [q_out, k_out]")
class RopePairs(Operator):
    """(x[2i] + j x[2i+1]) * (cos[s, i] + j sin[s, i]) for token s, as real and imaginary parts.

    Shapes: q [.., S, Hq, D], k [.., S, Hk, D], D even; cos, sin [.., S, D/2] with S * D/2 elements
    (live S may be smaller than the tables' rows). float32. Two results.
    Errors: ShapeError, DtypeError.
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        q, k = _query_key(call)
        cos, _ = _tables(call)
        dim = q.dims[-1]
        call.check(
            cos.rank >= 2 and dim == 2 * cos.dims[-1],
            f"cos and sin are {list(cos.dims)}, must be [S, {dim}/2] for head dimension {dim}",
        )
        rows, most = prod(cos.dims[:-1]), prod(cos.max_spec.dims[:-1])
        call.check(
            q.dims[-3] <= rows and q.max_spec.dims[-3] == most,
            f"cos and sin have {rows} rows (at most {most}), q has {q.dims[-3]} tokens "
            f"(at most {q.max_spec.dims[-3]}); there must be a row a token",
        )
        return [q.spec, k.spec]

    def lower(self, call: Call, out: Lowering) -> None:
        _dispatch_both(call, out, PAIRS, call.tensor("q").dims[-1], 0)

    def reference(  # type: ignore[override]
        self, call: Call, q: np.ndarray, k: np.ndarray, cos: np.ndarray, sin: np.ndarray
    ) -> list[np.ndarray]:
        turn = cos.astype(np.float64) + 1j * sin
        turn = turn.reshape(-1, 1, q.shape[-1] // 2)[: q.shape[-3]]
        return [_turned(q, turn), _turned(k, turn)]


@operator("et_vk.apply_rotary_emb_hf.default(q, k, cos, sin, start_pos) -> [q_out, k_out]")
class RopeHalves(Operator):
    """out = x * cos[row] + rotate_half(x) * sin[row] over the first R dims, row = start_pos + s.

    rotate_half(x) = (-x[R/2:R], x[:R/2]); dims from R on are copied (partial rotary).
    Shapes: q [.., S, Hq, D], k [.., S, Hk, D]; cos, sin [max_seq, R], R even, R <= D. float32.
    start_pos: Int or SymInt, start_pos + S <= max_seq at each run. Two results.
    Errors: ShapeError, DtypeError, IndexOutOfRange (start_pos).
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        q, k = _query_key(call)
        cos, _ = _tables(call)
        call.check(cos.rank == 2, f"cos and sin are {list(cos.dims)}, must be [max_seq, rotary]")
        rows, rotary = cos.dims
        call.check(
            rotary % 2 == 0 and rotary <= q.dims[-1],
            f"rotary dimension {rotary} (last of cos), must be even and at most {q.dims[-1]}",
        )
        tokens, start = q.dims[-3], call.int("start_pos")
        call.check(tokens <= rows, f"{tokens} tokens, cos and sin have {rows} rows")
        call.check(
            0 <= start <= rows - tokens,
            f"start_pos={start} with {tokens} tokens, allowed are 0 to {rows - tokens} "
            f"(cos and sin have {rows} rows)",
            IndexOutOfRange,
        )
        return [q.spec, k.spec]

    def lower(self, call: Call, out: Lowering) -> None:
        rotary = call.tensor("cos").dims[-1]
        _dispatch_both(call, out, HALVES, rotary, out.live("start_pos"))

    def reference(  # type: ignore[override]
        self, call: Call, q: np.ndarray, k: np.ndarray, cos: np.ndarray, sin: np.ndarray
    ) -> list[np.ndarray]:
        rotary = cos.shape[-1]
        rows = slice(call.int("start_pos"), call.int("start_pos") + q.shape[-3])
        found = []
        for x in (q, k):
            a, b, rest = np.split(x.astype(np.float64), [rotary // 2, rotary], axis=-1)
            crossed = np.concatenate([-b, a], axis=-1) * sin[rows, None]
            turned = np.concatenate([a, b], axis=-1) * cos[rows, None] + crossed
            found.append(np.concatenate([turned, rest], axis=-1))
        return found


@operator("et_vk.apply_rotary_emb_interleaved.default(x, freqs) -> out")
class RopeInterleaved(Operator):
    """(x[n, 2i] + j x[n, 2i+1]) * (freqs[n, 2i] + j freqs[n, 2i+1]), as real and imaginary parts.

    Shapes: x [.., N, C], rank >= 3, C even; freqs any shape of N * C elements, seen as [N, C]
    (live N may be smaller than its rows). float32.
    Errors: ShapeError, DtypeError.
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x, freqs = call.tensor("x", "float32"), call.tensor("freqs", "float32")
        call.check(x.rank >= 3, f"x is {list(x.dims)}, must be [.., N, C] of rank 3 or more")
        tokens, dim = x.dims[-2:]
        call.check(
            dim % 2 == 0 and dim == x.max_spec.dims[-1],
            f"x is {list(x.dims)}, its last dimension must be even and fixed",
        )
        most = x.max_spec.dims[-2] * dim
        call.check(
            freqs.numel >= tokens * dim and freqs.max_spec.numel == most,
            f"freqs has {freqs.numel} elements (at most {freqs.max_spec.numel}), x needs "
            f"{tokens} * {dim} (at most {most})",
        )
        return [x.spec]

    def lower(self, call: Call, out: Lowering) -> None:
        x, freqs = call.tensor("x"), call.tensor("freqs")
        tokens, dim = x.dims[-2:]
        bind: dict[str, Operand] = {
            "q": x,
            "k": x,
            "cosines": freqs,
            "sines": freqs,
            "q_out": call.out(),
            "k_out": out.scratch(16),
        }
        params = {
            "count": prod(x.dims[:-1]),
            "tokens": tokens,
            "q_heads": 1,
            "k_heads": 0,
            "dim": dim,
            "rotary": dim,
            "rows": freqs.max_spec.numel // dim,
            "start": 0,
        }
        _dispatch(out, bind, params, INTERLEAVED)

    def reference(  # type: ignore[override]
        self, call: Call, x: np.ndarray, freqs: np.ndarray
    ) -> np.ndarray:
        tokens, dim = x.shape[-2:]
        turn = freqs.astype(np.float64).reshape(-1, dim // 2, 2)[:tokens]
        return _turned(x, turn[..., 0] + 1j * turn[..., 1])


@operator("webgpu_py.rope.default(q, k, cos, sin, start_pos, interleaved=False) -> [q_out, k_out]")
class RopeLive(Operator):
    """Rotation by angle table row start_pos + s, one column a pair, over the first R dims.

    Pairs are (x[2i], x[2i+1]) where interleaved, else (x[i], x[i + R/2]); dims from R on are
    copied. Shapes: q [.., S, Hq, D], k [.., S, Hk, D]; cos, sin [max_seq, R/2], R <= D. float32.
    Two results. Errors: ShapeError, DtypeError, IndexOutOfRange (start_pos).
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        q, k = _query_key(call)
        cos, _ = _tables(call)
        call.check(cos.rank == 2, f"cos and sin are {list(cos.dims)}, must be [max_seq, rotary/2]")
        rows, half = cos.dims
        call.check(
            2 * half <= q.dims[-1],
            f"cos has {half} columns, head dimension {q.dims[-1]} takes at most half of it",
        )
        tokens, start = q.dims[-3], call.int("start_pos")
        call.check(
            0 <= start <= rows - tokens,
            f"start_pos={start} with {tokens} tokens, allowed are 0 to {rows - tokens} "
            f"(cos and sin have {rows} rows)",
            IndexOutOfRange,
        )
        call.bool("interleaved")
        return [q.spec, k.spec]

    def lower(self, call: Call, out: Lowering) -> None:
        arrangement = LIVE_PAIRS if call.bool("interleaved") else LIVE_HALVES
        rotary = 2 * call.tensor("cos").dims[-1]
        _dispatch_both(call, out, arrangement, rotary, out.live("start_pos"))

    def reference(  # type: ignore[override]
        self, call: Call, q: np.ndarray, k: np.ndarray, cos: np.ndarray, sin: np.ndarray
    ) -> list[np.ndarray]:
        start, rotary = call.int("start_pos"), 2 * cos.shape[-1]
        rows = slice(start, start + q.shape[-3])
        turn = (cos[rows].astype(np.float64) + 1j * sin[rows])[:, None]
        found = []
        for x in (q, k):
            turned = x.astype(np.float64)
            part = turned[..., :rotary]
            if call.bool("interleaved"):
                turned[..., :rotary] = _turned(part, turn)
            else:
                z = (part[..., : rotary // 2] + 1j * part[..., rotary // 2 :]) * turn
                turned[..., :rotary] = np.concatenate([z.real, z.imag], axis=-1)
            found.append(turned)
        return found


def _turned(x: np.ndarray, turn: np.ndarray) -> np.ndarray:
    pairs = x.astype(np.float64).reshape(*x.shape[:-1], -1, 2)
    z = (pairs[..., 0] + 1j * pairs[..., 1]) * turn
    return np.stack([z.real, z.imag], axis=-1).reshape(x.shape)
