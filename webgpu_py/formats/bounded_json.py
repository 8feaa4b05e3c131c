"""JSON from files of strangers: depth is checked before the parser recurses into it.

In a browser a deep recursion in the parser's C code ends the interpreter; no exception comes.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ..errors import FormatError

MAX_DEPTH = 64
CHUNK = 1 << 16


def parse_json(name: str, raw: bytes) -> Any:
    """The value of a JSON text; `name` is what errors call the file.

    Raises:
        FormatError: no JSON, a key that stands twice in an object, nested deeper than 64.
    """
    depth = _depth(raw)
    if depth > MAX_DEPTH:
        raise FormatError(f"{name}: JSON nested {depth} deep, at most {MAX_DEPTH} is read")
    try:
        return json.loads(raw, object_pairs_hook=_once)
    except ValueError as error:
        raise FormatError(f"{name}: no JSON: {error}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key stands twice in an object")
    return made


def _depth(raw: bytes) -> int:
    """How deep brackets are nested outside of strings."""
    # Without escapes every quote is the border of a string.
    letters = np.frombuffer(raw.replace(b"\\\\", b"").replace(b'\\"', b""), np.uint8)
    depth = deepest = 0
    quoted = np.uint8(0)
    for start in range(0, len(letters), CHUNK):
        part = letters[start : start + CHUNK]
        inside = np.bitwise_xor.accumulate((part == ord('"')).view(np.uint8)) ^ quoted
        quoted = inside[-1]
        folded = part | np.uint8(0x20)  # brings '[' to '{' and ']' to '}'
        steps = (folded == ord("{")).astype(np.int32) - (folded == ord("}"))
        depths = np.cumsum(steps * (inside == 0)) + depth
        depth, deepest = int(depths[-1]), max(deepest, int(depths.max()))
    return deepest
