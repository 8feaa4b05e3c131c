"""A tiny random language model as a Hugging Face folder, and its forward pass in float64."""

import json
from types import SimpleNamespace

import numpy as np

from tiny_model import (
    CONTEXT,
    END,
    FFN,
    HEAD_DIM,
    HEADS,
    HIDDEN,
    KV_HEADS,
    LAYERS,
    SPECIAL,
    TEMPLATE,
    Forward,
)
from webgpu_py.models.weights import gguf_name
from webgpu_py.tokenizer.bpe import _byte_letters

VOCABULARY = 256 + len(SPECIAL) + 1
OTHER_END = 257
EDGES = ("model.embed_tokens.weight", "lm_head.weight")


def arrays(arch="llama", tied=True, seed=0):
    """float32 weights by name; every element differs."""
    rng = np.random.default_rng(seed)
    found = {}

    def matrix(name, rows, columns, gain=2.0):
        weights = rng.standard_normal((rows, columns)) * gain / np.sqrt(columns)
        found[f"{name}.weight"] = weights.astype(np.float32)

    def vector(name, length, low=0.5, high=1.5):
        found[name] = rng.uniform(low, high, length).astype(np.float32)

    matrix("model.embed_tokens", VOCABULARY, HIDDEN, 8.0)
    for i in range(LAYERS):
        layer = f"model.layers.{i}."
        vector(f"{layer}input_layernorm.weight", HIDDEN)
        vector(f"{layer}post_attention_layernorm.weight", HIDDEN)
        for name, heads in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)):
            matrix(f"{layer}self_attn.{name}_proj", heads * HEAD_DIM, HIDDEN)
            if arch == "qwen2":
                vector(f"{layer}self_attn.{name}_proj.bias", heads * HEAD_DIM, -0.5, 0.5)
        matrix(f"{layer}self_attn.o_proj", HIDDEN, HEADS * HEAD_DIM)
        matrix(f"{layer}mlp.gate_proj", FFN, HIDDEN)
        matrix(f"{layer}mlp.up_proj", FFN, HIDDEN)
        matrix(f"{layer}mlp.down_proj", HIDDEN, FFN)
    vector("model.norm.weight", HIDDEN)
    if not tied:
        matrix("lm_head", VOCABULARY, HIDDEN, 8.0)
    return found


def stored(kind, values):
    """An array's bytes in a file, and the float64 values they are."""
    if kind == "BF16":
        halves = (values.view(np.uint32) >> 16).astype(np.uint16)
        return halves.tobytes(), (halves.astype(np.uint32) << 16).view(np.float32).astype(float)
    kept = values.astype({"F16": np.float16, "F32": np.float32}[kind])
    return kept.tobytes(), kept.astype(float)


def safetensors_bytes(tensors, metadata=None):
    """A file of (dtype, dims, bytes) by name."""
    entries, end = {"__metadata__": metadata} if metadata else {}, 0
    for name, (dtype, dims, raw) in tensors.items():
        entries[name] = {"dtype": dtype, "shape": dims, "data_offsets": [end, end + len(raw)]}
        end += len(raw)
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + b"".join(t[2] for t in tensors.values())


def config(arch="llama", tied=True):
    return {
        "model_type": arch,
        "hidden_size": HIDDEN,
        "intermediate_size": FFN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": tied,
    }


def tokenizer_json():
    letters = list(_byte_letters().values())
    added = [
        {"id": 256 + i, "content": text, "special": True, "single_word": False}
        for i, text in enumerate(SPECIAL)
    ]
    return {
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
        "post_processor": None,
        "model": {
            "type": "BPE",
            "vocab": {**{letter: i for i, letter in enumerate(letters)}, "th": VOCABULARY - 1},
            "merges": ["t h"],
        },
    }


def files(kind="BF16", arch="llama", tied=True, shards=1, seed=0):
    """The folder's files by name."""
    weights = arrays(arch, tied, seed)
    tensors = {n: (kind, list(a.shape), stored(kind, a)[0]) for n, a in weights.items()}
    found = {
        "config.json": config(arch, tied),
        "tokenizer.json": tokenizer_json(),
        "tokenizer_config.json": {"eos_token": "<|end|>", "chat_template": TEMPLATE},
        "generation_config.json": {"eos_token_id": [END, OTHER_END]},
    }
    found = {name: json.dumps(value).encode() for name, value in found.items()}
    if shards == 1:
        return {**found, "model.safetensors": safetensors_bytes(tensors)}
    places = {}
    for k in range(shards):
        part = dict(list(tensors.items())[k::shards])
        name = f"model-{k + 1:05}-of-{shards:05}.safetensors"
        found[name] = safetensors_bytes(part)
        places |= dict.fromkeys(part, name)
    index = {"metadata": {}, "weight_map": places}
    return {**found, "model.safetensors.index.json": json.dumps(index).encode()}


def write(folder, contents):
    folder.mkdir(parents=True, exist_ok=True)
    for name, raw in contents.items():
        (folder / name).write_bytes(raw)
    return folder


def quantized(w, bits):
    """A float64 matrix after its quantization, by the rule's plainest form."""
    steps, lowest, highest = {4: (-8.0, -8, 7), 8: (127.0, -128, 127)}[bits]
    padded = np.pad(w, ((0, 0), (0, -w.shape[1] % 32)))
    groups = padded.reshape(len(w), -1, 32)
    at = np.abs(groups).argmax(axis=2, keepdims=True)
    extreme = np.take_along_axis(groups, at, axis=2)
    scales = (extreme if bits == 4 else np.abs(extreme)) / steps
    scales = scales.astype(np.float32).astype(np.float16).astype(float)
    codes = np.clip(np.round(np.float32(groups / scales)), lowest, highest)
    return (codes * scales).reshape(padded.shape)[:, : w.shape[1]]


class FolderForward(Forward):
    """Logits in float64 from the weights as they are after quantization."""

    def __init__(self, kind="BF16", arch="llama", tied=True, seed=0, quantize="q4"):
        exact = {n: stored(kind, a)[1] for n, a in arrays(arch, tied, seed).items()}
        self.exact = exact
        self.values = {}
        for name, w in exact.items():
            if w.ndim == 2 and quantize:
                w = quantized(w, 8 if quantize == "q8" or name in EDGES else 4)
            self.values[gguf_name(name)] = w
        self.file = SimpleNamespace(tensors=self.values)
        self.arch = "rotated by halves"

    def get(self, name):
        return self.values[name]
