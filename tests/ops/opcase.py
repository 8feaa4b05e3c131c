"""One operator call as data: built and run the same way on NumPy and in the browser.

    case = OpCase("aten.add.Tensor", [In("a", a), In("b", b), 2], expected=[a + 2 * b])
    check(case)              # the NumPy executor
    check(case, gpu)         # real Chromium
    check_all(cases, gpu)    # many, in few round trips

`expected` comes from a route of the test's own, in float64 where the result is a float.
"""

import asyncio
import inspect
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ops import features

BATCH = 32
"""Cases in one round trip: it costs as much as a small case, and is what fails together."""

LOOP = asyncio.new_event_loop()
"""One for all cases: `asyncio.run` makes one each, and takes longer than a small case."""


@dataclass
class In:
    """An input; `max_dims` makes it live, with `array` as the first run's value."""

    name: str
    array: np.ndarray
    max_dims: tuple | None = None


@dataclass
class Const:
    """A constant; `prepack` sends it through et_vk.prepack.default."""

    array: np.ndarray
    prepack: bool = False


@dataclass
class Sym:
    """A SymInt input."""

    name: str
    value: int


@dataclass
class OpCase:
    """`runs` are further runs on the same session: input values by name, expected results.

    `mutated` names arguments by position whose contents after the run follow the results. `then`
    are further calls, each on the first result so far: name and more arguments.
    """

    op: str
    args: list[Any]
    expected: list[np.ndarray]
    runs: list[tuple[dict[str, Any], list[np.ndarray]]] = field(default_factory=list)
    limits: dict[str, int] | None = None
    atol: float = 1e-5
    rtol: float = 1e-5
    outputs: tuple[int, ...] | None = None
    mutated: tuple[int, ...] = ()
    then: tuple[tuple[Any, ...], ...] = ()

    def __str__(self):
        shapes = [str(list(a.array.shape)) for a in self.args if isinstance(a, (In, Const))]
        limits = "".join(f" {k}={v}" for k, v in (self.limits or {}).items())
        return f"{self.op} {' '.join(shapes)}{limits}"


async def run_spec(spec, kind):
    """Build and run one encoded case; also runs inside the browser, so it imports for itself.

    A run that is None resets the session instead.
    """
    import sys

    import webgpu_py as wg

    store = sys.modules[wg.__name__].__dict__
    device = store.get(f"_test_device_{kind}")
    if device is None:
        device = store[f"_test_device_{kind}"] = await wg.request_device(kind)
    before = device.bridge.stats()
    g = wg.Graph()
    seen = {}

    def decode(a):
        if "input" in a:
            if a["input"] not in seen:
                dims = [
                    wg.dim(f"{a['input']}{i}", max=m) if a["live"] else m
                    for i, m in enumerate(a["dims"])
                ]
                seen[a["input"]] = g.input(a["input"], dims, a["dtype"])
            return seen[a["input"]]
        if "symint" in a:
            return g.symint(a["symint"])
        if "const" in a:
            c = g.constant(a["const"])
            return g.call("et_vk.prepack.default", c) if a["prepack"] else c
        if "list" in a:
            return [decode(b) for b in a["list"]]
        return a["value"]

    session = None
    try:
        args = [decode(a) for a in spec["args"]]
        results = g.call(spec["op"], *args)
        results = results if isinstance(results, tuple) else (results,)
        for name, *rest in spec["then"]:
            results = (g.call(name, results[0], *rest),)
        wanted = spec["outputs"] if spec["outputs"] is not None else range(len(results))
        for i in wanted:
            g.output(f"out{i}", results[i])
        for i in spec["mutated"]:
            g.output(f"arg{i}", args[i])
        session = await g.build(device, spec["limits"])
        found = []
        for run in spec["runs"]:
            if run is None:
                await session.reset()
            else:
                found.append(list((await session.run(**run)).values()))
        memory = session.memory()["total"]
        allocated = device.bridge.stats()["buffer_nbytes"] - before["buffer_nbytes"]
        session.close()
        after = device.bridge.stats()
        leaked = {k: after[k] - before[k] for k in ("buffers", "buffer_nbytes", "plans")}
        return {"found": found, "memory": memory, "allocated": allocated, "leaked": leaked}
    except wg.WebGPUPyError as error:
        created = device.bridge.stats()["buffers"] - before["buffers"]
        if session is not None:
            session.close()
        error.args = (f"{error} [buffers created: {created}]",)
        raise


async def run_specs(specs, source, kind):
    """Many in turn, with what refused one in its place; also runs inside the browser."""
    import traceback

    names = {}
    exec(source, names)
    done = []
    for spec in specs:
        try:
            done.append(await names["run_spec"](spec, kind))
        except Exception:
            done.append({"error": traceback.format_exc()})
    return done


def _encode(a):
    if isinstance(a, In):
        dims = list(a.max_dims or a.array.shape)
        dtype = "int32" if a.array.dtype == np.int64 else str(a.array.dtype)
        return {"input": a.name, "dims": dims, "dtype": dtype, "live": a.max_dims is not None}
    if isinstance(a, Const):
        return {"const": a.array, "prepack": a.prepack}
    if isinstance(a, Sym):
        return {"symint": a.name}
    if isinstance(a, list) and any(isinstance(b, (In, Const, Sym)) for b in a):
        return {"list": [_encode(b) for b in a]}
    return {"value": a}


def inputs_of(args):
    """Values of inputs by name."""
    found = {}
    for a in args:
        if isinstance(a, In):
            found[a.name] = a.array
        elif isinstance(a, Sym):
            found[a.name] = a.value
        elif isinstance(a, list):
            found.update(inputs_of(a))
    return found


def spec_of(case):
    """A case as what `run_spec` takes."""
    first = inputs_of(case.args)
    further = [None if inputs is None else {**first, **inputs} for inputs, _ in case.runs]
    return {
        "op": case.op,
        "args": [_encode(a) for a in case.args],
        "runs": [first, *further],
        "limits": case.limits,
        "outputs": list(case.outputs) if case.outputs is not None else None,
        "mutated": list(case.mutated),
        "then": [list(call) for call in case.then],
    }


def run(case, gpu=None):
    """Results of every run of a case; checks that memory() is exact and nothing leaks."""
    spec = spec_of(case)
    if gpu is None:
        done = LOOP.run_until_complete(run_spec(spec, "cpu"))
    else:
        done = gpu.call(run_spec, spec=spec, kind=gpu.kind)
    return _clean(case, done)


def run_all(cases, gpu=None):
    """`run` of many cases, `BATCH` in a round trip; one that is refused fails by its name."""
    found = []
    for start in range(0, len(cases), BATCH):
        some = cases[start : start + BATCH]
        given = {"specs": [spec_of(c) for c in some], "source": inspect.getsource(run_spec)}
        if gpu is None:
            done = LOOP.run_until_complete(run_specs(**given, kind="cpu"))
        else:
            done = gpu.call(run_specs, **given, kind=gpu.kind)
        found += [_clean(case, one) for case, one in zip(some, done, strict=True)]
    return found


def _clean(case, done):
    assert "error" not in done, f"{case}: {done['error']}"
    assert done["memory"] == done["allocated"], (case, done)
    assert not any(done["leaked"].values()), (case, done["leaked"])
    return done["found"]


def check(case, gpu=None):
    """Every run's results against the expected ones: atol OR rtol an element, integers exact."""
    _compare(case, run(case, gpu), gpu)


def check_all(cases, gpu):
    """`check` of many cases; it fails by the name of the first that is wrong."""
    for case, found in zip(cases, run_all(cases, gpu), strict=True):
        _compare(case, found, gpu)


def _compare(case, runs, gpu):
    wanted = [case.expected, *(expected for _, expected in case.runs)]
    for at, (found, expected) in enumerate(zip(runs, wanted, strict=True)):
        for i, (got, want) in enumerate(zip(found, expected, strict=True)):
            assert_close(got, np.asarray(want), case.atol, case.rtol, f"{case} run {at} result {i}")
    features.record(case.op, gpu.kind if gpu else "cpu", _dtypes(case.args), _live(case.args))
    packed = {str(a.array.dtype) for a in case.args if isinstance(a, Const) and a.prepack}
    if packed:
        features.record("et_vk.prepack.default", gpu.kind if gpu else "cpu", packed, live=False)


def _live(args):
    return any(
        _live(a) if isinstance(a, list) else isinstance(a, In) and a.max_dims is not None
        for a in args
    )


def _dtypes(args):
    found = set()
    for a in args:
        if isinstance(a, (In, Const)):
            found.add("int32" if a.array.dtype == np.int64 else str(a.array.dtype))
        elif isinstance(a, list):
            found |= _dtypes(a)
    return found


def assert_close(got, want, atol, rtol, what=""):
    """Shapes equal; floats within atol or rtol an element, NaN where NaN; everything else exact."""
    assert got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
    if got.dtype.kind != "f":
        wrong = np.argwhere(got != want)
        assert not len(wrong), f"{what}: {len(wrong)} differ, first at {wrong[:1]}"
        return
    a, b = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(invalid="ignore"):
        error = np.abs(a - b)
        good = (a == b) | (error <= atol) | (error <= rtol * np.maximum(np.abs(b), 1e-6))
    good |= np.isnan(a) & np.isnan(b)
    bad = np.argwhere(~good)
    assert not len(bad), (
        f"{what}: {len(bad)} of {good.size} differ, first at {bad[0]}: "
        f"{a[tuple(bad[0])]} against {b[tuple(bad[0])]}, max error {np.nanmax(error)}"
    )


def distinct(shape, seed=0, low=-1.0, high=1.0):
    """float32 values that are all different, in random order."""
    n = int(np.prod(shape))
    values = np.linspace(low, high, n + 2)[1:-1].astype(np.float32)
    return np.random.default_rng(seed).permutation(values).reshape(shape)
