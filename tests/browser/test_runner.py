"""The command line's runner: named functions of the package in a real browser, nothing else."""

import numpy as np
import pytest

from webgpu_py.errors import FeatureMissing
from webgpu_py.host.runner import BrowserRunner


@pytest.fixture(scope="module")
def runner(settings):
    with BrowserRunner(settings) as running:
        yield running


def test_named_function_with_arrays_and_files(runner, tmp_path):
    path = tmp_path / "data file.bin"
    path.write_bytes(b"bytes")
    seen = []
    x = np.arange(5, dtype=np.int64)
    out = runner.call("webgpu_py.entry:echo", {"x": x, "file": path}, seen.append)
    np.testing.assert_array_equal(out["x"], x)
    assert out["file"].endswith("/data%20file.bin")
    assert seen == [{"keys": ["x", "file"]}]


@pytest.mark.parametrize(
    "name",
    ["os:system", "webgpu_py.host.setup:main", "webgpu_py.entry:_function", "webgpu_py:x.y", "x"],
)
def test_anything_else_is_refused(runner, name):
    with pytest.raises(FeatureMissing, match="entry"):
        runner.call(name, {})
