"""A run under examination: node by node on the device, every result beside the reference's.

The reference gets what the device itself gave to a node, so an error shows where it is made and
not where it has grown. Nothing else differs from a run: the same kernels on the same buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..errors import UnsupportedOperator
from .call import Call, Env
from .constants import upload_constant
from .limits import padded
from .lowering import Dispatch
from .memory import tensors_read
from .operator import Operator
from .reference import run_reference
from .values import Double, DoubleList, Tensor, ValueId

if TYPE_CHECKING:
    from .residence import Residence, Variant

TOLERANCE = 1e-3
"""Of a float tensor's largest value, beside CANCELLED of its node's largest input.

Where a tie may have been rounded otherwise, int8 and uint8 may be one off, as may each half of
a uint32: a pair of float16.
"""

CANCELLED = 1e-6

Why = Literal["nan", "inf", "mismatch"]


@dataclass(frozen=True, slots=True)
class Fault:
    """The first wrong value, and what computed it.

    `why` is `nan` or `inf` where the node's inputs had none, else `mismatch`. `kernels` are the
    node's dispatches with their overrides, `output` is the name in the operator's signature.
    `expected` is None for a user's kernel that has no reference. `wrong` of the tensor's `numel`
    values are like the one at `index`.
    """

    node: int
    operator: str
    kernels: tuple[str, ...]
    output: str
    index: tuple[int, ...]
    found: float
    expected: float | None
    tolerance: float
    wrong: int
    numel: int
    why: Why
    place: str = ""
    """The method and the delegate, for a node of a program."""

    def __str__(self) -> str:
        """One sentence with all of it."""
        by = f", kernel {', '.join(self.kernels)}" if self.kernels else ""
        at = f"{self.output}{list(self.index)} is {self.found:.7g}"
        says = "" if self.expected is None else f"the reference has {self.expected:.7g}"
        if self.why == "mismatch":
            says += f", allowed are {self.tolerance:.3g} from it"
        else:
            said = "no NaN" if self.why == "nan" else "nothing infinite"
            says = f"and {said} was in its inputs" + (f"; {says}" if says else "")
        count = f"{self.wrong} of {self.numel} values are so"
        place = f"{self.place}: " if self.place else ""
        return f"{place}{self.operator} (node {self.node}){by}: {at}, {says}; {count}"


@dataclass(frozen=True, slots=True)
class DebugReport:
    """What `Session.debug` found: the first `fault`, or None after all `nodes` were examined.

    `unchecked` are kernels without a reference, looked at for NaN and infinity only. `outputs` are
    those of the run, none where it ended at a fault.
    """

    nodes: int
    fault: Fault | None = None
    unchecked: tuple[str, ...] = ()
    outputs: dict[str, np.ndarray] = field(default_factory=dict)

    def __str__(self) -> str:
        """What is wrong, or that nothing is."""
        if self.fault is not None:
            return str(self.fault)
        rest = f"; {', '.join(self.unchecked)} has no reference" if self.unchecked else ""
        return f"nodes examined: {self.nodes}, none is wrong{rest}"

    def plain(self) -> dict[str, Any]:
        """The same as plain data, without outputs; numbers that JSON lacks as their names."""
        fault = None if self.fault is None else asdict(self.fault)
        for name in ("found", "expected"):
            if fault is not None and fault[name] is not None and not isfinite(fault[name]):
                fault[name] = str(fault[name])
        return {"nodes": self.nodes, "fault": fault, "unchecked": self.unchecked, "text": str(self)}


async def examine(
    residence: Residence, calls: Sequence[Call], variant: Variant, env: Env
) -> DebugReport:
    """Run the chain node by node on inputs that are on the device; stop at the first fault.

    Raises what a run raises, IndexOutOfRange with its node among it.
    """
    nodes, unchecked = 0, dict[str, None]()
    first = next(iter(residence.variants.values())).lowered
    for call in calls:
        if call.index in residence.memory.elided or _has_no_work(call):
            continue
        nodes += 1
        once = call.index in residence.memory.once
        lowered = first if once else variant.lowered
        step = _Step(residence, call.with_env(lowered.env if once else env))
        dispatches = lowered.once if once else lowered.dispatches
        fault = await step.run([d for d in dispatches if d.node == call.index], once)
        if step.unchecked:
            unchecked[call.name] = None
        if fault is not None:
            return DebugReport(nodes, fault, tuple(unchecked))
    outputs = {p.name: await residence.read_live(env, p.value) for p in residence.graph.outputs}
    return DebugReport(nodes, None, tuple(unchecked), outputs)


def _has_no_work(call: Call) -> bool:
    return type(call.operator).lower is Operator.lower


class _Step:
    """One node: its tensors before and after it, on the device and by the reference."""

    def __init__(self, residence: Residence, call: Call) -> None:
        self._residence = residence
        self._call = call
        self.unchecked = False

    async def run(self, dispatches: Sequence[Dispatch], once: bool) -> Fault | None:
        """Work that is done once at build is not repeated, only compared."""
        call, residence = self._call, self._residence
        given = {i: await self._given(i, once) for i in dict.fromkeys(tensors_read(call))}
        if not once:
            await residence.run_nodes(dispatches, {call.index}, call.env)
        wanted = {i: array.copy() for i, array in given.items()}
        for i in call.result_ids:
            wanted[i] = np.zeros_like(await residence.read_live(call.env, i))
        try:
            run_reference(call, wanted.__getitem__)
        except UnsupportedOperator:
            self.unchecked = True
        kernels = tuple(dict.fromkeys(map(_told, dispatches)))
        inputs = self._numbers(given)
        for name, i in self._written(once):
            found = await residence.read_live(call.env, i)
            seen = _first_wrong(found, None if self.unchecked else wanted[i], inputs)
            if seen is not None:
                return Fault(call.index, call.name, kernels, name, *seen)
        return None

    async def _given(self, i: ValueId, once: bool) -> np.ndarray:
        """A tensor that the node reads; stored weights have left the device, they come again."""
        memory, bridge = self._residence.memory, self._residence.bridge
        if memory.slots[memory.slot_of[i]].kind != "transient":
            return await self._residence.read_live(self._call.env, i)
        batch = next(b for b in memory.batches if self._call.index in b.nodes)
        place = memory.offset_of[i]
        constant = next(u.constant for u in batch.uploads if u.offset == place)
        spec = self._residence.live_spec(self._call.env, i)
        [buffer] = await bridge.create_buffers([padded(spec.nbytes)], ["a stored weight"])
        try:
            await upload_constant(bridge, buffer, self._residence.graph.constants[constant])
            raw = await bridge.read(buffer, 0, spec.nbytes)
        finally:
            bridge.destroy_buffers([buffer])
        return np.frombuffer(raw, spec.dtype).reshape(spec.dims)

    def _written(self, once: bool) -> list[tuple[str, ValueId]]:
        """Names and ids of results and of tensors that the node changes.

        What a node changed at build was other before, which nobody remembers.
        """
        call = self._call
        mutated = {a.name for a in call.operator.signature.arguments if a.mutated}
        written = [(call.result_name(at), i) for at, i in enumerate(call.result_ids)]
        for name, ids in call.tensor_ids().items():
            if name in mutated and not once:
                several = ids if isinstance(ids, list) else [ids]
                written += [(name, i) for i in several if i is not None]
        return [(n, i) for n, i in written if isinstance(call.graph.values[i], Tensor)]

    def _numbers(self, given: dict[ValueId, np.ndarray]) -> _Numbers:
        """What is to be known of the node's float tensors and literals."""
        numbers = [a.ravel() for a in given.values() if a.dtype.kind == "f"]
        for i in self._call.argument_ids:
            value = self._call.graph.values[i]
            if isinstance(value, Double):
                numbers.append(np.array([value.value]))
            elif isinstance(value, DoubleList):
                numbers.append(np.array(value.items, np.float64))
        return _Numbers(
            any(np.isnan(a).any() for a in numbers),
            any(np.isinf(a).any() for a in numbers),
            max((_largest(a) for a in numbers), default=0.0),
        )


@dataclass(frozen=True, slots=True)
class _Numbers:
    """A node's inputs: whether there is a NaN, something infinite, and the largest else."""

    nan: bool
    inf: bool
    largest: float


def _largest(array: np.ndarray) -> float:
    return float(np.abs(array[np.isfinite(array)].astype(np.float64)).max(initial=0))


def _told(dispatch: Dispatch) -> str:
    """A kernel with its overrides: the variant that was chosen."""
    overrides = ", ".join(f"{name}={value:g}" for name, value in dispatch.constants)
    return f"{dispatch.kernel.name}({overrides})"


Seen = tuple[tuple[int, ...], float, float | None, float, int, int, Why]


def _first_wrong(found: np.ndarray, wanted: np.ndarray | None, inputs: _Numbers) -> Seen | None:
    """The first value that is wrong, as the fields of a Fault from `index` on."""
    kinds: list[tuple[Why, np.ndarray]] = []
    tolerance = 0.0
    if found.dtype.kind == "f":
        kinds += [("nan", np.isnan(found) & (not inputs.nan))]
        kinds += [("inf", np.isinf(found) & (not inputs.inf))]
    if wanted is not None:
        right, tolerance = _near(found, wanted, inputs.largest)
        kinds.append(("mismatch", ~right))
    for why, wrong in kinds:
        if wrong.any():
            index = tuple(int(i) for i in np.argwhere(wrong)[0])
            expected = None if wanted is None else float(wanted[index])
            count = int(wrong.sum())
            return index, float(found[index]), expected, tolerance, count, found.size, why
    return None


def _near(found: np.ndarray, wanted: np.ndarray, largest: float) -> tuple[np.ndarray, float]:
    """Where two tensors agree, and how far they may be apart."""
    if found.dtype == np.uint32:
        halves = [a.reshape(-1).view(np.uint16).astype(np.int32) for a in (found, wanted)]
        apart = np.abs(halves[0] - halves[1]).reshape(*found.shape, 2).max(axis=-1)
        return apart <= 1, 1.0
    if found.dtype.kind != "f":
        step = 1.0 if found.dtype in (np.int8, np.uint8) else 0.0
        return np.abs(found.astype(np.int64) - wanted.astype(np.int64)) <= step, step
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    tolerance = TOLERANCE * _largest(b) + CANCELLED * largest
    with np.errstate(invalid="ignore"):
        near = (a == b) | (np.abs(a - b) <= tolerance) | (np.isnan(a) & np.isnan(b))
    return near, tolerance
