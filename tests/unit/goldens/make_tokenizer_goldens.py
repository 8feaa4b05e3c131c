"""Writes tokenizer_goldens.json.gz: what `tokenizers` and `sentencepiece` make of 2,000 strings.

    pip install tokenizers==0.23.3 sentencepiece==0.2.3 gguf==0.19.0
    PYTHONPATH=tests python tests/unit/goldens/make_tokenizer_goldens.py SmolLM2.gguf

For each name: `json`, a tokenizer.json of a small trained vocabulary (or for `sentencepiece` the
lists that GGUF keeps), and `crc`, the CRC-32 of each string's ids as int32, in base64. `smollm2`
has the CRCs only: its vocabulary is the GGUF file's own, run by `tokenizers` with the steps that
the model was trained with. `strings` is the CRC-32 of all strings.
"""

import gzip
import io
import json
import sys
from base64 import b64encode
from pathlib import Path
from zlib import crc32

import gguf
import numpy as np
import sentencepiece
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from tokenizer_strings import strings
from webgpu_py.tokenizer.patterns import LLAMA3, QWEN2, TEKKEN

SPACE = "▁"
TEXTS = strings()
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def crcs(encode):
    found = [crc32(np.array(encode(text), "<i4").tobytes()) for text in TEXTS]
    return b64encode(np.array(found, "<u4").tobytes()).decode()


def split(pattern):
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def byte_level(before, normalizer=None, bos=False, ignore_merges=False):
    """A byte-level vocabulary of 1,200, trained on half of the strings."""
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = before
    if normalizer:
        tokenizer.normalizer = normalizer
    trainer = trainers.BpeTrainer(
        vocab_size=1200,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|begin|>", "<|end|>"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS[::2] * 2, trainer)
    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<|begin|> $A", special_tokens=[("<|begin|>", 0)]
        )
    return finish(tokenizer)


def spaced(normalizer, before=None):
    """A vocabulary in SentencePiece's manner: spaces as U+2581, bytes as a last resort."""
    trained = Tokenizer(models.BPE())
    trained.normalizer = normalizers.Sequence(
        [normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)]
    )
    trained.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never", split=True)
    trainer = trainers.BpeTrainer(vocab_size=900, limit_alphabet=90, show_progress=False)
    trained.train_from_iterator(TEXTS[::2] * 2, trainer)
    model = json.loads(trained.to_str())["model"]
    entries = ["<unk>", "<s>", "</s>", *BYTES, *sorted(model["vocab"], key=model["vocab"].get)]
    runs = [SPACE * 2, SPACE * 4, SPACE * 8]
    entries += [run for run in runs if run not in entries]
    doubled = [(run[: len(run) // 2], run[: len(run) // 2]) for run in runs]
    merges = [tuple(pair) for pair in model["merges"]]
    merges += [pair for pair in doubled if pair not in merges]
    tokenizer = Tokenizer(
        models.BPE(
            vocab={entry: i for i, entry in enumerate(entries)},
            merges=merges,
            unk_token="<unk>",
            byte_fallback=True,
            fuse_unk=True,
        )
    )
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.normalizer = normalizer
    if before:
        tokenizer.pre_tokenizer = before
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    return finish(tokenizer)


def finish(tokenizer):
    return {
        "json": json.loads(tokenizer.to_str()),
        "crc": crcs(lambda text: tokenizer.encode(text).ids),
    }


def trained_sentencepiece(**options):
    """The real thing: pieces, scores and types as a GGUF file has them."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(line for text in TEXTS[::2] for line in text.split("\n") if line),
        model_writer=model,
        model_type="bpe",
        vocab_size=900,
        byte_fallback=True,
        character_coverage=0.98,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        allow_whitespace_only_pieces=True,
        minloglevel=2,
        num_threads=1,
        **options,
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    ids = range(processor.vocab_size())
    kinds = [
        2
        if processor.is_unknown(i)
        else 3
        if processor.is_control(i)
        else 4
        if processor.id_to_piece(i) in options.get("user_defined_symbols", ())
        else 6 * processor.is_byte(i) or 1
        for i in ids
    ]
    return {
        "tokens": [processor.id_to_piece(i) for i in ids],
        "scores": [processor.get_score(i) for i in ids],
        "kinds": kinds,
        "crc": crcs(processor.encode),
    }


def smollm2(path):
    """The model's own vocabulary from its GGUF, under the steps it was trained with."""
    fields = gguf.GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(pair.split(" ")) for pair in fields["tokenizer.ggml.merges"].contents()]
    tokenizer = Tokenizer(
        models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    return {"crc": crcs(lambda text: tokenizer.encode(text).ids)}


def main():
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    replace = normalizers.Replace(" ", SPACE)
    goldens = {
        "strings": crc32("\0".join(TEXTS).encode()),
        "gpt-2": byte_level(plain),
        "smollm": byte_level(
            pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), plain])
        ),
        "llama-bpe": byte_level(split(LLAMA3), bos=True, ignore_merges=True),
        "qwen2": byte_level(split(QWEN2), normalizer=normalizers.NFC()),
        "tekken": byte_level(split(TEKKEN), ignore_merges=True),
        "prepend": spaced(normalizers.Sequence([normalizers.Prepend(SPACE), replace])),
        "metaspace": spaced(
            normalizers.Sequence([]), pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
        ),
        "gemma": spaced(replace, pre_tokenizers.Split(" ", "merged_with_previous")),
        "sentencepiece": trained_sentencepiece(),
        "gemma sentencepiece": trained_sentencepiece(
            add_dummy_prefix=False,
            user_defined_symbols=[
                "<end_of_turn>",
                *(SPACE * n for n in range(2, 9)),
                "\n\n",
                "<b>",
            ],
        ),
        "smollm2": smollm2(sys.argv[1]),
    }
    packed = json.dumps(goldens, ensure_ascii=False, separators=(",", ":")).encode()
    target = Path(__file__).with_name("tokenizer_goldens.json.gz")
    target.write_bytes(gzip.compress(packed, 9, mtime=0))


if __name__ == "__main__":
    main()
