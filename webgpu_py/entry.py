"""What a page's worker calls for the command line: a named function of this package, never code.

An entry function is `async def name(args: dict, emit: Callable[[Any], None])`. Its result may be
anything that `transfer.pack` takes; `emit` sends JSON values ahead of it, such as pieces of text.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from typing import Any

from webgpu_py import transfer
from webgpu_py.errors import FeatureMissing

PACKAGE = "webgpu_py."
HOST = "webgpu_py.host"


async def call(name: str, payload: bytes, emit: Callable[[str], None]) -> bytes:
    """Call the entry function `name` ("webgpu_py.module:function") and pack its result or error.

    `payload` is the packed `args`; `emit` takes the JSON text of each value sent ahead.
    """
    try:
        function = _function(name)
        result = await function(
            transfer.unpack(payload), lambda value: emit(json.dumps(value, ensure_ascii=False))
        )
        return transfer.pack_result(result)
    except Exception as error:
        return transfer.pack_error(error)


def _function(name: str) -> Any:
    module, _, function = name.partition(":")
    inside = module.startswith(PACKAGE) and module != HOST and not module.startswith(f"{HOST}.")
    if not inside or not function.isidentifier() or function.startswith("_"):
        raise FeatureMissing(
            f"entry {name!r}: a public function of this package is callable here, "
            "written 'webgpu_py.module:function'"
        )
    found = getattr(importlib.import_module(module), function, None)
    if not callable(found):
        raise FeatureMissing(f"entry {name!r}: {module} has no function {function!r}")
    return found


async def echo(args: dict[str, Any], emit: Callable[[Any], None]) -> dict[str, Any]:
    """Return `args`, to see that the way there and back works."""
    emit({"keys": list(args)})
    return args
