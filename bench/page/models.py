"""Whole models for the page: SmolLM2 from its file, or a shape with random 4-bit weights."""

import json
import time

import numpy as np
from kernels import Operands, Shared, kernels_of

from webgpu_py.generation import GenerationOptions
from webgpu_py.graph.session import Session
from webgpu_py.llm import LLM, largest_chunk, make_generator, step_sizes
from webgpu_py.models.config import ModelConfig
from webgpu_py.models.decoder import build_decoder
from webgpu_py.models.weights import Packed, StoredWeights
from webgpu_py.stream import Stream

FORBIDDEN = -1e9
"""Added to the logits of tokens that would end an answer early."""


class RandomWeights(StoredWeights):
    """Weights of any name: matrices as Q4_0 stores them, vectors between 1/8 and 1/2."""

    KIND = "Q4_0"

    def __init__(self):
        self.found = {}
        self.random = None

    def __contains__(self, name):
        return name.endswith("norm.weight")

    def operands(self, g):
        self.random = self.random or Operands(g)
        return self.random

    def vector(self, g, name, length, plus=0.0):
        return self.operands(g)("f32", "float32", length)

    def matrix(self, g, name, dims):
        if name not in self.found:
            packed = Packed(self.KIND, None, None, dims[1])
            words = packed.layout.row_words(dims[1]), packed.layout.scale_words(*dims)
            codes = self.operands(g)("codes", "uint32", dims[0], words[0])
            scales = self.operands(g)("f16_scales", "uint32", words[1])
            self.found[name] = Packed(self.KIND, codes, scales, dims[1])
        return self.found[name]


class NoText:
    """A tokenizer whose tokens show nothing and never end an answer."""

    ends = ()

    def __init__(self, count):
        self.count = count

    def table(self):
        return b"", np.zeros(self.count + 1, np.uint32)


def _watch_pipelines(device):
    """Count the pipelines that the device compiles from now on, and the milliseconds it does so."""
    made = {"count": 0, "ms": 0.0}
    original = type(device.bridge).create_pipelines
    under_way, started = 0, 0.0

    async def create(specs):
        nonlocal under_way, started
        if not under_way:
            started = time.perf_counter()
        under_way += 1
        try:
            handles = await original(device.bridge, specs)
        finally:
            under_way -= 1
            if not under_way:
                made["ms"] += 1e3 * (time.perf_counter() - started)
        made["count"] += len(specs)
        return handles

    device.bridge.create_pipelines = create
    return made


class Models:
    """One model at a time on a device of its own."""

    def __init__(self):
        self.device = self.session = self.generator = self.close_model = None
        self.ends = ()
        self.runs = 0

    async def load(self, text):
        """Load {"url"} or {"config"} with {"context", "steps"}; JSON of what it took and made.

        `ran` names the kernels of a step of so many tokens, for each of `steps`.
        """
        self.close()
        given = json.loads(text)
        self.device = await Shared.open()
        made = _watch_pipelines(self.device)
        started = time.perf_counter()
        if "url" in given:
            await self._load_file(given)
        else:
            await self._load_random(given)
        load_ms = 1e3 * (time.perf_counter() - started)
        replay = await self.session.replay(ids=(1,))
        steps = {n: await self.session.replay(ids=(min(n, self.chunk),)) for n in given["steps"]}
        return json.dumps(
            {
                "load_ms": load_ms,
                "ran": {n: kernels_of(step) for n, step in steps.items()},
                "gpu_nbytes": self.session.memory()["total"],
                "dispatches": len(replay.nodes),
                "pipelines": made["count"],
                "pipelines_ms": made["ms"],
            }
        )

    async def _load_file(self, given):
        from webgpu_py.program import open_any

        llm = await LLM.load(
            await open_any(given["url"]), device=self.device, context=given["context"]
        )
        self.session, self.generator = llm.session, llm._generator
        self.chunk = llm._decoder.chunk
        self.ends, self.close_model = llm.tokenizer.ends, llm.close

    async def _load_random(self, given):
        config = ModelConfig.from_hf(given["config"])
        rows = given["context"]
        self.chunk = largest_chunk(config, rows, bool(self.device.info.get("software")))
        decoder = build_decoder(config, RandomWeights(), rows, self.chunk)
        prepare = [{"ids": (tokens,)} for tokens in step_sizes(self.device, decoder)]
        self.session = await Session.build(self.device, decoder.graph.ir, prepare=prepare)
        tokenizer = NoText(config.vocab_size)
        self.generator = await make_generator(self.device, self.session, decoder, tokenizer)
        self.ends = ()

        def close():
            self.generator.close()
            self.session.close()

        self.close_model = close

    async def generate(self, text):
        """Answer {"prompt": ids} with {"tokens"}; JSON {first_ms, decode_ms, tokens, crossings}.

        `decode_ms` is from the first token to the last; `crossings` counts calls between Python
        and JavaScript in that time, a piece being one.
        """
        given = json.loads(text)
        # Another first token each time, so that nothing of the last prompt is reused.
        self.runs += 1
        prompt = [1000 + self.runs, *given["prompt"][1:]]
        options = GenerationOptions(
            max_tokens=given["tokens"], logit_bias={end: FORBIDDEN for end in self.ends}
        )
        started = time.perf_counter()
        at, crossings, tokens = [], [], []
        async for piece in Stream(self.generator.start(prompt, options), prompt).pieces():
            at.append(time.perf_counter())
            crossings.append(self.device.bridge.crossings + len(at))
            tokens += piece.tokens
        return json.dumps(
            {
                "first_ms": 1e3 * (at[0] - started),
                "decode_ms": 1e3 * (at[-1] - at[0]),
                "tokens": tokens,
                "crossings": crossings[-1] - crossings[0],
            }
        )

    def close(self):
        """Free the model."""
        if self.close_model is not None:
            self.close_model()
        self.close_model = None
