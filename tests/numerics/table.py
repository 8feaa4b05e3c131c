"""Every operator's row."""

from numerics import (
    rows_copies,
    rows_elementwise,
    rows_int8,
    rows_logic,
    rows_models,
    rows_packed,
    rows_products,
    rows_reductions,
)

FAMILIES = [
    rows_elementwise,
    rows_logic,
    rows_copies,
    rows_reductions,
    rows_products,
    rows_packed,
    rows_int8,
    rows_models,
]
TABLE = {op: row for family in FAMILIES for row in family.ROWS for op in row.ops}

HEAD = """# Numerics: what every operator promises

Generated from the table of `tests/numerics`, which draws shapes and numbers for every operator and
holds the GPU to these bounds (`pytest tests/numerics`); an operator without a row fails the tests.

- The *bound* is the largest difference from the operator's definition, computed in float64 and
  rounded to float32. An ulp is the distance to the next float32. "2^-24 (a sum)" is so much of that
  expression's value, element by element.
- *Numbers* are those that are drawn, by magnitude; beyond them nothing is promised. Equal ones, the
  ends of the range and 0 are always among them.
- *Specials* says what becomes of NaN, infinities and the like.
- Numbers below 2^-126 may count as 0 wherever arithmetic is done, as WGSL allows; operators whose
  bound is "bit for bit" keep them.
- On one device a graph gives the same bits each time it runs on the same inputs: every sample runs
  three times on reused buffers.
- Packed linears may be computed on [subgroup matrices](performance.md#subgroup-matrices) where a
  device has them: their bound is then 2e-3 of the largest value. With
  [integer dot products](performance.md#integer-dot-products) the largest of every 32 neighbours of
  x stands for each of them in the bound.

WGSL lets a GPU take it that no number is NaN or infinite. Where a row promises more, the kernels
look at bits; where sums or products carry a NaN on, it is the arithmetic of the devices that are
tested, SwiftShader in Chromium and lavapipe.

| operator | bound | numbers | specials |
|---|---|---|---|
"""


def document():
    """docs/numerics.md."""
    lines = [HEAD]
    for op in sorted(TABLE):
        row = TABLE[op]
        bounds = row.bound if isinstance(row.bound, tuple) else (row.bound,)
        cells = ["; ".join(dict.fromkeys(b.text for b in bounds)), row.values, row.specials]
        cells = [cell.replace("|", "&#124;") for cell in cells]
        lines.append(f"| `{op}` | {' | '.join(cells)} |\n")
    return "".join(lines)
