"""A tiny random language model as a GGUF file, and its forward pass in float64 from the file.

The vocabulary is the 256 bytes and a few special tokens, so any text has tokens.
"""

import asyncio

import numpy as np

from gguf_writer import gguf_bytes
from webgpu_py.formats.gguf import read_gguf
from webgpu_py.quant.repack import dequantize
from webgpu_py.sources import BytesSource
from webgpu_py.tokenizer.bpe import _byte_letters

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, FFN, LAYERS = 64, 4, 2, 16, 96, 2
CONTEXT = 64
SPECIAL = ["<|end|>", "<|user|>", "<|assistant|>"]
END = 256
TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def quantized(kind, matrix):
    """Bytes of a matrix in a stored type, by the plainest rule."""
    if kind == "F32":
        return matrix.astype("<f4").tobytes()
    if kind == "F16":
        return matrix.astype("<f2").tobytes()
    blocks = matrix.reshape(-1, 32)
    if kind == "Q8_0":
        d = (np.abs(blocks).max(axis=1) / 127).astype(np.float16)
        q = np.round(blocks / d.astype(np.float32)[:, None]).astype(np.int8)
        return b"".join(a.tobytes() + b.tobytes() for a, b in zip(d, q, strict=True))
    assert kind == "Q4_0"
    d = (np.abs(blocks).max(axis=1) / 7).astype(np.float16)
    q = np.clip(np.round(blocks / d.astype(np.float32)[:, None]) + 8, 0, 15).astype(np.uint8)
    packed = q[:, :16] | q[:, 16:] << 4
    return b"".join(a.tobytes() + b.tobytes() for a, b in zip(d, packed, strict=True))


def tiny_gguf(arch="llama", kind="Q4_0", tied=True, seed=0, ffn=FFN, gain=1.0):
    """The file's bytes; `ffn` is the hidden width of its MLPs, for files with more weights.

    The last norm is multiplied by `gain`.
    """
    rng = np.random.default_rng(seed)
    tokens = [*_byte_letters().values(), *SPECIAL, "th"]
    vocabulary = len(tokens)
    metadata = {
        "general.architecture": arch,
        f"{arch}.block_count": LAYERS,
        f"{arch}.context_length": CONTEXT,
        f"{arch}.embedding_length": HIDDEN,
        f"{arch}.feed_forward_length": ffn,
        f"{arch}.attention.head_count": HEADS,
        f"{arch}.attention.head_count_kv": KV_HEADS,
        f"{arch}.attention.key_length": HEAD_DIM,
        f"{arch}.rope.freq_base": 10000.0,
        f"{arch}.attention.layer_norm_rms_epsilon": 1e-5,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [
            *[("i32", 1)] * 256,
            *[("i32", 3)] * len(SPECIAL),
            ("i32", 1),
        ],
        "tokenizer.ggml.merges": ["t h"],
        "tokenizer.ggml.eos_token_id": END,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": TEMPLATE,
    }

    def matrix(rows, columns, gain=2.0):
        weights = rng.standard_normal((rows, columns)).astype(np.float32) * gain
        return kind, (rows, columns), quantized(kind, weights / np.sqrt(columns))

    def vector(length, low=0.5, high=1.5):
        return "F32", (length,), rng.uniform(low, high, length).astype("<f4").tobytes()

    tensors = {"token_embd.weight": matrix(vocabulary, HIDDEN, 8.0)}
    for i in range(LAYERS):
        blk = f"blk.{i}."
        tensors[blk + "attn_norm.weight"] = vector(HIDDEN)
        tensors[blk + "ffn_norm.weight"] = vector(HIDDEN)
        for name, rows in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)):
            tensors[f"{blk}attn_{name}.weight"] = matrix(rows * HEAD_DIM, HIDDEN)
            if arch == "qwen2":
                tensors[f"{blk}attn_{name}.bias"] = vector(rows * HEAD_DIM, -0.5, 0.5)
        if arch == "qwen3":
            tensors[blk + "attn_q_norm.weight"] = vector(HEAD_DIM)
            tensors[blk + "attn_k_norm.weight"] = vector(HEAD_DIM)
        tensors[blk + "attn_output.weight"] = matrix(HIDDEN, HEADS * HEAD_DIM)
        tensors[blk + "ffn_gate.weight"] = matrix(ffn, HIDDEN)
        tensors[blk + "ffn_up.weight"] = matrix(ffn, HIDDEN)
        tensors[blk + "ffn_down.weight"] = matrix(HIDDEN, ffn)
    stored, dims, data = vector(HIDDEN)
    last = np.frombuffer(data, "<f4") * np.float32(gain)
    tensors["output_norm.weight"] = stored, dims, last.tobytes()
    if not tied:
        tensors["output.weight"] = matrix(vocabulary, HIDDEN, 8.0)
    return gguf_bytes(metadata, tensors)


class Forward:
    """Logits of a whole sequence in float64, with no cache and no chunks."""

    def __init__(self, data):
        self.source = BytesSource(data)
        self.file = asyncio.run(read_gguf(self.source))
        self.arch = self.file.metadata["general.architecture"]

    def get(self, name):
        tensor = self.file.tensors[name]
        raw = asyncio.run(self.source.read(tensor.offset, tensor.nbytes))
        return dequantize(tensor.type, raw, tensor.dims).astype(np.float64)

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * self.get(name)

    def heads(self, x, blk, name, count):
        y = x @ self.get(f"{blk}attn_{name}.weight").T
        if f"{blk}attn_{name}.bias" in self.file.tensors:
            y = y + self.get(f"{blk}attn_{name}.bias")
        y = y.reshape(len(x), count, HEAD_DIM)
        if f"{blk}attn_{name}_norm.weight" in self.file.tensors:
            y = self.norm(y, f"{blk}attn_{name}_norm.weight")
        return y

    def rotate(self, x):
        half = HEAD_DIM // 2
        angles = np.arange(len(x))[:, None] * 10000.0 ** (-np.arange(half) / half)
        turn = np.exp(1j * angles)[:, None]
        if self.arch == "llama":
            z = (x[..., ::2] + 1j * x[..., 1::2]) * turn
            return np.stack([z.real, z.imag], -1).reshape(x.shape)
        z = (x[..., :half] + 1j * x[..., half:]) * turn
        return np.concatenate([z.real, z.imag], -1)

    def __call__(self, ids):
        x = self.get("token_embd.weight")[ids]
        n = len(ids)
        hidden = np.tril(np.ones((n, n), bool))
        for i in range(LAYERS):
            blk = f"blk.{i}."
            h = self.norm(x, blk + "attn_norm.weight")
            q = self.rotate(self.heads(h, blk, "q", HEADS))
            k = self.rotate(self.heads(h, blk, "k", KV_HEADS))
            v = self.heads(h, blk, "v", KV_HEADS)
            k, v = (np.repeat(t, HEADS // KV_HEADS, axis=1) for t in (k, v))
            scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(HEAD_DIM)
            scores = np.where(hidden, scores, -np.inf)
            p = np.exp(scores - scores.max(-1, keepdims=True))
            p /= p.sum(-1, keepdims=True)
            y = np.einsum("hqk,khd->qhd", p, v).reshape(n, -1)
            x = x + y @ self.get(blk + "attn_output.weight").T
            h = self.norm(x, blk + "ffn_norm.weight")
            gate = h @ self.get(blk + "ffn_gate.weight").T
            up = h @ self.get(blk + "ffn_up.weight").T
            x = x + (gate / (1 + np.exp(-gate)) * up) @ self.get(blk + "ffn_down.weight").T
        out = "output.weight" if "output.weight" in self.file.tensors else "token_embd.weight"
        return self.norm(x, "output_norm.weight") @ self.get(out).T

    def greedy(self, ids, count):
        """Tokens, and the smallest gap between first and second on the way."""
        ids, gap = list(ids), np.inf
        for _ in range(count):
            logits = np.sort(self(ids)[-1])
            gap = min(gap, logits[-1] - logits[-2])
            ids.append(int(np.argmax(self(ids)[-1])))
        return ids[-count:], gap
