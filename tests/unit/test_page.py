"""The page's service without a page: what crosses, pictures of programs, inputs made as asked."""

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest

from faults import FaultyBridge
from tiny_folder import files
from webgpu_py.backends.cpu import CpuBridge
from webgpu_py.device import Device, request_device
from webgpu_py.errors import DeviceLost, DtypeError, FeatureMissing, ShapeError
from webgpu_py.formats.pte_records import PteTensor
from webgpu_py.page import Call, Service, _decoded, _encoded
from webgpu_py.page_model import open_model
from webgpu_py.page_program import make_input, open_program
from webgpu_py.sources import open_source

CASES = Path(__file__).resolve().parents[1] / "conformance" / "cases"


def tensor(dtype, *sizes):
    return PteTensor(dtype, sizes, tuple(range(len(sizes))))


async def opened(case):
    source = open_source(CASES / case / "model.pte")
    return await open_program(source, await request_device("cpu"), {}, Call(print))


def test_values_cross_both_ways():
    arrays = [np.arange(6).reshape(2, 3).astype(t) for t in ("float32", "int64", "bool")]
    text, buffers = _encoded({"a": arrays, "n": np.float32(0.5), "s": "é", "none": None})
    back = _decoded(text, buffers)
    for sent, got in zip(arrays, back["a"], strict=True):
        np.testing.assert_array_equal(sent, got)
        assert sent.dtype == got.dtype
    assert (back["n"], back["s"], back["none"]) == (0.5, "é", None)


def test_requests_without_an_open_file_are_refused_with_a_code():
    async def ask(method):
        text, _ = await Service().call(1, method, "{}", [], print)
        return json.loads(text)["error"]["code"]

    assert asyncio.run(ask("run")) == "FormatError"
    assert asyncio.run(ask("_answer")) == "FormatError"


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_request_can_be_cancelled_at_once_and_later(steps):
    async def scene():
        service = Service()
        async with service._turn:
            waiting = service.call(3, "look", "{}", [], print)
            for _ in range(steps):
                await asyncio.sleep(0)
            service.cancel(3)
            service.cancel(4)
            text, _ = await waiting
        return json.loads(text)["error"]["code"]

    assert asyncio.run(scene()) == "Cancelled"


def test_a_lost_device_is_requested_anew_by_the_next_open():
    class Lost:
        kind = "model"

        async def look(self, args, call):
            raise DeviceLost("gone")

        def close(self):
            raise DeviceLost("still gone")

    async def scene():
        service = Service()
        bridge = FaultyBridge()
        service._device = Device(bridge, new_bridge)
        service._opened = Lost()
        text, _ = await service.call(1, "look", "{}", [], print)
        assert (await service._granted("cpu")).bridge is bridge
        bridge.lost = True
        await service.close()
        return json.loads(text)["error"]["code"], (await service._granted("cpu")).lost

    async def new_bridge():
        return CpuBridge()

    assert asyncio.run(scene()) == ("DeviceLost", False)


def test_picture_has_boxes_edges_and_weights():
    async def scene():
        program = await opened("rms_norm/width_lt_wg")
        return program.description()["methods"][0]

    picture = asyncio.run(scene())
    assert picture["name"] == "forward" and len(picture["inputs"]) == 1
    box = next(b for b in picture["boxes"] if "rms_norm" in b["op"])
    assert box["on"] == "gpu" and len(box["weights"]) == 1
    assert box["edges"][0]["from"] == -1
    assert box["edges"][0]["dims"] == picture["inputs"][0]["dims"]
    assert picture["outputs"][0]["from"] == len(picture["boxes"]) - 1


ALONE = [p.parent for p in CASES.glob("*/*/model.pte") if not list(p.parent.glob("*.ptd"))]


@pytest.mark.parametrize("case", sorted(str(p.relative_to(CASES)) for p in ALONE))
def test_every_case_has_a_picture_whose_edges_begin_somewhere(case):
    async def scene():
        return (await opened(case)).description()["methods"]

    for picture in asyncio.run(scene()):
        for at, box in enumerate(picture["boxes"]):
            assert box["results"] and all(e["from"] < at for e in box["edges"])
        json.dumps(picture)


def test_a_run_gives_outputs_with_their_facts():
    async def scene():
        program = await opened("rms_norm/width_lt_wg")
        port = program.description()["methods"][0]["inputs"][0]
        recipe = {"fill": "random", "shape": port["dims"], "seed": 3}
        return await program.run({"inputs": [recipe], "profile": True}, Call(print))

    found = asyncio.run(scene())
    (output,) = found["outputs"]
    assert list(output["array"].shape) == output["shape"]
    assert output["finite"] == output["numel"] and output["min"] < output["mean"] < output["max"]
    assert found["kernels"] is None and found["memory"]["total"] > 0


def test_inputs_are_made_as_asked():
    same = [
        make_input("x", tensor("float32", 4, 8), {"fill": "random", "shape": [2, 8], "seed": 5})
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*same)
    assert same[0].shape == (2, 8) and same[0].dtype == np.float32
    ids = make_input("i", tensor("int64", 64), {"fill": "random", "shape": [64], "below": 7})
    assert ids.dtype == np.int64 and ids.min() >= 0 and ids.max() < 7
    assert make_input("b", tensor("bool", 9), {"fill": "random", "shape": [9]}).dtype == bool
    one = make_input("v", tensor("float16", 3), {"fill": "values", "values": [1.5], "shape": [3]})
    np.testing.assert_array_equal(one, np.float16([1.5] * 3))
    assert make_input("n", object(), 7) == 7


def test_inputs_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match="2 values for shape"):
        make_input("x", tensor("int32", 3), {"fill": "values", "values": [1, 2], "shape": [3]})
    with pytest.raises(DtypeError, match="is a number"):
        make_input("x", object(), {"fill": "zeros", "shape": []})


def test_a_folder_answers_and_is_saved_piece_by_piece():
    async def scene():
        device = await request_device("cpu")
        model = await open_model(files(), device, {"context": 32}, Call(print))
        pieces, first = [], True
        while len(piece := (await model.save({"first": first}, Call(print)))["piece"]):
            pieces.append(piece.tobytes())
            first = False
        again = await open_model(b"".join(pieces), device, {}, Call(print))
        found, looks = [], []
        for one in (model, again):
            call = Call(print)
            messages = [{"role": "user", "content": "hi"}]
            found.append(await one.chat({"messages": messages, "options": {"max_tokens": 2}}, call))
            looks.append(await one.look({"prompt": "hi"}, call))
            one.close()
        return found, looks, [one.description() for one in (model, again)]

    found, looks, (described, ready) = asyncio.run(scene())
    assert (described["format"], ready["format"]) == ("safetensors", "packed")
    np.testing.assert_array_equal(looks[0]["q"], looks[1]["q"])
    assert looks[0]["types"] == {"BF16": 20} and looks[1]["types"]["Q4_0"] == 14
    assert "NumPy's own reading" in looks[0]["check"][0]
    assert [f["completion_tokens"] for f in found] == [2, 2]
    assert (described["architecture"], described["context"]) == ("llama", 32)
    losses = described["quantization"]
    assert losses["model.embed_tokens.weight"] < 0.01 < losses["model.layers.0.mlp.up_proj.weight"]


def test_a_model_goes_on_answering_where_there_is_nothing_to_tune():
    async def scene():
        model = await open_model(files(), await request_device("cpu"), {"context": 32}, Call(print))
        with pytest.raises(FeatureMissing, match="computes with NumPy"):
            await model.autotune({}, Call(print))
        given = {"messages": [{"role": "user", "content": "hi"}], "options": {"max_tokens": 2}}
        found = await model.chat(given, Call(print))
        model.close()
        return found

    assert asyncio.run(scene())["completion_tokens"] == 2
