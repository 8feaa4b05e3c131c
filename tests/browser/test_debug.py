"""Session.debug in the browser: who made a NaN, and which kernel is wrong."""

import numpy as np

from browser.test_custom import WGSL


async def row_sums(wgsl, x):
    """A graph whose third node is a kernel of the user's, examined and closed."""
    import numpy as np

    import webgpu_py as wg

    @wg.kernel("test.row_sums(x, eps=0.0) -> y", wgsl)
    def rule(x, eps):
        rows, width = x.shape
        return wg.Launch((rows,), {"rows": rows, "width": width, "eps": eps}, threads=rows)

    @rule.reference
    def summed(x, eps):
        return np.abs(x.astype(np.float64)).sum(1) + eps

    g = wg.Graph()
    rows = g.input("x", (wg.dim("n", max=300), x.shape[1]))
    g.output("y", g.relu(g.call("test.row_sums", g.sqrt(g.neg(rows)), 0.25)))
    device = await wg.request_device("browser")
    session = await g.build(device)
    report = await session.debug(x=x)
    if report.fault is None:
        ran = (await session.run(x=x))["y"]
        assert np.array_equal(report.outputs["y"], ran)
    session.close()
    stats = device.bridge.stats()
    await device.close()
    return report.plain(), [stats[k] for k in ("buffers", "plans")]


X = -np.random.default_rng(3).uniform(0.1, 4, (130, 5)).astype(np.float32)


def test_a_clean_graph_says_so_and_leaves_nothing_behind(gpu):
    report, left = gpu.call(row_sums, wgsl=WGSL, x=X)
    assert report["text"] == "nodes examined: 4, none is wrong"
    assert (report["fault"], left) == (None, [0, 0])


def test_a_broken_kernel_is_found_by_name(gpu):
    broken = WGSL.replace("k < params.width", "k < params.width - u32(row == 64u)")
    report, _ = gpu.call(row_sums, wgsl=broken, x=X)
    fault = report["fault"]
    assert (fault["operator"], fault["node"], fault["output"]) == ("test.row_sums", 2, "y")
    assert (list(fault["index"]), fault["why"], fault["wrong"]) == ([64], "mismatch", 1)
    roots = np.sqrt(-X[64].astype(np.float64))
    np.testing.assert_allclose(fault["expected"], roots.sum() + 0.25, rtol=1e-6)
    np.testing.assert_allclose(fault["found"], roots[:-1].sum() + 0.25, rtol=1e-6)
    assert "kernel test.row_sums(wg_size=64): y[64] is" in report["text"]


def test_the_node_that_makes_nan_is_named(gpu):
    x = X.copy()
    x[77, 3] = 2
    report, _ = gpu.call(row_sums, wgsl=WGSL, x=x)
    fault = report["fault"]
    assert (fault["operator"], fault["node"], list(fault["index"])) == (
        "aten.sqrt.default",
        1,
        [77, 3],
    )
    assert (fault["why"], fault["found"], fault["expected"], fault["wrong"]) == (
        "nan",
        "nan",
        "nan",
        1,
    )
