"""Device limits in snake_case, injected upper bounds, and the sizing rules that follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from math import isqrt

from ..errors import LimitExceeded

SMALLER = "use a smaller model, a shorter context or smaller shapes,"
"""What to do where something is too large; a larger device is the other way."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The WebGPU limits this package decides by; the defaults are the specification's."""

    max_buffer_size: int = 268435456
    max_storage_buffer_binding_size: int = 134217728
    max_uniform_buffer_binding_size: int = 65536
    max_storage_buffers_per_shader_stage: int = 8
    max_compute_workgroup_storage_size: int = 16384
    max_compute_invocations_per_workgroup: int = 256
    max_compute_workgroup_size_x: int = 256
    max_compute_workgroup_size_y: int = 256
    max_compute_workgroup_size_z: int = 64
    max_compute_workgroups_per_dimension: int = 65535
    min_storage_buffer_offset_alignment: int = 256
    min_uniform_buffer_offset_alignment: int = 256

    @classmethod
    def from_mapping(cls, found: Mapping[str, int]) -> Limits:
        """Limits out of an adapter's, ignoring those this package does not decide by."""
        names = {f.name for f in fields(cls)}
        return cls(**{k: int(v) for k, v in found.items() if k in names})

    def capped(self, caps: Mapping[str, int] | None) -> Limits:
        """These limits under injected upper bounds; an unknown name or a bound < 1 is an error."""
        if not caps:
            return self
        own = asdict(self)
        for name, bound in caps.items():
            if name not in own:
                raise LimitExceeded(f"limits: no limit named {name!r}; known: {', '.join(own)}")
            if bound < 1:
                raise LimitExceeded(f"limits: {name}={bound}, must be at least 1")
        return replace(self, **{k: min(own[k], int(v)) for k, v in caps.items()})

    def workgroup_width(self, wanted: int) -> int:
        """Largest power of two that is <= `wanted` and that the device can launch along x."""
        most = min(
            wanted, self.max_compute_invocations_per_workgroup, self.max_compute_workgroup_size_x
        )
        return 1 << (most.bit_length() - 1)

    def fold(self, count: int, what: str = "dispatch") -> tuple[int, int]:
        """Near-square 2-D grid of at least `count` workgroups; LimitExceeded past limit squared."""
        limit = self.max_compute_workgroups_per_dimension
        if count <= limit:
            return count, 1
        x = min(isqrt(count - 1) + 1, limit)
        y = count // x + (count % x != 0)
        if y > limit:
            raise LimitExceeded(
                f"{what}: {count} workgroups do not fit a {limit} x {limit} grid; "
                "use a smaller shape"
            )
        return x, y


def padded(nbytes: int) -> int:
    """Bytes a buffer gets for `nbytes` of content: a whole number of vec4, at least one."""
    return max(16, (nbytes + 15) & ~15)
