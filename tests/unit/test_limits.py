"""Grids and widths: pure functions of counts and limits."""

import pytest

from webgpu_py.errors import LimitExceeded
from webgpu_py.graph.limits import Limits, padded


@pytest.mark.parametrize(
    ("count", "grid"),
    [
        (1, (1, 1)),
        (65535, (65535, 1)),
        (65536, (256, 256)),
        (65537, (257, 256)),
        (65535**2, (65535, 65535)),
    ],
)
def test_fold(count, grid):
    assert Limits().fold(count) == grid


@pytest.mark.parametrize("limit", [1, 4, 255, 65535])
def test_fold_covers_and_stays_near_square(limit):
    limits = Limits().capped({"max_compute_workgroups_per_dimension": limit})
    for count in {1, limit, limit + 1, 2 * limit + 1, limit * limit - 1, limit * limit}:
        if 0 < count <= limit * limit:
            x, y = limits.fold(count)
            assert x <= limit
            assert y <= limit
            assert count <= x * y < count + x
    with pytest.raises(LimitExceeded, match=f"{limit * limit + 1} workgroups"):
        limits.fold(limit * limit + 1)


@pytest.mark.parametrize(
    ("most", "wanted", "width"), [(256, 256, 256), (200, 256, 128), (1, 64, 1), (128, 64, 64)]
)
def test_widths_are_powers_of_two(most, wanted, width):
    limits = Limits(max_compute_invocations_per_workgroup=most)
    assert limits.workgroup_width(wanted) == width


def test_padded():
    assert [padded(n) for n in (0, 1, 16, 17)] == [16, 16, 16, 32]
