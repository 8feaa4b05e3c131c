"""The goldens of `unit/goldens/make_tokenizer_goldens.py`, and what compares with them."""

import asyncio
import gzip
import json
from base64 import b64decode
from pathlib import Path
from zlib import crc32

import numpy as np

from gguf_writer import gguf_bytes
from webgpu_py.formats.gguf import read_gguf
from webgpu_py.sources import BytesSource

GOLDENS = json.loads(
    gzip.decompress((Path(__file__).parent / "unit/goldens/tokenizer_goldens.json.gz").read_bytes())
)


def crcs(golden):
    return np.frombuffer(b64decode(golden["crc"]), "<u4")


def different(tokenizer, texts, golden):
    """The strings whose ids are not the golden ones."""
    found = [crc32(np.array(tokenizer.encode(text), "<i4").tobytes()) for text in texts]
    return [text for text, a, b in zip(texts, found, crcs(golden), strict=True) if a != b]


def gguf_metadata(name, data):
    """A tokenizer.json in the form that a GGUF file has, read back from one."""
    model = data["model"]
    special = {token["id"] for token in data["added_tokens"]}
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    kinds = [("i32", 3 if i in special else 1) for i in range(len(tokens))]
    metadata = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": name,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": [" ".join(pair) for pair in model["merges"]],
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.eos_token_id": 1,
    }
    source = BytesSource(gguf_bytes(metadata, {}))
    return asyncio.run(read_gguf(source)).metadata
