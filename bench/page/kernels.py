"""Graphs of the kernel suite: nodes of one operator, each with operands of its own.

Every node's result lies in the same buffer, so a node waits for the one before it, as in a model.
"""

import json
from dataclasses import dataclass

import bench_random

import webgpu_py as wg
from webgpu_py.graph.operator import operator
from webgpu_py.graph.values import Constant, TensorSpec
from webgpu_py.ops.repack import Repack
from webgpu_py.quant.layouts import Layout

GROUP = 32


@dataclass
class Random:
    """Random bytes that JavaScript makes as they are uploaded; see random.js."""

    name: str
    nbytes: int
    handle: int

    async def read(self, offset, nbytes):
        raise NotImplementedError("these bytes are for the device only")


class Operands:
    """Random constants: every one differs, none passes through Python."""

    def __init__(self, graph):
        self.graph = graph
        self.count = 0

    def __call__(self, kind, dtype, *dims):
        spec = TensorSpec(dtype, dims)
        self.count += 1
        handle = bench_random.randomSource(kind, spec.nbytes, self.count)
        source = Random(f"random {kind}", spec.nbytes, handle)
        return self.graph.constant(Constant(spec, source=source, nbytes=spec.nbytes))

    def indices(self, count, limit):
        self.count += 1
        return bench_random.randomIndices(count, limit, self.count)


def linear_q4(g, c, random):
    layout = Layout("u4", "f16", GROUP)
    x = g.input("x", (wg.dim("m", max=c["most"]), c["k"]))
    for _ in range(c["repeat"]):
        codes = random("codes", "uint32", c["n"], layout.row_words(c["k"]))
        scales = random("f16_scales", "uint32", layout.scale_words(c["n"], c["k"]))
        y = g.call("webgpu_py.linear_q4", x, codes, scales, "f16", GROUP)
    return y, {"x": (c["m"], c["k"])}


def linear_q4gsw(g, c, random):
    x = g.input("x", (wg.dim("m", max=c["most"]), c["k"]))
    for _ in range(c["repeat"]):
        codes = random("codes", "uint8", c["n"], c["k"] // 2)
        scales = random("f32_scales", "float32", c["k"] // GROUP, c["n"])
        y = g.call("et_vk.linear_q4gsw.default", x, codes, scales, GROUP)
    return y, {"x": (c["m"], c["k"])}


def embedding_q4(g, c, random):
    layout = Layout("u4", "f16", GROUP)
    codes = random("codes", "uint32", c["n"], layout.row_words(c["k"]))
    scales = random("f16_scales", "uint32", layout.scale_words(c["n"], c["k"]))
    inputs = {}
    for i in range(c["repeat"]):
        ids = g.input(f"i{i}", (wg.dim("m", max=c["most"]),), "int32")
        y = g.call("webgpu_py.embedding_q4", codes, scales, "f16", GROUP, c["k"], ids)
        inputs[f"i{i}"] = (c["m"],)
    return y, inputs


def embedding_q4gsw(g, c, random):
    codes = random("codes", "uint8", c["n"], c["k"] // 2)
    scales = random("f32_scales", "float32", c["n"], c["k"] // GROUP)
    inputs = {}
    for i in range(c["repeat"]):
        ids = g.input(f"i{i}", (wg.dim("m", max=c["most"]),), "int32")
        y = g.call("et_vk.embedding_q4gsw.default", codes, scales, GROUP, ids, True)
        inputs[f"i{i}"] = (c["m"],)
    return y, inputs


def rope(g, c, random):
    tables = [random("f32", "float32", c["m"], c["dim"] // 2) for _ in range(2)]
    for _ in range(c["repeat"]):
        q = random("f32", "float32", c["m"], c["heads"], c["dim"])
        k = random("f32", "float32", c["m"], c["kv"], c["dim"])
        y, _ = g.call("et_vk.apply_rotary_emb.default", q, k, *tables)
    return y, {}


def rms_norm(g, c, random):
    weight = random("f32", "float32", c["k"])
    for _ in range(c["repeat"]):
        x = random("f32", "float32", c["m"], c["k"])
        y = g.call("et_vk.rms_norm.default", x, weight, 1e-5)
    return y, {}


@operator("bench.repack(blocks, type, rows, columns) -> [codes, scales]")
class RepackEachRun(Repack):
    """`webgpu_py.repack`, which a build does once, as a node of every run."""

    once = False


def repack(g, c, random):
    for i in range(c["repeat"]):
        blocks = random("codes", "uint8", int(c["stored"]))
        y, scales = g.call("bench.repack", blocks, c["type"], c["n"], c["k"])
        g.output(f"scales{i}", scales)
    return y, {}


def cat(g, c, random):
    for _ in range(c["repeat"]):
        parts = [random("f32", "float32", c["n"] // 2, c["k"]) for _ in range(2)]
        y = g.call("aten.cat.default", parts, 0)
    return y, {}


def slice_copy(g, c, random):
    for _ in range(c["repeat"]):
        x = random("f32", "float32", c["n"], 2 * c["k"])
        y = g.call("aten.slice_copy.Tensor", x, 1, 0, c["k"], 1)
    return y, {}


def attention(g, c, random):
    m = wg.dim("m", max=c["most"])
    q = g.input("q", (m, c["heads"], c["dim"]))
    k, v = (g.input(name, (m, c["kv"], c["dim"])) for name in "kv")
    position = g.symint("position")
    for _ in range(c["repeat"]):
        cache = c["capacity"], c["kv"], c["dim"]
        caches = [random("f32", "float32", *cache) for _ in range(2)]
        y = g.call("webgpu_py.attention", q, k, v, *caches, position)
    shapes = {"q": (c["m"], c["heads"], c["dim"])}
    return y, shapes | {name: (c["m"], c["kv"], c["dim"]) for name in "kv"}


def sample(g, c, random):
    from webgpu_py.generation import GenerationOptions

    settings = g.constant(GenerationOptions().settings())
    position = g.symint("position")
    for _ in range(c["repeat"]):
        logits, bias = (random("f32", "float32", c["n"]) for _ in range(2))
        counts = g.constant(Constant(TensorSpec("int32", (c["n"],))))
        y, _ = g.call("webgpu_py.sample.default", logits, counts, bias, settings, position)
    return y, {}


BUILD = {
    "webgpu_py.linear_q4": linear_q4,
    "et_vk.linear_q4gsw": linear_q4gsw,
    "webgpu_py.embedding_q4": embedding_q4,
    "et_vk.embedding_q4gsw": embedding_q4gsw,
    "et_vk.apply_rotary_emb": rope,
    "et_vk.rms_norm": rms_norm,
    "repack": repack,
    "aten.cat": cat,
    "aten.slice_copy": slice_copy,
    "webgpu_py.attention": attention,
    "webgpu_py.sample": sample,
}


def kernels_of(replay):
    """The kernels of a plan by name, in the order in which they first run."""
    return " + ".join(dict.fromkeys(replay.kernels))


class Shared:
    """The one device that all suites run on, opened by the first."""

    device = None

    @classmethod
    async def open(cls):
        if cls.device is None:
            cls.device = await wg.request_device("browser")
        return cls.device


class Kernels:
    """The graph of the case at hand, kept while the next case has the same key."""

    def __init__(self):
        self.session = self.shapes = None
        self.key = ""

    async def prepare(self, text):
        """Load the plan of a case; what JavaScript needs to replay and feed it, as JSON."""
        case = json.loads(text)
        device = await Shared.open()
        if case["key"] != self.key:
            self.close()
            graph = wg.Graph()
            result, shapes = BUILD[case["op"]](graph, case, Operands(graph))
            graph.output("y", result)
            self.session = await graph.build(device)
            self.key, self.shapes = case["key"], shapes
        dims = {name: (case["m"], *shape[1:]) for name, shape in self.shapes.items()}
        replay = await self.session.replay(**dims)
        factors = replay.factors.get("position", [0] * len(replay.base))
        at = case.get("context", 0) - case["m"]
        live = [b + at * f for b, f in zip(replay.base, factors, strict=True)]
        return json.dumps(
            {
                "device": device.bridge._device,
                "plan": replay.plan,
                "dispatches": len(replay.nodes),
                "ran": kernels_of(replay),
                "live": [replay.buffers["live"], live],
                "inputs": {n: [replay.buffers[n], list(d)] for n, d in dims.items()},
            }
        )

    def close(self):
        """Free the graph at hand."""
        if self.session is not None:
            self.session.close()
        self.session, self.key = None, ""
