"""Writes tiny random models of every architecture, and what `transformers` makes of them.

    pip install torch==2.13.0 transformers==5.24.0 tokenizers==0.23.3 gguf==0.19.0
    python tests/models/goldens/make_models.py [NAME ...]

For each name, beside this script:

- `NAME/`: config.json, generation_config.json and model.safetensors as `save_pretrained` writes
  them, tokenizer.json and tokenizer_config.json;
- `NAME.gguf`: the same weights with the names, metadata and changes of llama.cpp's converter:
  rows of Llama's q and k reordered, 1 added to Gemma's norms, Llama 3's and Phi-3's rotary factors
  as tensors;
- `NAME.json`: the prompt (longer than every window), its token ids, the logits of its last
  position in float32, and 12 greedy tokens with the gap between first and second at each.
"""

import itertools
import json
import math
import sys
from pathlib import Path

import gguf
import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

HERE = Path(__file__).parent
VOCABULARY, TOKENS, WINDOW = 288, 12, 10
PROMPT = "Small models, tested well: the 3 wise owls of Zürich read 17 pages a night."
TEXT = [PROMPT, "the owl reads the page, and the night is small", "well tested models are wise"]
COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "bos_token_id": None,
    "eos_token_id": VOCABULARY - 1,
    "pad_token_id": None,
}
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "partial_rotary_factor": 0.75,
    "short_factor": [1.0, 1.125, 1.25],
    "long_factor": [1.5, 2.75, 6.5],
}
GEMMA = {"head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": WINDOW}

MODELS = {
    "llama3": (
        transformers.LlamaConfig,
        {
            "tie_word_embeddings": True,
            "rope_parameters": {
                "rope_type": "llama3",
                "rope_theta": 500.0,
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 24,
            },
        },
    ),
    "llama_linear": (
        transformers.LlamaConfig,
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}},
    ),
    "llama_yarn": (
        transformers.LlamaConfig,
        {
            "max_position_embeddings": 96,
            "rope_parameters": {
                "rope_type": "yarn",
                "rope_theta": 100.0,
                "factor": 4.0,
                "original_max_position_embeddings": 24,
            },
        },
    ),
    "mistral": (transformers.MistralConfig, {"head_dim": 16, "sliding_window": WINDOW}),
    "qwen2": (transformers.Qwen2Config, {"tie_word_embeddings": True, "rope_theta": 1e6}),
    "qwen3": (transformers.Qwen3Config, {"head_dim": 16}),
    "gemma2": (
        transformers.Gemma2Config,
        {
            **GEMMA,
            "num_hidden_layers": 3,
            "attn_logit_softcapping": 4.0,
            "final_logit_softcapping": 6.0,
        },
    ),
    "gemma3": (
        transformers.Gemma3TextConfig,
        {
            **GEMMA,
            "num_hidden_layers": 7,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "intermediate_size": 32,
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            },
        },
    ),
    "phi3": (
        transformers.Phi3Config,
        {
            "original_max_position_embeddings": 96,
            "sliding_window": WINDOW,
            "rope_parameters": {**LONGROPE, "original_max_position_embeddings": 96},
        },
    ),
    "phi3_long": (
        transformers.Phi3Config,
        {
            "original_max_position_embeddings": 24,
            "rope_parameters": {**LONGROPE, "original_max_position_embeddings": 24},
        },
    ),
}
ARCHITECTURES = {"mistral": "llama", "gemma3_text": "gemma3"}


def trained_tokenizer():
    """Byte-level BPE of VOCABULARY entries; the last is the end of a text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - 1,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT * 3, trainer)
    tokenizer.add_special_tokens(["<|end|>"])
    assert tokenizer.get_vocab_size() == VOCABULARY
    return tokenizer


def random_model(config, dtype, seed):
    """Weights that make attention and logits far from uniform, rounded to the stored type."""
    torch.manual_seed(seed)
    config._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    gemma = config.model_type.startswith("gemma")
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("norm.weight"):
                weight.uniform_(-0.5, 0.5) if gemma else weight.uniform_(0.5, 1.5)
            elif name.endswith("bias"):
                weight.uniform_(-0.5, 0.5)
            elif "embed_tokens" in name:
                weight.normal_(0, 0.1 if gemma else 1.0)
            else:
                weight.normal_(0, 1.5 / math.sqrt(weight.shape[1]))
            weight.copy_(weight.to(dtype).float())
    return model


def expected(model, ids):
    """Logits of the last position, and greedy tokens with their gaps, without any cache."""
    first, tokens, gaps = None, list(ids), []
    for _ in range(TOKENS):
        with torch.no_grad():
            logits = model(torch.tensor([tokens]), use_cache=False).logits[0, -1].double().numpy()
        first = logits if first is None else first
        order = np.sort(logits)
        gaps.append(float(order[-1] - order[-2]))
        tokens.append(int(logits.argmax()))
    return {
        "logits": [float(np.float32(x)) for x in first],
        "tokens": tokens[len(ids) :],
        "gaps": gaps,
    }


def telling(golden):
    """Whether the tokens differ, go on to the end, and would survive an error of rounding."""
    tokens = golden["tokens"]
    return VOCABULARY - 1 not in tokens and len(set(tokens)) > 5 and min(golden["gaps"]) > 0.03


def permuted(weight, heads):
    """Rows of a rotated projection, so that the two numbers of a pair lie together."""
    rows = weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:])
    return rows.swapaxes(1, 2).reshape(weight.shape)


def llama3_factors(rope, head_dim):
    """What each frequency is divided by, as the converter finds it."""
    factors = []
    for i in range(0, head_dim, 2):
        turns = rope["original_max_position_embeddings"] / (
            2 * math.pi * rope["rope_theta"] ** (i / head_dim)
        )
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        if turns > high:
            factors.append(1.0)
        elif turns < low:
            factors.append(rope["factor"])
        else:
            smooth = (turns - low) / (high - low)
            factors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return np.array(factors, np.float32)


def write_metadata(writer, config, arch):
    """What the converter writes for the architecture, and no more."""
    rope = config.rope_parameters
    rope = rope.get("full_attention", rope)
    head_dim = getattr(config, "head_dim", None) or (
        config.hidden_size // config.num_attention_heads
    )
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    if arch != "phi3" and getattr(config, "head_dim", None):
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
    if arch != "gemma2":
        writer.add_rope_freq_base(rope["rope_theta"])
    if arch == "llama":
        writer.add_rope_dimension_count(head_dim)
    if arch.startswith("gemma") or arch == "phi3":
        writer.add_sliding_window(config.sliding_window or 0)
    if config.model_type == "mistral":
        # The converter leaves a Mistral's window out; files that have one say it so.
        writer.add_sliding_window(config.sliding_window)
    if arch == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    kind = rope["rope_type"]
    if kind in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(kind))
        writer.add_rope_scaling_factor(rope["factor"])
    if kind == "yarn":
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if kind == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_factors(rope, head_dim))
    if kind == "longrope":
        original = config.original_max_position_embeddings
        writer.add_rope_dimension_count(int(rope["partial_rotary_factor"] * head_dim))
        writer.add_rope_scaling_orig_ctx_len(original)
        scale = config.max_position_embeddings / original
        attention = math.sqrt(1 + math.log(scale) / math.log(original)) if scale > 1 else 1.0
        writer.add_rope_scaling_attn_factors(attention)
        for which in ("long", "short"):
            factors = np.array(rope[f"{which}_factor"], np.float32)
            writer.add_tensor(f"rope_factors_{which}.weight", factors)


def write_tokenizer(writer, tokenizer):
    """The vocabulary in GGUF's terms."""
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([tokenizer.id_to_token(i) for i in range(VOCABULARY)])
    writer.add_token_types([1] * (VOCABULARY - 1) + [3])
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_eos_token_id(VOCABULARY - 1)
    writer.add_add_bos_token(False)


def write_gguf(path, model, dtype, tokenizer):
    config = model.config
    arch = ARCHITECTURES.get(config.model_type, config.model_type)
    enum = {name: key for key, name in gguf.MODEL_ARCH_NAMES.items()}[arch]
    names = gguf.get_tensor_name_map(enum, config.num_hidden_layers)
    writer = gguf.GGUFWriter(path, arch)
    write_metadata(writer, config, arch)
    write_tokenizer(writer, tokenizer)
    stored = {torch.float16: "F16", torch.bfloat16: "BF16"}[dtype]
    for name, weight in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        values = weight.numpy()
        if arch == "llama" and "q_proj" in name:
            values = permuted(values, config.num_attention_heads)
        if arch == "llama" and "k_proj" in name:
            values = permuted(values, config.num_key_value_heads)
        if arch.startswith("gemma") and name.endswith("norm.weight"):
            values = values + 1
        kind = gguf.GGMLQuantizationType["F32" if values.ndim == 1 else stored]
        own = names.get_name(name, try_suffixes=(".weight", ".bias"))
        writer.add_tensor(own, gguf.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make(name):
    kind, settings = MODELS[name]
    config = kind(**{**COMMON, **settings})
    dtype = torch.bfloat16 if name == "qwen3" else torch.float16
    tokenizer = trained_tokenizer()
    ids = tokenizer.encode(PROMPT).ids
    assert len(ids) > 2 * WINDOW
    for seed in itertools.count():
        model = random_model(config, dtype, seed)
        golden = {"prompt": PROMPT, "ids": ids, **expected(model, ids)}
        if telling(golden):
            break
    (HERE / f"{name}.json").write_text(json.dumps(golden) + "\n")
    write_gguf(HERE / f"{name}.gguf", model, dtype, tokenizer)
    model.to(dtype).save_pretrained(HERE / name)
    tokenizer.save(str(HERE / name / "tokenizer.json"), pretty=False)
    settings = {"eos_token": "<|end|>", "bos_token": None, "add_bos_token": False}
    (HERE / name / "tokenizer_config.json").write_text(json.dumps(settings) + "\n")
    print(f"{name}: seed {seed}, tokens {golden['tokens']}, gaps from {min(golden['gaps']):.3f}")


def main():
    for name in sys.argv[1:] or MODELS:
        make(name)


if __name__ == "__main__":
    main()
