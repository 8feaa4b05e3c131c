"""WGSL kernels: loading, the libraries they name, and the interface parsed from their text.

The WGSL file is the single source of a kernel's interface. Bindings are
`@group(0) @binding(n) var<...> name: type;`; parameters are `struct Params {...}`; the first lines
may name shared pieces as `//! lib: grid, fault`, which are appended (module scope has no order).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from ..assets import asset_text
from ..errors import LimitExceeded

Access = Literal["read", "read_write", "uniform"]
Number = int | float | Sequence[int] | Sequence[float]

_LIB = re.compile(r"^//! lib: (.+)$", re.M)
_BINDING = re.compile(
    r"@group\(0\)\s*@binding\((\d+)\)\s*var<(storage(?:,\s*(\w+))?|uniform)>\s*(\w+)\s*:"
)
_PARAMS = re.compile(r"struct\s+Params\s*\{(.*?)\}", re.S)
_FIELD = re.compile(r"(\w+)\s*:\s*(array<.*?>,\s*\d+>|[\w<>]+)")
_OVERRIDE = re.compile(r"^\s*override\s+(\w+)\s*:", re.M)
_VECTOR = re.compile(r"^(?:array<vec4<(\w+)>,\s*(\d+)>|vec4<(\w+)>)$")
_UNIFORM = re.compile(r"@group\(0\)\s*@binding\(\d+\)\s*var<uniform>\s*(\w+)\s*:\s*Params\s*;")
_LITERALS = {"I": "{}u", "i": "{}i", "f": "{!r}f"}
_CODES = {"u32": "I", "i32": "i", "f32": "f"}


@dataclass(frozen=True, slots=True)
class Binding:
    """One resource variable of a kernel."""

    name: str
    number: int
    access: Access


@dataclass(frozen=True, slots=True)
class Field:
    """One member of Params: byte offset, struct code of an element, number of elements."""

    name: str
    offset: int
    code: str
    count: int


@dataclass(frozen=True, slots=True)
class Kernel:
    """A compute module with one entry point `main`."""

    name: str
    wgsl: str
    bindings: tuple[Binding, ...]
    fields: tuple[Field, ...]
    params_nbytes: int
    overrides: frozenset[str]

    def pack(self, values: Mapping[str, Number]) -> bytes:
        """Params as bytes in WGSL's uniform layout; every field must be given, and no other."""
        names = {f.name for f in self.fields}
        if names != set(values):
            raise KeyError(f"kernel {self.name}: Params {sorted(names)} but got {sorted(values)}")
        out = bytearray(self.params_nbytes)
        for f in self.fields:
            value = values[f.name]
            try:
                if f.count == 1:
                    struct.pack_into("<" + f.code, out, f.offset, value)
                else:
                    items = list(value)  # type: ignore[arg-type]
                    items += [0] * (f.count - len(items))
                    struct.pack_into(f"<{f.count}{f.code}", out, f.offset, *items)
            except (struct.error, OverflowError) as error:
                raise LimitExceeded(
                    f"kernel {self.name}: {f.name} is {value}, which has no 32-bit form ({error})"
                ) from None
        return bytes(out)


def baked(kernel: Kernel, values: Mapping[str, Number], grid: tuple[int, int, int]) -> Kernel:
    """The kernel with its Params, scalars all, and its grid as constants of its text.

    Compilers fold them into addresses and loops, and a dispatch does not begin by waiting for
    them: worth a pipeline of its own where a kernel is a matter of few microseconds.
    """
    return _baked(kernel, _scalars(kernel, values), grid[0])


@cache
def _baked(kernel: Kernel, numbers: tuple[int | float, ...], across: int) -> Kernel:
    literals = [_LITERALS[f.code].format(n) for f, n in zip(kernel.fields, numbers, strict=True)]
    constant = rf"const \1 = Params({', '.join(literals)});"
    text, count = _UNIFORM.subn(constant, kernel.wgsl)
    if count != 1:
        raise KeyError(f"kernel {kernel.name} has {count} uniforms of type Params, must have one")
    # As `wgsl/lib/grid.wgsl` names the built-in value.
    text = text.replace("groups.x", f"{across}u")
    bindings = tuple(b for b in kernel.bindings if b.access != "uniform")
    return Kernel(kernel.name, text, bindings, (), 0, kernel.overrides)


def _scalars(kernel: Kernel, values: Mapping[str, Number]) -> tuple[int | float, ...]:
    """The values as they are in memory, float32 rounded."""
    if any(f.count > 1 for f in kernel.fields):
        raise KeyError(f"kernel {kernel.name} has vectors among its Params, must have none")
    layout = "<" + "".join(f.code for f in kernel.fields)
    return struct.unpack_from(layout, kernel.pack(values))


def _layout(body: str) -> tuple[tuple[Field, ...], int]:
    body = re.sub(r"//[^\n]*", "", body)
    fields: list[Field] = []
    offset = 0
    for name, type_ in _FIELD.findall(body):
        vector = _VECTOR.match(type_)
        if vector:
            offset = (offset + 15) & ~15
            count = 4 * int(vector[2] or 1)
            code = _CODES[vector[1] or vector[3]]
        else:
            count, code = 1, _CODES[type_]
        fields.append(Field(name, offset, code, count))
        offset += 4 * count
    return tuple(fields), (offset + 15) & ~15


def parse_kernel(name: str, wgsl: str) -> Kernel:
    """The interface of complete WGSL text."""
    bindings = []
    for number, space, access, variable in _BINDING.findall(wgsl):
        kind: Access = "uniform" if space == "uniform" else access or "read"
        bindings.append(Binding(variable, int(number), kind))
    params = _PARAMS.search(wgsl)
    fields, nbytes = _layout(params[1]) if params else ((), 0)
    return Kernel(name, wgsl, tuple(bindings), fields, nbytes, frozenset(_OVERRIDE.findall(wgsl)))


def with_libraries(text: str) -> str:
    """A kernel's text, and after it the libraries that its `//! lib:` lines name."""
    libs = [lib.strip() for line in _LIB.findall(text) for lib in line.split(",")]
    return "\n".join([text, *(asset_text(f"wgsl/lib/{lib}.wgsl") for lib in libs)])


@cache
def load_kernel(name: str) -> Kernel:
    """The kernel `wgsl/<name>.wgsl` with the libraries it names."""
    return parse_kernel(name, with_libraries(asset_text(f"wgsl/{name}.wgsl")))
