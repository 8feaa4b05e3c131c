"""Every operator on drawn shapes and numbers: within its bound, and the same bits every time.

The table of `numerics.table` says what is promised; docs/numerics.md is that table for people.
`--native` computes on wgpu-py instead of in the browser, `--samples 100 --salt 7` draws other and
more samples than usual.
"""

from collections import Counter
from pathlib import Path

import pytest

from numerics import table
from numerics.drive import Tally, draw, verify
from webgpu_py.graph.operator import operator_index

PAGE = Path(__file__).resolve().parents[2] / "docs" / "numerics.md"


@pytest.fixture(scope="module")
def tally(counts):
    """What all tests of this run compared, said once at its end."""
    done = Tally(Counter(), Counter())
    yield done
    counts.append(done.line())


def check(drawn, gpu, tally):
    complaints = verify(drawn, gpu, tally)
    assert not complaints, "\n".join([f"{len(complaints)} complaints", *complaints[:20]])


def test_every_operator_has_a_row():
    assert set(table.TABLE) == set(operator_index())
    assert sum(len(r.ops) for f in table.FAMILIES for r in f.ROWS) == len(table.TABLE)


def test_the_page_is_the_table(request):
    if request.config.getoption("--update-numerics"):
        PAGE.write_text(table.document())
    assert PAGE.read_text() == table.document(), "run pytest tests/numerics --update-numerics"


def test_a_few(gpu, tally):
    """A row's third sample, of kernels that compile soon; the plainest is drawn first."""
    quick = [f for f in table.FAMILIES if f not in (table.rows_models, table.rows_packed)]
    rows = [row for family in quick for row in family.ROWS]
    check([draw(row, row.ops[0], 3)[-1] for row in rows], gpu, tally)


@pytest.mark.slow
@pytest.mark.parametrize("family", table.FAMILIES, ids=lambda f: f.__name__.rpartition("_")[2])
def test_many(family, gpu, tally, request):
    count, salt = (request.config.getoption(o) for o in ("--samples", "--salt"))
    pairs = [(row, op) for row in family.ROWS for op in row.ops]
    check([one for row, op in pairs for one in draw(row, op, count, salt)], gpu, tally)
