"""Checks of WGSL that a user wrote: what its text must offer to be an operator, by line.

A kernel of this package is checked by tests; a user's is checked when it is declared, so that a
slip is one message with a line number and not a validation error of the GPU later.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import FormatError
from .kernel import Kernel, parse_kernel, with_libraries
from .operator import Signature

SESSIONS = ("live", "fault")
"""Bindings that the libraries of these names declare, and that the session binds itself."""

DTYPES = {"f32": ("float32",), "i32": ("int32",), "u32": ("uint32", "int8", "uint8", "bool")}
"""What tensors an array of each element may hold; bytes are packed four to a word."""

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_VARIABLE = re.compile(r"\bvar<\s*(storage|uniform)\b[^>]*>\s*(\w+)\s*:\s*([^;]+);")
_ELEMENT = re.compile(r"^array<\s*(?:atomic<\s*(\w+)\s*>|vec[24]<\s*(\w+)\s*>|vec[24](\w)|(\w+))")
_ENTRY = re.compile(r"@compute\b[^{;]*?\bfn\s+(\w+)\s*\(")
_MEMBER = re.compile(r"(\w+)\s*:\s*((?:[^<>,]|<[^<>]*(?:<[^<>]*>)?[^<>]*>)+)")
_STRUCT = re.compile(r"\bstruct\s+Params\s*\{(.*?)\}", re.S)
_TYPE = re.compile(r"^(?:[uif]32|vec4<[uif]32>|array<vec4<[uif]32>,\s*\d+>)$")


@dataclass(frozen=True, slots=True)
class CheckedKernel:
    """A user's kernel; `elements` has u32, i32 or f32 for each storage variable by name."""

    kernel: Kernel
    elements: dict[str, str]
    width: int | None
    """Invocations of a workgroup where the text says a number; None: the override `wg_size`."""
    folds: bool
    """Whether it names `grid`, whose index spans a grid of two dimensions."""


class _Text:
    """WGSL without its comments, every line where it was."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.plain = _COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)

    def error(self, at: int, message: str) -> FormatError:
        line = self.plain.count("\n", 0, at) + 1
        return FormatError(f"{self.name}.wgsl:{line}: {message}")


def check_wgsl(signature: Signature, wgsl: str) -> CheckedKernel:
    """The kernel of a user's text. FormatError names the line that does not fit the signature."""
    text = _Text(signature.name, wgsl)
    _check_entry(text)
    taken = {a.name for a in signature.arguments} | set(signature.results)
    if taken & set(SESSIONS):
        raise text.error(0, f"{', '.join(SESSIONS)} are the session's own; use another name")
    try:
        whole = with_libraries(wgsl)
    except FileNotFoundError as error:
        raise text.error(wgsl.index("//! lib:"), str(error)) from None
    _check_params(text)
    elements = _check_variables(text, signature, parse_kernel(signature.name, wgsl))
    kernel = parse_kernel(signature.name, whole)
    _check_libraries(text, kernel)
    return CheckedKernel(kernel, elements, _width(text, kernel), "fn linear_index(" in whole)


def _check_entry(text: _Text) -> None:
    entries = list(_ENTRY.finditer(text.plain))
    if not any(m[1] == "main" for m in entries):
        seen = f"the entry point here is {entries[0][1]!r}" if entries else "there is none"
        raise text.error(
            entries[0].start() if entries else 0,
            f"the entry point must be `@compute @workgroup_size(...) fn main(...)`; {seen}",
        )


def _check_variables(text: _Text, signature: Signature, kernel: Kernel) -> dict[str, str]:
    arguments = {a.name: a for a in signature.arguments}
    parsed = {b.name: b for b in kernel.bindings}
    elements: dict[str, str] = {}
    numbers: dict[int, str] = {}
    for found in _VARIABLE.finditer(text.plain):
        space, name, type_ = found.groups()
        at = found.start()
        if name not in parsed:
            raise text.error(
                at,
                f"write `@group(0) @binding(n) var<...> {name}: ...`; "
                "all bindings are in group 0, the group comes first",
            )
        binding = parsed[name]
        if binding.number in numbers:
            raise text.error(
                at, f"binding {binding.number} of {name!r} is that of {numbers[binding.number]!r}"
            )
        numbers[binding.number] = name
        if space == "uniform":
            if type_.strip() != "Params":
                raise text.error(at, f"the uniform {name!r} is {type_.strip()}, must be Params")
            continue
        elements[name] = _element(text, at, name, type_)
        if name not in arguments and name not in signature.results:
            raise text.error(
                at,
                f"binding {name!r} is neither an argument ({', '.join(arguments) or 'none'}) "
                f"nor a result ({', '.join(signature.results)}) of {signature.name}",
            )
        written = name in signature.results or arguments[name].mutated
        if written != (binding.access == "read_write"):
            raise text.error(
                at,
                f"{name!r} is {binding.access} here, but the signature says that the kernel "
                + (
                    "writes it" if written else f"only reads it (write `{name}!` where it does not)"
                ),
            )
    missing = [r for r in signature.results if r not in elements]
    if missing:
        raise text.error(0, f"no `var<storage, read_write>` is named as the result {missing[0]!r}")
    return elements


def _check_libraries(text: _Text, kernel: Kernel) -> None:
    """A library's binding has a number, too, which the user's text can't see."""
    own = {m[2] for m in _VARIABLE.finditer(text.plain)}
    theirs = {b.number: b.name for b in kernel.bindings if b.name not in own}
    for b in kernel.bindings:
        if b.name in own and b.number in theirs:
            found = re.search(rf"var<[^>]*>\s*{b.name}\b", text.plain)
            assert found is not None
            raise text.error(
                found.start(), f"binding {b.number} is that of the library {theirs[b.number]!r}"
            )


def _element(text: _Text, at: int, name: str, type_: str) -> str:
    match = _ELEMENT.match(type_.strip())
    kind = next(filter(None, match.groups()), "") if match else ""
    kind = {"f": "f32", "i": "i32", "u": "u32"}.get(kind, kind)
    if kind not in DTYPES:
        raise text.error(
            at,
            f"{name!r} is {type_.strip()}; a tensor is an array of f32, i32 or u32, "
            "of atomics or of vectors of these",
        )
    return kind


def _check_params(text: _Text) -> None:
    struct = _STRUCT.search(text.plain)
    uniform = next((m for m in _VARIABLE.finditer(text.plain) if m[1] == "uniform"), None)
    if struct is None:
        if uniform:
            raise text.error(uniform.start(), "there is no `struct Params { ... }`")
        return
    if uniform is None:
        raise text.error(
            struct.start(), "Params needs `@group(0) @binding(n) var<uniform> params: Params;`"
        )
    for member in _MEMBER.finditer(struct[1]):
        if not _TYPE.match(member[2].strip()):
            raise text.error(
                struct.start(1) + member.start(),
                f"Params field {member[1]!r} is {member[2].strip()}; allowed are u32, i32, f32, "
                "vec4 of these, and array<vec4<...>, n>",
            )


def _width(text: _Text, kernel: Kernel) -> int | None:
    found = re.search(r"@workgroup_size\(([^)]*)\)", text.plain)
    if found is None:
        raise text.error(0, "`main` needs @workgroup_size(wg_size), or of one to three numbers")
    parts = [p.strip().rstrip("u") for p in found[1].split(",") if p.strip()]
    if parts == ["wg_size"] and "wg_size" in kernel.overrides:
        return None
    if not all(p.isdecimal() for p in parts):
        raise text.error(
            found.start(),
            f"@workgroup_size({found[1]}) must be numbers, or `wg_size` of `//! lib: grid`",
        )
    width = 1
    for p in parts:
        width *= int(p)
    return width


def line_of_field(wgsl: str, field: str) -> int:
    """The line of a Params field, counted from 1."""
    struct = _STRUCT.search(wgsl)
    assert struct is not None
    found = re.search(rf"\b{field}\s*:", struct[1])
    assert found is not None
    return wgsl.count("\n", 0, struct.start(1) + found.start()) + 1
