"""A transformer's self-attention from one projection: norms, rotation, cache, attention."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import DtypeError, IndexOutOfRange
from ..graph.call import Call
from ..graph.dims import ceil_div
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec
from .attention import Geometry, attend, cached_attention, unpacked
from .kv_cache import append_reference, check_position
from .sdpa import scale_of


@operator(
    "webgpu_py.self_attention(qkv, rotation, k_cache!, v_cache!, input_pos, q_heads, "
    "interleaved=False, scale=None, window=0, softcap=0.0, q_norm=None, k_norm=None, "
    "eps=1e-6) -> out"
)
class SelfAttention(Operator):
    """Causal attention over caches that first take the new keys and values at input_pos.

    A row of qkv is q_heads heads of queries, Hkv of keys and Hkv of values. Heads of queries and
    keys are divided by their root mean square and multiplied by q_norm, k_norm (if given), then
    rotated by rotation[input_pos + s]: the pair (a, b) becomes (a cos - b sin, b cos + a sin);
    pairs are neighbours where interleaved, else half of the rotated part apart; dims past it stay.
    Shapes: qkv [S, (Hq + 2 Hkv) * D], rotation [max_seq, R/2, 2] of (cos, sin), R <= D even, caches
    [C, Hkv, D] float32 or [C, Hkv, ceil(D/2)] uint32 (float16 pairs, the even element low), norms
    [D]; out [S, Hq * D]. float32. window, softcap and scale as in webgpu_py.attention.
    Errors: ShapeError, DtypeError, IndexOutOfRange (input_pos + S > C or max_seq).
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        qkv, rotation = call.tensor("qkv", "float32"), call.tensor("rotation", "float32")
        caches = [call.tensor(n, ("float32", "uint32")) for n in ("k_cache", "v_cache")]
        call.check(qkv.rank == 2, f"qkv is {list(qkv.dims)}, must be [S, (Hq + 2 Hkv) * D]")
        call.check(
            all(c.rank == 3 for c in caches) and caches[0].dims == caches[1].dims,
            f"caches are {[list(c.dims) for c in caches]}, must be alike: [C, Hkv, D]",
        )
        call.check(
            caches[0].dtype == caches[1].dtype,
            f"k_cache is {caches[0].dtype}, v_cache {caches[1].dtype}; they must agree",
            DtypeError,
        )
        q_heads, dim = self._heads(call)
        kv_heads, words = caches[0].dims[1:]
        wanted = ceil_div(dim, 2) if caches[0].dtype == "uint32" else dim
        call.check(
            q_heads > 0 and q_heads % kv_heads == 0,
            f"q_heads={q_heads} is no multiple of the caches' {kv_heads} heads",
        )
        call.check(
            dim * (q_heads + 2 * kv_heads) == qkv.dims[1] and words == wanted,
            f"qkv is {list(qkv.dims)}, caches {list(caches[0].dims)} {caches[0].dtype}: a row of "
            f"qkv must be {q_heads} + 2 * {kv_heads} heads of what a row of the caches holds",
        )
        call.check(
            rotation.rank == 3 and rotation.dims[2] == 2 and 2 * rotation.dims[1] <= dim,
            f"rotation is {list(rotation.dims)}, must be [max_seq, R/2, 2] with R <= {dim}",
        )
        for name in ("q_norm", "k_norm"):
            norm = call.optional_tensor(name, "float32")
            call.check(
                norm is None or norm.numel == dim, f"{name} must have {dim} elements, a head's"
            )
        call.check(
            call.is_null("q_norm") == call.is_null("k_norm"),
            "q_norm and k_norm must be given together",
        )
        window, softcap = call.int("window"), call.float("softcap")
        call.check(window >= 0, f"window={window}, must be positive, or 0 for none")
        call.check(softcap >= 0, f"softcap={softcap}, must be positive, or 0 for none")
        tokens = qkv.dims[0]
        check_position(call, tokens, caches[0].dims[0])
        end = call.int("input_pos") + tokens
        call.check(
            end <= rotation.dims[0],
            f"rotation has {rotation.dims[0]} rows, tokens end at {end}",
            IndexOutOfRange,
        )
        scale_of(call, dim)
        return [TensorSpec("float32", (tokens, q_heads * dim))]

    def _heads(self, call: Call) -> tuple[int, int]:
        """Query heads, and a head's dimension."""
        q_heads, kv_heads = call.int("q_heads"), call.tensor("k_cache").dims[1]
        return q_heads, call.tensor("qkv").dims[1] // max(q_heads + 2 * kv_heads, 1)

    def lower(self, call: Call, out: Lowering) -> None:
        qkv, rotation = call.tensor("qkv"), call.tensor("rotation")
        k_cache, v_cache = call.tensor("k_cache"), call.tensor("v_cache")
        q_heads, dim = self._heads(call)
        tokens = qkv.dims[0]
        capacity, kv_heads, words = k_cache.dims
        packed = k_cache.dtype == "uint32"
        position = out.live("input_pos")
        q = out.scratch(4 * tokens * q_heads * dim)
        has_norm = not call.is_null("q_norm")
        out.dispatch(
            "rope_append",
            {
                "qkv": qkv,
                "rotation": rotation,
                "q_norm": call.optional_tensor("q_norm"),
                "k_norm": call.optional_tensor("k_norm"),
                "q_out": q,
                "k_cache": k_cache,
                "v_cache": v_cache,
            },
            {
                "tokens": tokens,
                "q_heads": q_heads,
                "kv_heads": kv_heads,
                "dim": dim,
                "rotary": 2 * rotation.dims[1],
                "capacity": capacity,
                "position": position,
                "eps": call.float("eps"),
            },
            tokens * (q_heads + 2 * kv_heads),
            {
                "packed": packed,
                "interleaved": call.bool("interleaved"),
                "has_norm": has_norm,
                "wg_size": out.width(4 if out.software else 32),
            },
        )
        row = 2 * words if packed else words
        geometry = Geometry(
            streams=kv_heads,
            kv_heads=kv_heads,
            heads=q_heads // kv_heads,
            tokens=tokens,
            keys=capacity,
            dim=dim,
            scale=scale_of(call, dim),
            q_strides=(0, q_heads * dim, dim),
            kv_strides=(0, kv_heads * row, row),
            packed=packed,
            window=call.int("window"),
            softcap=call.float("softcap"),
        )
        attend(out, geometry, q, k_cache, v_cache, call.out(), position)

    def reference(  # type: ignore[override]
        self,
        call: Call,
        qkv: np.ndarray,
        rotation: np.ndarray,
        k_cache: np.ndarray,
        v_cache: np.ndarray,
        q_norm: np.ndarray | None = None,
        k_norm: np.ndarray | None = None,
    ) -> np.ndarray:
        q_heads, dim = self._heads(call)
        position, tokens = call.int("input_pos"), len(qkv)
        heads = qkv.reshape(tokens, -1, dim).astype(np.float64)
        q, k, v = np.split(heads, [q_heads, q_heads + k_cache.shape[1]], axis=1)
        if q_norm is not None and k_norm is not None:
            q, k = (_normed(x, n, call.float("eps")) for x, n in ((q, q_norm), (k, k_norm)))
        turn = rotation[position : position + tokens].astype(np.float64)
        q, k = (self._turned(call, x, turn) for x in (q, k))
        caches = []
        for new, cache in ((k, k_cache), (v, v_cache)):
            append_reference(cache, new, position)
            caches.append((unpacked(cache, dim) if cache.dtype == np.uint32 else cache)[None])
        window, softcap = call.int("window"), call.float("softcap")
        scale = scale_of(call, dim)
        keys, values = caches
        found = cached_attention(q[None], keys, values, position, scale, window, softcap)
        return found.reshape(tokens, -1)

    def _turned(self, call: Call, x: np.ndarray, turn: np.ndarray) -> np.ndarray:
        half = turn.shape[1]
        z = turn[:, None, :, 0] + 1j * turn[:, None, :, 1]
        out = x.copy()
        if call.bool("interleaved"):
            first, second = slice(0, 2 * half, 2), slice(1, 2 * half, 2)
        else:
            first, second = slice(0, half), slice(half, 2 * half)
        z = (x[..., first] + 1j * x[..., second]) * z
        out[..., first], out[..., second] = z.real, z.imag
        return out


def _normed(x: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
    mean = np.mean(x**2, axis=-1, keepdims=True)
    found: np.ndarray = x / np.sqrt(mean + eps) * weight
    return found
