"""Records what PyTorch computes for every portable operator, into `portable.json`.

Run by hand, in an environment with torch==2.13.0 and executorch==1.5.1:

    python tests/unit/goldens/make_portable.py

Operators are called through their schema, by position, so the order of arguments is proved too.
A case: {op, args, outs: [dtype], results: [tensor]}; a tensor: {dtype, shape, data (base64)}.
"""

import json
from pathlib import Path

import torch
from portable_cases import compute, elementwise, layout, quantized
from portable_cases.recorder import CASES

torch.manual_seed(7)
for make in (
    elementwise.unary,
    elementwise.arithmetic,
    elementwise.compare,
    layout.copies,
    layout.shape,
    layout.indexing,
    compute.reduce,
    compute.matmul,
    compute.norms,
    compute.convolution,
    quantized.quantized,
):
    make()
lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in CASES)
Path(__file__).with_name("portable.json").write_text(f"[\n{lines}\n]\n")
print(len(CASES), "cases")
