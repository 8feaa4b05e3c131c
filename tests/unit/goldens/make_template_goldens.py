"""Writes template_goldens.json: what `transformers` makes of our templates and conversations.

    pip install transformers==5.24.0
    python tests/unit/goldens/make_template_goldens.py SmolLM2.gguf

Cases: `template` (a file of templates/, or `smollm2` for the GGUF's own), `variables` for the
template, and `expected`, the prompt or `{"raises": text}` where the template refuses.
"""

import json
import sys
from pathlib import Path

import gguf
from jinja2 import TemplateError
from transformers.utils.chat_template_utils import render_jinja_template

HERE = Path(__file__).parent
NAMES = ("headers", "alternating", "thinking", "turns", "documents", "smollm2")

USER = {"role": "user", "content": "  What is <b>2 + 2</b> & why?  \n"}
SYSTEM = {"role": "system", "content": 'You are terse.\tAlways.\nNo small talk: 日本語 "ok".'}
ANSWER = {"role": "assistant", "content": "<think>\nadd them\n</think>\n\nFour."}
AGAIN = {"role": "user", "content": "And 3 × 3? 👍🏽"}
CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {
            "type": "function",
            "function": {
                "name": "weather",
                "arguments": {"city": "Zürich", "days": [1, 2.5, None]},
            },
        }
    ],
}
RESULT = {"role": "tool", "content": '{"sky": "clear"}'}
STRUCTURED = {"role": "tool", "content": {"sky": ["clear", "<cold>"], "ok": True}}
PARTS = {
    "role": "user",
    "content": [{"type": "image"}, {"type": "text", "text": " Describe. "}, {"type": "audio"}],
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Weather & wind at a place, in °C.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "array"}},
                "required": ["city"],
            },
        },
    }
]
DOCUMENTS = [
    {"title": "a short one", "text": "brief", "meta": {"b": 2, "a": "x", "c": 0.5}},
    {"text": "left out"},
    {"title": "long", "text": "words and " * 8},
    {"title": "fourth", "text": "not shown"},
]

CONVERSATIONS = {
    "one": {"messages": [USER]},
    "bare": {"messages": [USER], "add_generation_prompt": False},
    "system": {"messages": [SYSTEM, USER, ANSWER, AGAIN]},
    "ends with answer": {"messages": [USER, ANSWER], "add_generation_prompt": False},
    "wrong order": {"messages": [USER, AGAIN]},
    "tools": {"messages": [SYSTEM, USER, CALL, RESULT, ANSWER, AGAIN], "tools": TOOLS},
    "tool pending": {"messages": [USER, CALL, RESULT, STRUCTURED], "tools": TOOLS},
    "two calls": {"messages": [USER, {**CALL, "tool_calls": CALL["tool_calls"] * 2}, RESULT]},
    "parts": {"messages": [PARTS]},
    "documents": {"messages": [SYSTEM, SYSTEM, USER, ANSWER], "documents": DOCUMENTS},
    "variables": {"messages": [USER], "enable_thinking": False, "date_string": "1 May 2030"},
}


def expected(template, variables):
    variables = {"add_generation_prompt": True, **variables}
    try:
        made = render_jinja_template(
            [variables.pop("messages")],
            chat_template=template,
            bos_token="<s>",
            eos_token="</s>",
            **variables,
        )
    except TemplateError as error:
        return {"raises": str(error)}
    except TypeError:
        return {"raises": "TypeError"}
    return made[0][0]


def main():
    own = gguf.GGUFReader(sys.argv[1]).fields["tokenizer.chat_template"].contents()
    cases = []
    for name in NAMES:
        path = HERE / "templates" / f"{name}.jinja"
        template = path.read_text() if path.exists() else own
        for title, variables in CONVERSATIONS.items():
            made = expected(template, dict(variables))
            cases.append(
                {"template": name, "title": title, "variables": variables, "expected": made}
            )
    text = json.dumps(cases, ensure_ascii=False, indent=1)
    (HERE / "template_goldens.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
