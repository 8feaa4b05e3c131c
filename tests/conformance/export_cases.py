"""Exports our own conformance cases, with what eager PyTorch computes as their goldens.

Run by hand; the products in `cases/` are committed. Needs torch==2.13.0, executorch==1.5.1:

    python tests/conformance/export_cases.py [CASE ...]

A case is a folder as in the handed set: `model.pte`, `manifest.json`, raw little-endian tensors.
"""

import contextlib
import hashlib
import json
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path

import torch
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.exir import ExecutorchBackendConfig, to_edge, to_edge_transform_and_lower
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from functorch.experimental.control_flow import map as map_rows
from torch import nn
from torch.export import Dim, export

FOLDER = Path(__file__).parent / "cases"
RECIPE = Path(__file__).resolve().parents[2] / "docs/start/executorch.md"


class Block(nn.Module):
    """A decoder layer with its caches as buffers, and greedy sampling: all of it portable."""

    def __init__(self, dim=16, heads=2, rows=8, vocab=24):
        super().__init__()
        self.heads, self.width = heads, dim // heads
        self.embedding = nn.Embedding(vocab, dim)
        self.norm = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.gate, self.down = nn.Linear(dim, 2 * dim), nn.Linear(dim, dim)
        self.register_buffer("k", torch.zeros(1, heads, rows, self.width))
        self.register_buffer("v", torch.zeros(1, heads, rows, self.width))
        angle = torch.outer(torch.arange(rows).float(), 10.0 ** -torch.arange(self.width // 2))
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)

    def rotated(self, x, position):
        cos, sin = self.cos[position], self.sin[position]
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)

    def forward(self, token, position):
        x = self.embedding(token)
        qkv = self.qkv(self.norm(x)).view(1, 1, 3, self.heads, self.width)
        q, k, v = (t.transpose(1, 2) for t in qkv.unbind(2))
        self.k.index_copy_(2, position, self.rotated(k, position))
        self.v.index_copy_(2, position, v)
        scores = self.rotated(q, position) @ self.k.transpose(-1, -2) / self.width**0.5
        seen = torch.arange(self.k.shape[2]) <= position
        weights = torch.softmax(scores.masked_fill(~seen, float("-inf")), -1)
        x = x + (weights @ self.v).transpose(1, 2).reshape(1, 1, -1)
        value, gate = self.gate(x).chunk(2, -1)
        x = x + self.down(nn.functional.gelu(gate) * value)
        logits = x @ self.embedding.weight.T
        return logits, logits.argmax(-1)


class Branches(nn.Module):
    """A conditional and a loop."""

    def forward(self, flag, x):
        chosen = torch.cond(flag, lambda y: y.cumsum(0), lambda y: (y * 3).relu(), (x,))
        return chosen, map_rows(lambda row: row.sort(-1)[0] if False else row * row - 1, chosen)


class Pixels(nn.Module):
    """Channels-last input and weights: dimension orders that are not the identity."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, stride=2, padding=1).to(memory_format=torch.channels_last)

    def forward(self, x):
        y = self.conv(x.to(memory_format=torch.channels_last))
        return nn.functional.max_pool2d(y, 2).contiguous()


class Counter3(nn.Module):
    """A buffer with a stored initial state, updated after its use."""

    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.tensor([[1.0, -2.0, 3.0, 4.5]]))

    def forward(self, x):
        y = x * self.state
        self.state.add_(x)
        return y


class Halves(nn.Module):
    """Computed in half precision on the device, float32 at the boundary."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 8)

    def forward(self, x):
        return torch.softmax(self.linear(x), -1) + x[:, :8]


class Between(nn.Module):
    """Two delegates with an operator between them that only the host has."""

    def forward(self, x):
        return torch.topk(x.sigmoid() * 2, 3).values.exp()


class Unequal(nn.Module):
    """Live shapes, symbolic arithmetic and views, on the host."""

    def forward(self, x, y):
        n = x.shape[0]
        return x.reshape(n * 2, 2) + n // 2, torch.arange(n + 1), y[:, :n].to(torch.int32)


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


def save(folder, name, tensor):
    (folder / name).write_bytes(tensor.detach().contiguous().numpy().tobytes())
    return {"path": name, "shape": list(tensor.shape), "dtype": name_of(tensor.dtype)}


def make(case, module, runs, *, delegate=False, dynamic=None, options=None, initial=(), **facts):
    """Export `module` with the first run's inputs; every run is one of the case."""
    module = module.eval().requires_grad_(False)
    program = export(module, runs[0], dynamic_shapes=dynamic, strict=False)
    if delegate:
        edge = to_edge_transform_and_lower(program, partitioner=[VulkanPartitioner(options or {})])
    else:
        edge = to_edge(program)
    passes = [InitializedMutableBufferPass(list(initial))] if initial else []
    built = edge.to_executorch(ExecutorchBackendConfig(passes=passes))
    record(case, module, runs, built, dynamic=dynamic is not None, **facts)


def recipe():
    """The documents' own recipe, run as it stands there."""
    (block, *_) = re.findall(r"^```python\n(.*?)^```$", RECIPE.read_text(), re.M | re.S)
    names = {}
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        exec(block, names)
    digest = hashlib.sha256(block.encode()).hexdigest()
    built = names["program"].to_executorch()
    record("recipe", names["model"], [(torch.randn(4, 64),)], built, recipe_sha256=digest)


def record(case, module, runs, built, *, dynamic=False, **facts):
    """The folder of a case: the program, and what `module` gives for the inputs of each run."""
    folder = FOLDER / "own" / case
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.pte").write_bytes(built.buffer)
    plan = built.executorch_program.execution_plan[0]
    calls = [i.instr_args for chain in plan.chains for i in chain.instructions]
    names = [
        ".".join(
            filter(None, (plan.operators[c.op_index].name, plan.operators[c.op_index].overload))
        )
        for c in calls
        if type(c).__name__ == "KernelCall"
    ]
    described = []
    for at, inputs in enumerate(runs):
        given = [save(folder, f"run{at}_in{k}.bin", t) for k, t in enumerate(inputs)]
        with torch.no_grad():
            outputs = module(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        first = len(plan.outputs) - len(outputs)
        described.append(
            {
                "name": f"run{at}",
                "inputs": given,
                "outputs": [
                    save(folder, f"run{at}_golden{k}.bin", t)
                    | {"output_index": k, "method_output_index": first + k}
                    for k, t in enumerate(outputs)
                ],
            }
        )
    manifest = {
        "op": "own",
        "case": case,
        "source": "tests/conformance/export_cases.py",
        "pte": "model.pte",
        "atol": 1e-3,
        "rtol": 1e-3,
        "runs": described,
        "cpu_ops": dict(Counter(names)),
        "n_delegates": len(plan.delegates),
        "dynamic": dynamic,
        "stateful": len(runs) > 1,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest | facts, indent=1) + "\n")
    print(
        case, len(built.buffer), "bytes", manifest["cpu_ops"], manifest["n_delegates"], "delegates"
    )


def cases():
    torch.manual_seed(3)
    rows = [(torch.tensor([[t]]), torch.tensor([p])) for p, t in enumerate((5, 17, 2, 23))]
    x = torch.randn(3, 4)
    n = Dim("n", min=1, max=8)
    sizes = [(torch.randn(k, 4), torch.randn(3, 9) * 9) for k in (4, 8, 2, 3)]
    yield "decoder_block", lambda: make("decoder_block", Block(), rows)
    flags = [(torch.tensor(True), x), (torch.tensor(False), x)]
    yield "control_flow", lambda: make("control_flow", Branches(), flags)
    yield "channels_last", lambda: make("channels_last", Pixels(), [(torch.randn(2, 3, 9, 9),)])
    ones = [(torch.randn(1, 4),) for _ in range(3)]
    yield "initial_state", lambda: make("initial_state", Counter3(), ones, initial=["state"])
    yield "symbolic", lambda: make("symbolic", Unequal(), sizes, dynamic=({0: n}, None))
    yield "two_delegates", lambda: make("two_delegates", Between(), [(x,)], delegate=True)
    yield "recipe", recipe
    half = {"force_fp16": True}
    wide = torch.randn(5, 16)
    yield (
        "halves",
        lambda: make("halves", Halves(), [(wide,)], delegate=True, options=half, atol=5e-3),
    )


if __name__ == "__main__":
    for name, build in cases():
        if len(sys.argv) == 1 or name in sys.argv[1:]:
            build()
