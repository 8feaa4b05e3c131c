"""One graph on NumPy, in Chromium, and on a page."""

import asyncio
from pathlib import Path

import my_ops
import numpy as np

RANDOM = np.random.default_rng(0)
Q = RANDOM.standard_normal((5, 32)).astype(np.float32)
K = RANDOM.standard_normal((9, 32)).astype(np.float32)
EXPECTED = 2 * np.tanh(Q.astype(np.float64) @ K.T.astype(np.float64) / 2)


def test_on_numpy():
    out = asyncio.run(my_ops.capped_scores("cpu", Q, K))
    np.testing.assert_allclose(out, EXPECTED, rtol=1e-5, atol=1e-5)


def test_in_the_browser(gpu):
    gpu.add(Path(my_ops.__file__))
    code = "import my_ops\nawait my_ops.capped_scores('browser', q, k)"
    np.testing.assert_allclose(gpu.run(code, q=Q, k=K), EXPECTED, rtol=1e-5, atol=1e-5)


def test_a_page_of_ones_own(gpu_page, gpu_server):
    gpu_server.pages["/mine.html"] = b"<!doctype html><p>hello</p>"
    gpu_page.goto(f"{gpu_server.url}/mine.html")
    assert gpu_page.locator("p").inner_text() == "hello"
    assert gpu_page.evaluate("navigator.gpu.requestAdapter().then(a => a !== null)")
