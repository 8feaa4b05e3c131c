"""A loaded `.pte`: its methods as callables, delegates on a device, the rest on NumPy.

program = await load("model.pte", device=device)
out = await program.forward(a, b)
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .browser_source import open_url
from .device import Device
from .errors import FormatError, UnsupportedOperator
from .formats import pte_records as pte
from .formats.pte import read_pte
from .formats.vk_graph import read_vk_graph
from .graph.operator import operator_names
from .graph.session import Session
from .graph.values import Bool, Double, GraphIR, Int, Source, String
from .http_source import open_http
from .method import Method, Result
from .portable import missing
from .program_steps import bind, kept_values
from .program_values import initial_values
from .sources import close_sources, fetch_whole, give_up, open_source

__all__ = ["BACKEND_ID", "Method", "Program", "Result", "delegate_graphs", "load"]

BACKEND_ID = "VulkanBackend"


class Program:
    """A `.pte` on a device; methods are attributes: `await program.forward(x)`."""

    def __init__(
        self,
        records: pte.PteProgram,
        methods: Mapping[str, Method],
        sources: Sequence[Source] = (),
    ) -> None:
        self.records = records
        self.methods = dict(methods)
        self._sources = sources

    def __getattr__(self, name: str) -> Method:
        """The method of that name."""
        if not name.startswith("_") and name in self.methods:
            return self.methods[name]
        raise AttributeError(f"no method {name!r}; see Program.methods")

    def method(self, name: str) -> Method:
        """The method of that name; FormatError when the program has none."""
        if name not in self.methods:
            raise FormatError(f"no method {name!r}; the program has {', '.join(self.methods)}")
        return self.methods[name]

    @property
    def metadata(self) -> dict[str, Any]:
        """What methods without inputs and instructions return, such as `get_vocab_size`."""
        found: dict[str, Any] = {}
        for name, plan in self.records.plans.items():
            outputs = [plan.values[i] for i in plan.outputs]
            if plan.inputs or any(plan.chains):
                continue
            literals = [v.value for v in outputs if isinstance(v, (Int, Double, Bool, String))]
            if len(literals) == len(outputs):
                found[name] = literals[0] if len(literals) == 1 else literals
        return found

    async def reset(self) -> None:
        """Give every method's caches their initial state again."""
        for method in self.methods.values():
            await method.reset()

    def memory(self) -> dict[str, int]:
        """Device bytes by kind, over all delegates."""
        total: dict[str, int] = {}
        for method in self.methods.values():
            for session in method.sessions:
                for kind, nbytes in session.memory().items():
                    total[kind] = total.get(kind, 0) + nbytes
        return total

    def _repr_html_(self) -> str:
        """A notebook draws every method: operators on the device, and those on NumPy."""
        from .graph.drawing import graph_svg
        from .picture import program_picture

        return "".join(f"<h4>{p['name']}</h4>{graph_svg(p)}" for p in program_picture(self))

    def close(self) -> None:
        """Free everything on the device, and close the files that `load` opened."""
        for method in self.methods.values():
            method.close()
        close_sources(self._sources)


async def load(
    source: str | os.PathLike[str] | bytes | Source,
    *,
    device: Device,
    external: Sequence[str | os.PathLike[str] | bytes | Source] | None = None,
    limits: Mapping[str, int] | None = None,
) -> Program:
    """Load a `.pte` from a path, URL or bytes; `external` are its `.ptd` files.

    Without `external`, the `.ptd` files beside a path are taken. Only the program and the segments
    that are used are read. All operators that are missing, delegated or not, are reported together
    before anything is put on the device.

    Raises:
        FormatError: the file is damaged, or lacks data that is in none of the `.ptd` files.
        UnsupportedOperator: operators or backends that this package has not.
        ShapeError, LimitExceeded: the program does not fit together, or not on the device.
    """
    given = [source, *(_beside(source) if external is None else external)]
    owned: list[Source] = []
    methods: dict[str, Method] = {}
    try:
        opened = []
        for one in given:
            opened.append(await open_any(one))
            if opened[-1] is not one:
                owned.append(opened[-1])
        records = await read_pte(opened[0], opened[1:])
        graphs = await delegate_graphs(records)
        names = missing_operators(records, graphs)
        if names:
            raise UnsupportedOperator(f"{opened[0].name}: unsupported op: {', '.join(names)}")
        for name, plan in records.plans.items():
            chains = bind(plan, graphs[name])
            stored = await _stored(records, plan)
            values = initial_values(plan, stored, kept_values(plan, chains))
            methods[name] = Method(plan, [], values, chains)
        for name, method in methods.items():
            for graph in graphs[name]:
                method.sessions.append(await Session.build(device, graph, limits))
    except BaseException as error:
        for method in methods.values():
            method.close()
        await give_up(owned, error)
        raise
    fetch_whole(owned)
    return Program(records, methods, owned)


def _beside(source: Any) -> list[str]:
    """The `.ptd` files in the folder of a path."""
    if not isinstance(source, (str, os.PathLike)) or not os.path.exists(source):
        return []
    return sorted(str(p) for p in Path(source).parent.glob("*.ptd"))


async def open_any(given: Any) -> Source:
    """A source: an address is read from its server, as is in a browser any path of no file."""
    if is_address(given):
        in_browser = sys.platform == "emscripten"
        return await open_url(given) if in_browser else await open_http(given)
    return open_source(given)


def is_address(given: Any) -> bool:
    """Whether a string is a URL; in a browser it may be a relative one."""
    if not isinstance(given, str):
        return False
    return "://" in given or (sys.platform == "emscripten" and not os.path.exists(given))


async def delegate_graphs(records: pte.PteProgram) -> dict[str, list[GraphIR]]:
    """Every method's delegates as graphs; UnsupportedOperator for another backend's delegate."""
    found: dict[str, list[GraphIR]] = {}
    for name, plan in records.plans.items():
        foreign = sorted({d.id for d in plan.delegates} - {BACKEND_ID})
        if foreign:
            raise UnsupportedOperator(
                f"{name}: delegate {', '.join(foreign)} is not supported, only {BACKEND_ID}; "
                "export with VulkanPartitioner alone"
            )
        found[name] = [
            await read_vk_graph(d.blob, records.named_data, f"{name} delegate {k}")
            for k, d in enumerate(plan.delegates)
        ]
    return found


def missing_operators(
    records: pte.PteProgram, graphs: Mapping[str, Sequence[GraphIR]]
) -> list[str]:
    """Names of delegated and portable operators that this package has not, sorted."""
    known = set(operator_names())
    used = {n.op for some in graphs.values() for g in some for n in g.nodes}
    portable = {
        plan.operators[step.op]
        for plan in records.plans.values()
        for chain in plan.chains
        for step in chain
        if isinstance(step, pte.KernelCall)
    }
    return sorted(used - known) + missing(portable)


async def _stored(records: pte.PteProgram, plan: pte.ExecutionPlan) -> dict[int, bytes]:
    """Bytes of the plan's constants and initial states by value id; equal ranges are read once."""
    read: dict[tuple[str, int, int], bytes] = {}
    found: dict[int, bytes] = {}
    room = 2 * records.source.nbytes + sum(span.nbytes for span in records.named_data.values())
    for index, value in enumerate(plan.values):
        if not isinstance(value, pte.PteTensor) or value.data is None:
            continue
        span = value.data
        key = (span.source.name, span.offset, span.nbytes)
        if key not in read:
            # Overlapping ranges must not turn a small file into more memory than it has bytes.
            room -= span.nbytes
            if room < 0:
                raise FormatError(
                    f"{plan.name}: constants overlap, they need more bytes than the file holds"
                )
            read[key] = await span.read()
        found[index] = read[key]
    return found
