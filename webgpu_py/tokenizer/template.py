"""Chat templates: messages to a prompt, by jinja2, bounded in time and memory.

Templates are written for `transformers`, so they find what it gives them: `messages`, `tools`,
`documents`, `add_generation_prompt`, `bos_token`, `eos_token`, `raise_exception`, `strftime_now`,
`tojson` without HTML escapes, loop controls and the `generation` tag.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import DtypeError, FeatureMissing, FormatError, LimitExceeded

if TYPE_CHECKING:
    from types import TracebackType

MAX_SOURCE = 64 << 10
MAX_BRACKETS = 60
MAX_NESTING = 32


class ChatTemplate:
    """A compiled chat template.

    Args:
        source: the template's text.
        bos: text of the begin token, `bos_token` in the template.
        eos: text of the end token.

    Raises:
        FormatError: a template that cannot be read; names the line.
        FeatureMissing: jinja2 is not installed.
    """

    def __init__(self, source: str, bos: str = "", eos: str = "") -> None:
        try:
            sandbox = import_module("webgpu_py.tokenizer.sandbox")
        except ImportError as error:
            raise FeatureMissing(
                "chat templates need jinja2, which is not installed — pip install jinja2"
            ) from error
        self._budget = import_module("webgpu_py.tokenizer.budget")
        _check_source(source)
        self._tokens = {"bos_token": bos, "eos_token": eos}
        try:
            self._template = sandbox.BoundedEnvironment().compile_bounded(source)
        except Exception as error:
            line = getattr(error, "lineno", None)
            text = getattr(error, "message", None) or f"{type(error).__name__}: {error}"
            raise FormatError(f"chat template{_at(line)}: {text}") from None

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        **variables: Any,
    ) -> str:
        """The prompt of a conversation.

        Args:
            messages: `{"role": ..., "content": ...}` each, plain JSON values.
            add_generation_prompt: end with the beginning of the model's answer.
            tools: JSON schemas of functions that the model may call.
            documents: texts that the model may quote.
            variables: more names for the template, such as `enable_thinking`.

        Raises:
            FormatError: the template fails on these messages or refuses them; names the line.
            LimitExceeded: it loops or builds text without end.
            DtypeError: a value that is not plain JSON.
        """
        given = {"messages": messages, "tools": tools, "documents": documents, **variables}
        plain = {name: _plain(value, name, MAX_NESTING) for name, value in given.items()}
        try:
            with self._budget.spending(plain):
                text: str = self._template.render(
                    **self._tokens, **plain, add_generation_prompt=add_generation_prompt
                )
        except Exception as error:
            at, kind = _at(_line_of(error.__traceback__)), type(error).__name__
            if isinstance(error, LimitExceeded):
                raise LimitExceeded(f"chat template{at}: {error}") from None
            if kind == "Refusal":
                raise FormatError(
                    f"the chat template refuses these messages{at}: {error}"
                ) from None
            raise FormatError(f"chat template{at}: {kind}: {error}") from None
        return text


def text_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages whose contents are strings: parts of type "text" are joined by line ends.

    Raises:
        FormatError: no messages, or one without a role, or without a content or tool calls.
        FeatureMissing: a part that is not text, such as a picture; names its type.
    """
    if not messages:
        raise FormatError("there are no messages; a chat has one at least")
    found = []
    for at, message in enumerate(messages):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise FormatError(f"message {at} is {message!r}; it must have a role and a content")
        content = message.get("content")
        if content is None and not message.get("tool_calls"):
            raise FormatError(f"message {at} ({message['role']}) has no content")
        if isinstance(content, Sequence) and not isinstance(content, str) and not _is_data(message):
            content = "\n".join(_text_of(part, at) for part in content)
        found.append({**message, "content": content})
    return found


def _is_data(message: Mapping[str, Any]) -> bool:
    """Whether a tool's result is a list of its own and not one of parts."""
    return message["role"] == "tool" and not all(
        isinstance(part, Mapping) and "type" in part for part in message["content"]
    )


def _text_of(part: Any, at: int) -> str:
    kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
    text = part.get("text") if isinstance(part, Mapping) else None
    if kind != "text" or not isinstance(text, str):
        raise FeatureMissing(
            f"message {at} has a part of type {kind!r}; models here read text only"
        )
    return text


def _check_source(source: str) -> None:
    """Refuse what would be too deep for the parser before it recurses into it."""
    if len(source) > MAX_SOURCE:
        raise FormatError(
            f"chat template of {len(source)} characters, at most {MAX_SOURCE} are allowed"
        )
    depth = 0
    for at, letter in enumerate(source):
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth = max(0, depth - 1)
        if depth > MAX_BRACKETS:
            line = source.count("\n", 0, at) + 1
            raise FormatError(
                f"chat template{_at(line)}: brackets nested deeper than {MAX_BRACKETS}"
            )


def _plain(value: Any, name: str, depth: int) -> Any:
    """A copy in plain JSON types, so that a template meets nothing else."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return str(value)
    if depth > 0 and isinstance(value, Mapping):
        return {str(key): _plain(part, name, depth - 1) for key, part in value.items()}
    if depth > 0 and isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [_plain(part, name, depth - 1) for part in value]
    raise DtypeError(
        f"chat template: {name} holds a {type(value).__name__} — pass strings, numbers, lists and "
        f"dictionaries, nested at most {MAX_NESTING} deep"
    )


def _line_of(trace: TracebackType | None) -> int | None:
    """The template's line in a traceback that jinja2 has rewritten."""
    line = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _at(line: int | None) -> str:
    return "" if line is None else f" line {line}"
