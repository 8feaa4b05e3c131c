"""A tiny random Llama, exported by the very command of docs/start/executorch.md.

Run by hand; the product in `tests/unit/goldens/llama` is committed. Needs torch==2.13.0,
executorch==1.5.1. The tokens to expect come from the forward pass below, in float64 and of the
weights before quantization.
"""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
RECIPE = ROOT / "docs/start/executorch.md"
TARGET = ROOT / "tests/unit/goldens/llama"
PROMPT = [1, 15, 43]
SEED = 39
DIM, HEADS, KV_HEADS, HIDDEN, LAYERS, VOCABULARY = 64, 4, 2, 128, 2, 256
PARAMS = {
    "dim": DIM,
    "n_layers": LAYERS,
    "n_heads": HEADS,
    "n_kv_heads": KV_HEADS,
    "vocab_size": VOCABULARY,
    "hidden_dim": HIDDEN,
    "norm_eps": 1e-5,
    "rope_theta": 10000.0,
}


def checkpoint(seed=SEED):
    """Weights by Meta's names; logits far enough apart that 4 bits do not change their order."""
    torch.manual_seed(seed)
    narrow = DIM * KV_HEADS // HEADS
    shapes = {"attention.wq": (DIM, DIM), "attention.wk": (narrow, DIM), "attention.wo": (DIM, DIM)}
    shapes |= {"attention.wv": (narrow, DIM), "feed_forward.w2": (DIM, HIDDEN)}
    shapes |= dict.fromkeys(("feed_forward.w1", "feed_forward.w3"), (HIDDEN, DIM))
    found = {
        "tok_embeddings.weight": torch.randn(VOCABULARY, DIM) / 2,
        "norm.weight": torch.rand(DIM) + 0.5,
        "output.weight": torch.randn(VOCABULARY, DIM) / 10,
    }
    for layer in range(LAYERS):
        for name, shape in shapes.items():
            found[f"layers.{layer}.{name}.weight"] = torch.randn(shape) / 10
        for name in ("attention_norm", "ffn_norm"):
            found[f"layers.{layer}.{name}.weight"] = torch.rand(DIM) + 0.5
    return found


def norm(x, gain):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + PARAMS["norm_eps"]) * gain


def rotated(x):
    """Neighbours are pairs; x [tokens, heads, width]."""
    half = torch.arange(0, x.shape[-1], 2, dtype=x.dtype) / x.shape[-1]
    angle = torch.arange(len(x), dtype=x.dtype)[:, None] / PARAMS["rope_theta"] ** half
    turn = torch.polar(torch.ones_like(angle), angle)[:, None]
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turn).flatten(-2)


def logits(weights, tokens):
    """Those of the last token, [vocabulary]."""
    w = {name: value.double() for name, value in weights.items()}
    x = w["tok_embeddings.weight"][tokens]
    future = torch.ones(len(tokens), len(tokens)).triu(1).bool()
    for layer in range(LAYERS):
        at = {name.removeprefix(f"layers.{layer}."): value for name, value in w.items()}
        h = norm(x, at["attention_norm.weight"])
        q, k, v = (
            (h @ at[f"attention.w{n}.weight"].T).reshape(len(tokens), -1, DIM // HEADS)
            for n in "qkv"
        )
        k, v = (t.repeat_interleave(HEADS // KV_HEADS, 1) for t in (rotated(k), v))
        scores = torch.einsum("thd,shd->hts", rotated(q), k) / (DIM // HEADS) ** 0.5
        mixed = torch.einsum("hts,shd->thd", scores.masked_fill(future, -1e30).softmax(-1), v)
        x = x + mixed.flatten(1) @ at["attention.wo.weight"].T
        h = norm(x, at["ffn_norm.weight"])
        gate = torch.nn.functional.silu(h @ at["feed_forward.w1.weight"].T)
        x = x + (gate * (h @ at["feed_forward.w3.weight"].T)) @ at["feed_forward.w2.weight"].T
    return norm(x[-1], w["norm.weight"]) @ w["output.weight"].T


def main():
    block = next(
        text
        for text in re.findall(r"^```sh\n(.*?)^```$", RECIPE.read_text(), re.M | re.S)
        if "export_llm" in text
    )
    weights = checkpoint()
    tokens, margins = list(PROMPT), []
    for _ in range(5):
        best, second = logits(weights, tokens).topk(2)
        tokens.append(int(second[0]))
        margins.append(float(best[0] - best[1]))
    print("tokens", tokens, "margins", [round(m, 3) for m in margins])
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "params.json").write_text(json.dumps(PARAMS))
        torch.save(weights, folder / "consolidated.00.pth")
        command = [sys.executable, *shlex.split(block.replace("\\\n", " "))[1:]]
        subprocess.run(command, cwd=folder, check=True, env=os.environ)
        TARGET.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / "llama.pte", TARGET / "llama.pte")
    facts = {
        "recipe_sha256": hashlib.sha256(block.encode()).hexdigest(),
        "prompt": PROMPT,
        "tokens": tokens[len(PROMPT) :],
    }
    (TARGET / "expected.json").write_text(json.dumps(facts) + "\n")


if __name__ == "__main__":
    main()
