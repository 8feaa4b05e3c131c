"""Scaled dot-product attention: with a key/value cache (two signatures), and dense."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt

import numpy as np

from ..errors import DtypeError, UnsupportedOperator
from ..graph.call import Call
from ..graph.dims import ceil_div
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import Double, Int, Null, TensorSpec
from .attention import Geometry, attend, attention, cached_attention, merged, unpacked
from .kv_cache import append, append_reference, check_position


def scale_of(call: Call, dim: int) -> float:
    """What dot products are multiplied by: 1 / sqrt(D) where nothing is given."""
    return 1 / sqrt(dim) if call.is_null("scale") else call.float("scale")


class _Cached(Operator):
    """Append k and v at input_pos, then attend causally over rows 0 .. input_pos + s of the caches.

    Query head h looks at key/value head h // (Hq / Hkv).
    """

    def _window(self, call: Call) -> int:
        return 0

    def _softcap(self, call: Call) -> float:
        return 0.0

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        q, k, v = (call.tensor(n, "float32") for n in ("q", "k", "v"))
        caches = call.tensor("k_cache"), call.tensor("v_cache")
        shapes = ", ".join(f"{t.name} {list(t.dims)}" for t in (q, k, v, *caches))
        call.check(
            all(t.rank >= 3 for t in (q, k, v, *caches)), f"{shapes}: ranks must be at least 3"
        )
        batch, tokens, q_heads, dim = merged(q.dims)
        capacity, kv_heads, words = merged(caches[0].dims)[1:]
        call.check(
            merged(k.dims) == merged(v.dims) == (batch, tokens, kv_heads, dim),
            f"{shapes}: k and v must be [{batch}, {tokens}, {kv_heads}, {dim}], "
            "as q and the caches say",
        )
        call.check(
            q_heads % kv_heads == 0,
            f"{shapes}: {q_heads} query heads are no multiple of {kv_heads} key/value heads",
        )
        wanted = ceil_div(dim, 2) if caches[0].dtype == "uint32" else dim
        call.check(
            merged(caches[0].dims) == merged(caches[1].dims) == (batch, capacity, kv_heads, wanted)
            and words == wanted,
            f"{shapes}: both caches must be [{batch}, rows, {kv_heads}, {wanted}] "
            f"for {caches[0].dtype}",
        )
        call.check(
            caches[0].dtype == caches[1].dtype,
            f"k_cache is {caches[0].dtype}, v_cache {caches[1].dtype}; they must agree",
            DtypeError,
        )
        call.check(
            caches[0].id != caches[1].id,
            "k_cache and v_cache are one tensor, they must be two",
            UnsupportedOperator,
        )
        check_position(call, tokens, capacity)
        scale_of(call, dim)
        return [q.spec]

    def lower(self, call: Call, out: Lowering) -> None:
        q, k_cache, v_cache = (call.tensor(n) for n in ("q", "k_cache", "v_cache"))
        position = out.live("input_pos")
        append(out, [call.tensor("k"), call.tensor("v")], [k_cache, v_cache], position)
        batch, tokens, q_heads, dim = merged(q.dims)
        _, capacity, kv_heads, words = merged(k_cache.dims)
        packed = k_cache.dtype == "uint32"
        row = 2 * words if packed else words
        geometry = Geometry(
            streams=batch * kv_heads,
            kv_heads=kv_heads,
            heads=q_heads // kv_heads,
            tokens=tokens,
            keys=capacity,
            dim=dim,
            scale=scale_of(call, dim),
            q_strides=(tokens * q_heads * dim, q_heads * dim, dim),
            kv_strides=(capacity * kv_heads * row, kv_heads * row, row),
            packed=packed,
            window=self._window(call),
            softcap=self._softcap(call),
        )
        attend(out, geometry, q, k_cache, v_cache, call.out(), position)

    def reference(  # type: ignore[override]
        self,
        call: Call,
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        k_cache: np.ndarray,
        v_cache: np.ndarray,
    ) -> np.ndarray:
        position, dim = call.int("input_pos"), q.shape[-1]
        views = []
        for new, cache in ((k, k_cache), (v, v_cache)):
            cache = cache.reshape(merged(cache.shape))
            append_reference(cache, new.reshape(merged(new.shape)), position)
            views.append(unpacked(cache, dim) if cache.dtype == np.uint32 else cache)
        q, (keys, values) = q.reshape(merged(q.shape)), views
        scale, window, softcap = scale_of(call, dim), self._window(call), self._softcap(call)
        return cached_attention(q, keys, values, position, scale, window, softcap)


@operator(
    "sdpa_with_kv_cache.default(q, k, v, k_cache!, v_cache!, input_pos, seq_len=None, "
    "attn_mask=None, dropout_p=0.0, is_causal=None, scale=None) -> out"
)
class SdpaWithKvCache(_Cached):
    """out = softmax(q k^T * scale, causal) v over caches that first take k and v at input_pos.

    Shapes: q, out [B, S, Hq, D]; k, v [B, S, Hkv, D]; caches [B, C, Hkv, D] (B may be absent),
    float32, any D. input_pos: Int or SymInt. seq_len is ignored, scale Null means 1 / sqrt(D).
    Errors: ShapeError, DtypeError, IndexOutOfRange (input_pos + S > C), UnsupportedOperator
    (a mask, dropout, is_causal false).
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        for name in ("k_cache", "v_cache"):
            call.tensor(name, "float32")
        call.check(
            call.is_null("attn_mask"),
            "attn_mask is given, only None is supported: causal attention over the cache",
            UnsupportedOperator,
        )
        call.check(
            call.float("dropout_p") == 0,
            f"dropout_p={call.float('dropout_p')}, only 0 is supported",
            UnsupportedOperator,
        )
        call.check(
            call.is_null("is_causal") or call.bool("is_causal"),
            "is_causal is false, only true or None is supported",
            UnsupportedOperator,
        )
        return _Cached.infer(self, call)


@operator(
    "webgpu_py.attention(q, k, v, k_cache!, v_cache!, input_pos, scale=None, window=0, "
    "softcap=0.0) -> out"
)
class CachedAttention(_Cached):
    """As sdpa_with_kv_cache, with a sliding window, a soft cap and caches of float16.

    Shapes: q, out [B, S, Hq, D]; k, v [B, S, Hkv, D]; caches [B, C, Hkv, D] float32, or
    [B, C, Hkv, ceil(D/2)] uint32 that hold float16 pairs, the even element in the low half (B may
    be absent). window > 0: a token sees itself and window - 1 tokens before it. softcap > 0: a
    score x becomes softcap * tanh(x / softcap).
    Errors: ShapeError, DtypeError, IndexOutOfRange (input_pos + S > C), UnsupportedOperator.
    """

    def _window(self, call: Call) -> int:
        return call.int("window")

    def _softcap(self, call: Call) -> float:
        return call.float("softcap")

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        for name in ("k_cache", "v_cache"):
            call.tensor(name, ("float32", "uint32"))
        window = call.int("window")
        call.check(window >= 0, f"window={window}, must be positive, or 0 for none")
        call.check(
            not call.is_symint("window"), "window is a SymInt, must be an Int", UnsupportedOperator
        )
        softcap = call.float("softcap")
        call.check(softcap >= 0, f"softcap={softcap}, must be positive, or 0 for none")
        return _Cached.infer(self, call)


@operator("et_vk.sdpa.default(q, k, v, attn_mask=None, scale=None) -> out")
class Sdpa(Operator):
    """out = softmax(q k^T * scale + mask) v over the last two dims.

    Shapes: q, out [.., H, Sq, D]; k, v [.., H, Skv, D], any D; mask broadcasts to
    [.., H, Sq, Skv]. float32. scale Null means 1 / sqrt(D). Scores are at least -1e30.
    Errors: ShapeError, DtypeError, UnsupportedOperator (scale).
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        q, k, v = (call.tensor(n, "float32") for n in ("q", "k", "v"))
        call.check(
            2 <= q.rank <= 8 and k.rank == q.rank,
            f"q {list(q.dims)} and k {list(k.dims)} must have one rank, from 2 to 8",
        )
        call.check(
            q.dims[:-2] == k.dims[:-2] and q.dims[-1] == k.dims[-1],
            f"q {list(q.dims)} and k {list(k.dims)} may differ in the length (dim -2) only",
        )
        call.check(
            k.dims == v.dims, f"k {list(k.dims)} and v {list(v.dims)} must have the same shape"
        )
        scores = (*q.dims[:-1], k.dims[-2])
        mask = call.optional_tensor("attn_mask", "float32")
        if mask:
            tail = scores[len(scores) - mask.rank :] if mask.rank <= len(scores) else ()
            call.check(
                mask.rank == len(tail)
                and all(m in (1, s) for m, s in zip(mask.dims, tail, strict=True)),
                f"attn_mask {list(mask.dims)} does not broadcast to {list(scores)}",
            )
        call.check(
            isinstance(call.value("scale"), (Null, Double, Int)),
            "scale must be a number or None",
            UnsupportedOperator,
        )
        return [q.spec]

    def lower(self, call: Call, out: Lowering) -> None:
        q, k, v = (call.tensor(n) for n in ("q", "k", "v"))
        tokens, dim = q.dims[-2:]
        keys = k.dims[-2]
        streams = prod(q.dims[:-2])
        geometry = Geometry(
            streams=streams,
            kv_heads=streams,
            heads=1,
            tokens=tokens,
            keys=keys,
            dim=dim,
            scale=scale_of(call, dim),
            q_strides=(0, dim, tokens * dim),
            kv_strides=(0, dim, keys * dim),
            causal=False,
        )
        attend(out, geometry, q, k, v, call.out(), mask=call.optional_tensor("attn_mask"))

    def reference(  # type: ignore[override]
        self,
        call: Call,
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        attn_mask: np.ndarray | None = None,
    ) -> np.ndarray:
        bias = np.zeros(1) if attn_mask is None else np.maximum(attn_mask, np.float64(-1e38))
        return attention(q, k, v, scale_of(call, q.shape[-1]), bias)
