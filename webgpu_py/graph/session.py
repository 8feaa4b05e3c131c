"""A graph on a device: built once, run many times, one crossing a run."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import IndexOutOfRange, ShapeError, UnsupportedOperator
from ..events import since, tell
from . import boundary
from .call import Call, Env
from .residence import Progress, Residence, Variant
from .shapes import Propagation, propagate, resolve
from .values import Dim, GraphIR, Port, SymInt, Tensor, ValueId

if TYPE_CHECKING:
    from ..device import Device
    from .autotune import Tuned
    from .debug import DebugReport


@dataclass(frozen=True, slots=True)
class Replay:
    """What a loop in JavaScript needs to run one variant by itself.

    `nodes` and `kernels` say for each dispatch which node it belongs to and which WGSL file it
    runs; `buffers` has a handle for every port by name, `live` and `fault` among them. A live word
    is `base` plus, for every SymInt input, its value times the word's entry in `factors`.
    """

    plan: int
    nodes: tuple[int, ...]
    kernels: tuple[str, ...]
    buffers: dict[str, int]
    base: list[int]
    factors: dict[str, list[int]]


@dataclass(slots=True)
class _Timings:
    build_ms: float = 0.0
    run_ms: float = 0.0
    kernels: list[tuple[str, float]] = field(default_factory=list)


class Session:
    """Runs one graph on one device; made by `Graph.build` or `Session.build`."""

    def __init__(self, residence: Residence, calls: list[Call]) -> None:
        self.device = residence.device
        self.graph = residence.graph
        self._residence = residence
        self._calls = calls
        self._propagation = Propagation(self.graph, calls)
        self._lock = asyncio.Lock()
        self._timings = _Timings()
        self._closed = False

    # -- building

    @classmethod
    async def build(
        cls,
        device: Device,
        graph: GraphIR,
        limits: Mapping[str, int] | None = None,
        progress: Progress | None = None,
        prepare: Sequence[Mapping[str, tuple[int, ...]]] = (),
    ) -> Session:
        """Check, plan, lower, and only then allocate, upload and prepack.

        Kernels are compiled while constants are on their way, for the maximal dims and for those
        of `prepare`, dims by input name as `replay` takes them. `limits` are injected upper bounds
        on the device's, for tests. `progress` hears of every constant: (bytes done, bytes in all).
        Errors name the node.
        """
        start = time.perf_counter()
        capped = device.limits.capped(limits)
        calls = resolve(graph)
        env = propagate(graph, calls, {}, {})
        residence = Residence(device, graph, calls, capped)
        session = cls(residence, calls)
        envs = [session._env(dims) for dims in prepare]
        try:
            await residence.settle(residence.lower(env), envs, progress)
        except BaseException:
            residence.leave()
            raise
        session._timings.build_ms = 1e3 * (time.perf_counter() - start)
        told = {"nodes": len(calls), "dispatches": session.dispatches}
        told |= {"gpu_nbytes": session.memory()["total"]}
        tell("session.built", {**told, "ms": since(start)})
        return session

    # -- running

    async def run(self, **inputs: Any) -> dict[str, np.ndarray]:
        """Run on host arrays by input name; the outputs by name, int64 inputs narrowed.

        Raises ShapeError, DtypeError or IndexOutOfRange before anything reaches the device, and
        IndexOutOfRange after it for an index that only the device knows.
        """
        outputs = await self.run_list(self._ordered(inputs))
        return {p.name: a for p, a in zip(self.graph.outputs, outputs, strict=True)}

    async def run_list(self, inputs: Sequence[Any], profile: bool = False) -> list[np.ndarray]:
        """Run on arrays in input order; the outputs in output order, in device dtypes.

        With `profile`, `timings()` has the microseconds of each dispatch afterwards.
        """
        outputs, times = await self._run(inputs, profile)
        if profile:
            self._timings.kernels = times
        return outputs

    async def profile(self, **inputs: Any) -> list[tuple[str, float]]:
        """Run once with a pass and a timestamp pair a dispatch: (label, microseconds) each.

        FeatureMissing where the device has no timestamp-query.
        """
        await self.run_list(self._ordered(inputs), profile=True)
        return self._timings.kernels

    async def debug(self, **inputs: Any) -> DebugReport:
        """A run that examines every node: NaN, infinity, and a mismatch to the NumPy reference.

        It stops at the first fault, which leaves mutable tensors as that node did. Slow: every
        tensor is read back, and the reference takes float64's memory for the largest node.
        Errors as of `run`.
        """
        return await self.debug_list(self._ordered(inputs))

    async def debug_list(self, inputs: Sequence[Any]) -> DebugReport:
        """`debug` on arrays in input order."""
        from .debug import examine

        self._check_open()
        async with self._lock:
            arrays, env = self._bind(inputs)
            residence = self._residence
            variant = await residence.variant(env)
            blob = self._blob(variant, arrays, env)
            for t in variant.plan.inputs:
                residence.bridge.write(t.buffer, 0, blob[t.offset : t.offset + t.nbytes])
            return await examine(residence, self._calls, variant, env)

    def _ordered(self, inputs: Mapping[str, Any]) -> list[Any]:
        names = {p.name for p in self.graph.inputs}
        if names != set(inputs):
            raise ShapeError(f"this graph takes {sorted(names)}, got {sorted(inputs)}")
        return [inputs[p.name] for p in self.graph.inputs]

    async def _run(
        self, inputs: Sequence[Any], profile: bool
    ) -> tuple[list[np.ndarray], list[tuple[str, float]]]:
        self._check_open()
        async with self._lock:
            start = time.perf_counter()
            arrays, env = self._bind(inputs)
            variant = await self._residence.variant(env)
            blob = self._blob(variant, arrays, env)
            bridge = self._residence.bridge
            times: list[tuple[str, float]] = []
            if profile:
                result, spent = await bridge.profile(variant.handle, blob)
                times = list(zip(variant.plan.labels, spent, strict=True))
            else:
                result = await bridge.run(variant.handle, blob)
            outputs = self._outputs(variant, env, result)
            self._timings.run_ms = 1e3 * (time.perf_counter() - start)
            tell("session.ran", {"ms": since(start)}, logging.DEBUG)
            return outputs, times

    def _bind(self, inputs: Sequence[Any]) -> tuple[list[np.ndarray], Env]:
        ports = self.graph.inputs
        if len(inputs) != len(ports):
            raise ShapeError(f"{len(inputs)} inputs, this graph takes {len(ports)}")
        live: dict[ValueId, tuple[int, ...]] = {}
        host: dict[ValueId, np.ndarray] = {}
        symints: dict[ValueId, int] = {}
        arrays = []
        for port, given in zip(ports, inputs, strict=True):
            value = self.graph.values[port.value]
            if isinstance(value, SymInt):
                symints[port.value] = _symint(port.name, given)
                continue
            assert isinstance(value, Tensor)
            array = boundary.to_device(port.name, given, value.spec.dtype)
            boundary.check_live(port.name, array.shape, value.spec.dims)
            live[port.value] = array.shape
            host[port.value] = np.asarray(given)
            arrays.append(array)
        _check_named_dims(ports, live)
        return arrays, self._propagation.run(live, host, symints)

    def _blob(self, variant: Variant, arrays: Sequence[np.ndarray], env: Env) -> np.ndarray:
        blob = np.zeros(variant.plan.blob_nbytes, np.uint8)
        words = [value(env) for value in variant.lowered.live]
        parts = [np.array(words, np.int32), *arrays]
        for transfer, part in zip(variant.plan.inputs, parts, strict=True):
            blob[transfer.offset : transfer.offset + part.nbytes] = part.reshape(-1).view(np.uint8)
        return blob

    def _outputs(self, variant: Variant, env: Env, result: bytes) -> list[np.ndarray]:
        view = memoryview(result)
        self._residence.check_fault(variant.plan, result)
        return [
            boundary.from_device(
                view[t.offset : t.offset + t.nbytes], self._residence.live_spec(env, p.value)
            )
            for p, t in zip(self.graph.outputs, variant.plan.outputs, strict=True)
        ]

    async def replay(self, **dims: tuple[int, ...]) -> Replay:
        """Lower and load the variant for live dims by input name; others stay maximal."""
        self._check_open()
        async with self._lock:
            env = self._env(dims)
            variant = await self._residence.variant(env)
        ports = [*self.graph.inputs, *self.graph.outputs]
        buffer_of = variant.plan.buffer_of
        buffers = {p.name: buffer_of[p.value] for p in ports if p.value in buffer_of}
        buffers["live"] = self._residence.buffer(self._residence.slots.live)
        buffers["fault"] = self._residence.buffer(self._residence.slots.fault)
        dispatches = variant.lowered.dispatches
        nodes = tuple(d.node for d in dispatches)
        kernels = tuple(d.kernel.name for d in dispatches)
        return Replay(variant.handle, nodes, kernels, buffers, *self._linear_words(variant, env))

    def _env(self, dims: Mapping[str, tuple[int, ...]]) -> Env:
        live = {p.value: dims[p.name] for p in self.graph.inputs if p.name in dims}
        for port in self.graph.inputs:
            value = self.graph.values[port.value]
            if port.value in live and isinstance(value, Tensor):
                boundary.check_live(port.name, live[port.value], value.spec.dims)
        return propagate(self.graph, self._calls, live, {})

    async def autotune(self, **dims: tuple[int, ...]) -> list[Tuned]:
        """Time other kernels than the rule's for live dims by input name, and keep the fastest.

        From then on runs at these dims use them, as do sessions that are built later on this
        device; a browser keeps them for the next visit with the same adapter. Takes seconds to a
        minute, mostly to compile; what runs meanwhile on the GPU spoils it. Mutable tensors are
        written to: `reset` gives them their content back. Plans that `replay` gave for these dims
        are gone. FeatureMissing on the device "cpu".
        """
        from .autotune import tune

        self._check_open()
        async with self._lock:
            tuned = await tune(self._residence, self._env(dims))
        await self.device.keep_choices()
        return tuned

    def _linear_words(self, variant: Variant, env: Env) -> tuple[list[int], dict[str, list[int]]]:
        """Live words as linear forms of the SymInt inputs; UnsupportedOperator for others."""
        symints = [p for p in self.graph.inputs if p.value in env.symints]

        def words(**values: int) -> list[int]:
            given = {p.value: values.get(p.name, 0) for p in symints}
            # As at build, a value is not checked against dims it does not belong to.
            at = replace(env, symints={**env.symints, **given}, maximal=True)
            return [value(at) for value in variant.lowered.live]

        base = words()
        factors = {
            p.name: [b - a for a, b in zip(base, words(**{p.name: 1}), strict=True)]
            for p in symints
        }
        probe = {p.name: 3 + k for k, p in enumerate(symints)}
        for at, (found, start) in enumerate(zip(words(**probe), base, strict=True)):
            if found != start + sum(factors[name][at] * v for name, v in probe.items()):
                raise UnsupportedOperator("a live word is no linear form of positions")
        return base, factors

    # -- state and facts

    async def read(self, value: ValueId, offset: int = 0, nbytes: int | None = None) -> bytes:
        """Bytes of a tensor that lasts from run to run: constant, rearranged or mutated.

        `nbytes` from byte `offset`, by default to its end; ShapeError for any other value.
        """
        self._check_open()
        async with self._lock:
            return await self._residence.read(value, offset, nbytes)

    async def reset(self) -> None:
        """Give every mutable tensor (KV caches) its initial content again."""
        self._check_open()
        async with self._lock:
            await self._residence.reset()

    def memory(self) -> dict[str, int]:
        """Bytes held on the device by kind, equal to what was allocated; `total` adds them up."""
        found = self._residence.nbytes()
        return found | {"total": sum(found.values())}

    def timings(self) -> dict[str, Any]:
        """Milliseconds of build and last run, and the last `profile`'s time per dispatch."""
        return {
            "build_ms": self._timings.build_ms,
            "run_ms": self._timings.run_ms,
            "kernels": list(self._timings.kernels),
        }

    def _repr_html_(self) -> str:
        """A notebook shows memory and times as bars, and draws the graph."""
        from .drawing import graph_svg
        from .picture import graph_picture
        from .tables import facts_html

        title = f"Session on {self.device.kind}, {self.dispatches} dispatches"
        facts = facts_html(title, self.memory(), self.timings())
        return facts + graph_svg(graph_picture(self.graph))

    @property
    def dispatches(self) -> int:
        """Dispatches of the first (maximal) variant."""
        return len(next(iter(self._residence.variants.values())).lowered.dispatches)

    def _check_open(self) -> None:
        if self._closed:
            raise ShapeError("session is closed; build the graph again")

    def close(self) -> None:
        """Free everything this session holds on the device; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self._residence.leave()


def _symint(name: str, given: Any) -> int:
    value = int(given)
    if not -(2**31) <= value < 2**31:
        raise IndexOutOfRange(f"input {name!r}: {value} does not fit int32")
    return value


def _check_named_dims(ports: Sequence[Port], live: Mapping[ValueId, tuple[int, ...]]) -> None:
    seen: dict[str, tuple[int, str]] = {}
    for port in ports:
        if port.dims is None or port.value not in live:
            continue
        for at, (dim, size) in enumerate(zip(port.dims, live[port.value], strict=True)):
            if isinstance(dim, Dim):
                first, where = seen.setdefault(dim.name, (size, port.name))
                if first != size:
                    raise ShapeError(
                        f"dim {dim.name!r} is {first} in {where!r} and {size} in {port.name!r}"
                    )
            elif dim != size:
                raise ShapeError(f"input {port.name!r} dim {at} is {size}, must be {dim}")
