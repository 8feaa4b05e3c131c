"""What a session asks of an executor of plans, wherever that is.

`webgpu_py/bridge.py` is the browser's, `backends/cpu.py` runs plans on NumPy and
`backends/native.py` on wgpu-py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from .limits import Limits
from .plan import PipelineSpec, Plan
from .values import Source


class Bridge(Protocol):
    """An executor of plans. Handles are integers; arrays handed over are contiguous."""

    kind: str
    info: dict[str, Any]
    limits: Limits
    features: frozenset[str]
    crossings: int

    @property
    def lost(self) -> bool:
        """Whether the device is gone: every call but those that free ends in DeviceLost."""
        ...

    async def create_buffers(self, nbytes: Sequence[int], labels: Sequence[str]) -> list[int]:
        """Zeroed storage buffers; all or none, OutOfMemory naming the first that failed."""
        ...

    def write(self, buffer: int, offset: int, data: np.ndarray) -> None:
        """Write bytes at an offset that is a multiple of 4; a short tail is padded with zeros."""
        ...

    async def upload(
        self, buffer: int, offset: int, source: Source, source_offset: int, nbytes: int
    ) -> None:
        """Write bytes of a source."""
        ...

    async def read(self, buffer: int, offset: int, nbytes: int) -> bytes:
        """Read bytes; any offset and length."""
        ...

    async def create_pipelines(self, specs: Sequence[PipelineSpec]) -> list[int]:
        """Compile kernels, all at once."""
        ...

    async def load_plan(self, plan: Plan) -> int:
        """Take a plan over: bind groups, params, staging."""
        ...

    async def run(self, plan: int, blob: np.ndarray) -> bytes:
        """Write the blob's inputs, replay, and read the outputs: one crossing."""
        ...

    async def profile(self, plan: int, blob: np.ndarray) -> tuple[bytes, list[float]]:
        """`run` with a pass a dispatch; also microseconds of each."""
        ...

    async def repeat(self, plan: int, count: int) -> float:
        """Milliseconds that `count` runs take, on what lies in the plan's buffers."""
        ...

    def destroy_plan(self, plan: int) -> None:
        """Free a plan."""
        ...

    def destroy_buffers(self, buffers: Sequence[int]) -> None:
        """Free buffers."""
        ...

    def plan_nbytes(self, plan: int) -> int:
        """Device bytes a plan holds for itself."""
        ...

    def stats(self) -> dict[str, int]:
        """Live objects: buffers, buffer_nbytes (plans' own included), plans, pipelines."""
        ...

    async def close(self) -> None:
        """Give the device back."""
        ...
