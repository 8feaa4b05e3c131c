"""Greedy answers of SmolLM2 to prompts of many kinds, by `transformers` in float32.

    pip install torch transformers accelerate gguf
    python tests/browser/goldens/make_smollm2_prompts.py .cache/models

`gguf` dequantizes the file's blocks, torch computes on the CPU. `certain` is how many tokens there
are before the first whose logit is less than 0.02 above the next: float32 alone decides no further.
"""

import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
TOKENS, CERTAIN = 24, 0.02
BOXES = " ".join(
    f"Item {i}: the {('red', 'green', 'blue', 'old', 'new')[i % 5]} box weighs {17 * i % 23} kg."
    for i in range(40)
)
PROMPTS = {
    "code": 'def fibonacci(n):\n    """Return the n-th Fibonacci number."""\n',
    "French": "La capitale de la France est Paris. La capitale de l'Italie est",
    "numbers": "1, 2, 4, 8, 16, 32,",
    "characters of many tokens": "日本の首都は東京です。中国の首都は 🙂",
    "system": [
        {"role": "system", "content": "You answer like a pirate, in one sentence."},
        {"role": "user", "content": "What is the sea?"},
    ],
    "conversation": [
        {"role": "user", "content": "Hi!"},
        {"role": "assistant", "content": "Hello! How can I help you?"},
        {
            "role": "user",
            "content": "Translate 'good morning' to Spanish.\n\n```py\nx = 1\n```\ttab",
        },
    ],
    "long": f"{BOXES} How heavy is item 7?",
    "special tokens": "  spaces\n\n\nand <|im_start|> special <|endoftext|> é ü ñ — “quotes”",
}


def answer(model, tokenizer, prompt):
    """Text and tokens of a prompt, and what follows."""
    text = prompt
    if not isinstance(prompt, str):
        text = tokenizer.apply_chat_template(prompt, tokenize=False, add_generation_prompt=True)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    tokens, gaps, past, given = [], [], None, ids
    while len(tokens) < TOKENS and tokens[-1:] != [tokenizer.eos_token_id]:
        out = model(torch.tensor([given]), past_key_values=past, use_cache=True)
        past = out.past_key_values
        first, second = torch.topk(out.logits[0, -1].double(), 2).values.tolist()
        gaps.append(first - second)
        given = [int(out.logits[0, -1].argmax())]
        tokens += given
    unsure = [at for at, gap in enumerate(gaps) if gap < CERTAIN]
    certain = min(unsure, default=len(tokens))
    return {"prompt": prompt, "text": text, "ids": ids, "tokens": tokens, "certain": certain}


def main():
    folder, place = sys.argv[1], Path(__file__).parent / "smollm2_prompts.json"
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=FILE)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=FILE, dtype=torch.float32)
    with torch.no_grad():
        found = {name: answer(model.eval(), tokenizer, p) for name, p in PROMPTS.items()}
    lines = [f" {json.dumps(name)}: {json.dumps(case)}" for name, case in found.items()]
    place.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
