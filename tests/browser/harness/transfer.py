"""Python values with arrays in them, as one .npz; the same file runs on both sides."""

import io
import json

import numpy as np

TREE = "tree"


def pack(value):
    """The .npz bytes of a value made of None, bool, int, float, str, bytes, lists, tuples, dicts,
    NumPy arrays and NumPy scalars."""
    arrays = []

    def keep(array):
        arrays.append(np.asarray(array))
        return len(arrays) - 1

    def node(v):
        if isinstance(v, np.generic):
            return {"scalar": keep(v)}
        if v is None or isinstance(v, (bool, int, float, str)):
            return v
        if isinstance(v, np.ndarray):
            return {"array": keep(v)}
        if isinstance(v, (bytes, bytearray, memoryview)):
            return {"bytes": keep(np.frombuffer(v, np.uint8))}
        if isinstance(v, list):
            return [node(x) for x in v]
        if isinstance(v, tuple):
            return {"tuple": [node(x) for x in v]}
        if isinstance(v, dict):
            return {"dict": [[node(k), node(x)] for k, x in v.items()]}
        raise TypeError(f"cannot send a {type(v).__name__} between the test and the browser: {v!r}")

    tree = json.dumps(node(value)).encode()
    named = {f"a{i}": a for i, a in enumerate(arrays)}
    out = io.BytesIO()
    np.savez(out, **{TREE: np.frombuffer(tree, np.uint8)}, **named)
    return out.getvalue()


def unpack(data):
    """The value that `pack` was given."""
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        loaded = {name: arrays[name] for name in arrays.files}

    def value(n):
        if isinstance(n, list):
            return [value(x) for x in n]
        if not isinstance(n, dict):
            return n
        ((kind, content),) = n.items()
        if kind == "tuple":
            return tuple(value(x) for x in content)
        if kind == "dict":
            return {value(k): value(x) for k, x in content}
        array = loaded[f"a{content}"]
        return {"array": lambda: array, "scalar": lambda: array[()], "bytes": array.tobytes}[kind]()

    return value(json.loads(loaded[TREE].tobytes()))
