"""Graphs that a page writes: its steps replayed and run, against the same numbers in float64."""

import asyncio
import json

import numpy as np
import pytest

from webgpu_py.errors import FormatError, ShapeError
from webgpu_py.page import Service, _decoded, _encoded
from webgpu_py.page_graph import replayed

W = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
STEPS = [
    {"input": "x", "shape": [{"$dim": "n", "max": 8}, 4], "dtype": "float32"},
    {"constant": W},
    {
        "call": "aten.linear.default",
        "args": [{"$value": 0, "at": None}, {"$value": 1, "at": None}, None],
    },
    {"call": "aten.split_with_sizes_copy.default", "args": [{"$value": 2, "at": None}, [1, 2], 1]},
    {"output": "head", "value": {"$value": 3, "at": 0}},
    {"output": "tail", "value": {"$value": 3, "at": 1}},
]


def call(service, method, **args):
    text, buffers = _encoded(args)

    async def ask():
        return await service.call(1, method, text, buffers, print)

    return _decoded(*asyncio.run(ask()))


@pytest.mark.parametrize("method", ["_port", "__init__", "_session", "kind", "description", "none"])
def test_a_message_calls_no_more_than_what_is_meant_for_pages(service, method):
    assert "result" in call(service, "build", steps=STEPS, device="cpu")
    answer = call(service, method, name="x", value=1)
    assert answer["error"]["code"] == "FormatError"
    assert answer["error"]["message"] == f"{method}: not for a graph"


@pytest.fixture
def service():
    return Service()


def test_a_graph_is_built_described_and_run(service):
    built = call(service, "build", steps=STEPS, device="cpu")["result"]
    assert built["kind"] == "graph"
    assert built["inputs"] == [{"name": "x", "dtype": "float32", "dims": [8, 4]}]
    assert [(p["name"], p["dims"]) for p in built["outputs"]] == [
        ("head", [8, 1]),
        ("tail", [8, 2]),
    ]
    for n in (1, 5, 8):
        x = np.arange(4 * n, dtype=np.float32).reshape(n, 4)
        out = call(service, "run", inputs={"x": x})["result"]
        y = x.astype(np.float64) @ W.T.astype(np.float64)
        np.testing.assert_allclose(out["head"], y[:, :1], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(out["tail"], y[:, 1:], rtol=1e-6, atol=1e-6)
    assert call(service, "memory")["result"]["gpu"] == built["memory"]
    assert call(service, "timings")["result"]["run_ms"] > 0
    call(service, "close")
    assert call(service, "run", inputs={})["error"]["code"] == "FormatError"


def test_errors_of_building_and_running_carry_their_code(service):
    def code(method, **args):
        return call(service, method, **args)["error"]["code"]

    assert code("build", steps=STEPS[:4], device="cpu") == "ShapeError"
    unknown = [*STEPS[:2], {"call": "aten.nothing.default", "args": []}]
    assert code("build", steps=unknown, device="cpu") == "UnsupportedOperator"
    call(service, "build", steps=STEPS, device="cpu")
    assert code("run", inputs={"x": np.zeros((9, 4), np.float32)}) == "ShapeError"
    assert code("run", inputs={"y": 1}) == "ShapeError"


def test_results_and_steps_that_are_not_there_are_named():
    with pytest.raises(ShapeError, match="step 3 has 2 results, not a result 2"):
        replayed([*STEPS[:4], {"output": "y", "value": {"$value": 3, "at": 2}}])
    with pytest.raises(ShapeError, match="step 2 has 1 results"):
        replayed([*STEPS[:3], {"output": "y", "value": {"$value": 2, "at": 0}}])
    with pytest.raises(FormatError, match=r"step 1: .*'other'"):
        replayed([STEPS[0], {"other": 1}])


def test_a_symint_steers_a_run(service):
    steps = [
        {"input": "x", "shape": [6, 2], "dtype": "float32"},
        {"symint": "at"},
        {
            "call": "aten.select_copy.int",
            "args": [{"$value": 0, "at": None}, 0, {"$value": 1, "at": None}],
        },
        {"output": "row", "value": {"$value": 2, "at": None}},
    ]
    built = call(service, "build", steps=steps, device="cpu")
    assert built["result"]["inputs"][1] == {"name": "at", "dtype": "symint", "dims": []}, (
        json.dumps(built)
    )
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    for at in (0, 4, 5):
        out = call(service, "run", inputs={"x": x, "at": at})["result"]
        np.testing.assert_array_equal(out["row"], x[at])
