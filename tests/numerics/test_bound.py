"""The bounds themselves: what they let pass, what they see."""

from collections import Counter

import numpy as np
import pytest

from numerics import drive, table
from numerics.bound import BITS, EXACT, Row, codes, near, share, ulps
from numerics.values import ANY, LARGEST, MILD, NORMAL, Floats

INF, NAN = np.inf, np.nan
ONE = np.float32(1)


def wrong(bound, got, want, size=None):
    return bound.wrong(np.array(got, np.float32), np.array(want, np.float32), size).tolist()


def test_bits_see_a_sign_and_a_payload():
    quiet = np.array([0x7FC00001, 0x80000000, 5], np.uint32).view(np.float32)
    other = np.array([0x7FC00000, 0, 5], np.uint32).view(np.float32)
    assert BITS.wrong(quiet, other).tolist() == [True, True, False]
    assert EXACT.wrong(quiet, other).tolist() == [False, False, False]


def test_nan_and_infinities_must_be_where_they_are():
    assert wrong(ulps(4), [NAN, 1, NAN, INF, -INF], [NAN, NAN, 1, -INF, -INF]) == [
        *(False, True, True, True, False)
    ]
    assert not any(wrong(share(1, "", loose=True), [NAN, INF, -INF], [INF, NAN, INF], ONE))
    assert all(wrong(share(1, "", loose=True), [NAN, 1], [1, NAN], ONE))


def test_beside_an_infinity_the_largest_number_is_one_ulp_off():
    assert wrong(ulps(1), [LARGEST, INF], [INF, LARGEST]) == [False, False]
    assert wrong(EXACT, [LARGEST, INF], [INF, LARGEST]) == [True, True]
    assert wrong(ulps(1), [LARGEST / 2], [INF]) == [True]


def test_units_follow_the_true_value():
    assert wrong(ulps(2), [1 + 2**-22, 1 + 3 * 2**-23, 1 - 2**-22], [1, 1, 1]) == [
        *(False, True, False)
    ]
    assert wrong(ulps(0), [0, NORMAL, 4e-38], [NORMAL / 2, 0, 2e-38]) == [False, False, True]


def test_other_bounds():
    assert wrong(near(1e-3), [1.0009, 1.0011], [1, 1]) == [False, True]
    assert wrong(share(1, ""), [1 + 2**-23] * 2, [1, 1], np.array([2.0, 1.0])) == [False, True]
    found = codes(1).wrong(np.array([-128, 3], np.int8), np.array([127, 4], np.int8))
    assert found.tolist() == [True, False]


@pytest.mark.parametrize("run", [0, 2])
def test_a_wrong_value_and_an_unstable_one_are_told(monkeypatch, run):
    row = table.TABLE["aten.mul.Tensor"]
    real = drive.run_all

    def faulty(cases, gpu=None):
        found = real(cases, gpu)
        if len(found[0]) == 3:
            value = found[0][run][0]
            value.reshape(-1)[-1] = np.nan_to_num(value.reshape(-1)[-1]) * 2 + 3
        return found

    monkeypatch.setattr(drive, "run_all", faulty)
    drawn = drive.draw(row, "aten.mul.Tensor", 3)
    tally = drive.Tally(Counter(), Counter())
    told = "\n".join(drive.verify(drawn, None, tally))
    assert "another run gives other bits" in told
    assert ("outside of 1 ulp" in told) == (run == 0)
    assert tally.graphs.total() == 3


@pytest.mark.parametrize(
    "values", [ANY, MILD, Floats(-4, 4, positive=True, special=(), denormal=False)], ids=str
)
def test_numbers_stay_within_what_they_say(values):
    row = Row(("x",), lambda draw, op: values(draw, (50,)), EXACT, "", "")
    found = np.concatenate([x for _, _, x in drive.draw(row, "x", 60)]).astype(np.float64)
    size = abs(found[np.isfinite(found) & (found != 0)])
    assert size.max() < 2.0 ** (values.high + 1)
    assert values.denormal == (size.min() < 2.0**values.low)
    assert np.isnan(found).any() == (values is ANY)
    assert (found > 0).all() or not values.positive
