"""An ExecuTorch program in the page: picture, inputs, run, outputs, by pointer and by keyboard."""

import re

import numpy as np
import pytest

from browser.pages import CASES, Visit
from webgpu_py.assets import asset_path
from webgpu_py.host.server import Server

LAYERS = 30


@pytest.fixture(scope="module")
def site(mounts, settings):
    with Server({**mounts, "/cases/": CASES}, headers=dict(settings.headers)) as running:
        yield running


@pytest.fixture(scope="module")
def visit(browser, site):
    one = Visit(browser, site).goto("/?model=cases/own/two_delegates/model.pte")
    yield one
    one.close()


def drop(visit, case):
    visit.page.locator("#model-file").set_input_files(CASES / case / "model.pte")
    visit.page.get_by_text("Inputs", exact=True).wait_for()
    visit.wait("ready")


def run(visit):
    visit.by("run").click()
    visit.page.get_by_text("Ran in").wait_for(timeout=120_000)
    return visit.by("output").first


def test_boxes_stand_in_order_with_sizes_kinds_and_places(visit):
    graph = visit.by("graph")
    names = graph.locator(".box .name").all_text_contents()
    assert names == ["arg0", "sigmoid", "mul", "topk", "exp", "out0"]
    assert graph.locator(".box.on-cpu").count() == 1
    assert graph.locator(".box.kind-lookup .name").text_content() == "topk"
    assert "3 × 4 f32" in graph.locator(".edge text").all_text_contents()
    assert "1 of them on NumPy" in visit.page.locator(".program-head").inner_text()
    assert visit.violations() == []


def test_a_run_shows_outputs_times_and_memory(visit):
    output = run(visit)
    assert "3 × 3 f32" in output.inner_text()
    assert output.locator("canvas").count() == 1
    assert re.search(r"\d dispatches", visit.page.locator(".results").inner_text())
    assert "GPU memory in all" in visit.by("memory").inner_text()
    features = visit.page.evaluate("navigator.gpu.requestAdapter().then(a => [...a.features])")
    timed = "timestamp-query" in features
    assert visit.by("kernels").count() == timed
    assert ("needs the adapter feature" in visit.page.locator(".results").inner_text()) != timed


def test_typed_values_and_live_shapes_reach_the_program(visit):
    drop(visit, "dynamic_shape/dyn_conv1d")
    page = visit.page
    page.get_by_label("arg0, size of dimension 2, at most 16").fill("17")
    visit.by("run").click()
    page.get_by_text("whole numbers from 1 to 16").wait_for()
    page.get_by_label("arg0, size of dimension 2, at most 16").fill("9")
    page.get_by_label("arg0, filled with").select_option("typed values")
    page.get_by_label("arg0, values").fill("1 2 x")
    visit.by("run").click()
    page.get_by_text("“x” is not a number").wait_for()
    page.get_by_label("arg0, values").fill(" ".join(f"{v}" for v in np.arange(27)))
    shaped = run(visit).inner_text()
    assert "1 × 4 × 4 f32" in shaped or "1 × 4 × 5 f32" in shaped


def test_wrong_values_are_an_error_in_place_and_zeros_run(visit):
    page = visit.page
    page.get_by_label("arg0, values").fill("1 2")
    visit.by("run").click()
    page.get_by_text("2 values for shape").wait_for()
    page.get_by_label("arg0, filled with").select_option("zeros")
    assert run(visit).is_visible()


@pytest.mark.parametrize("width", [360, 1280])
def test_by_keyboard_and_in_pictures(visit, width):
    drop(visit, "own/two_delegates")
    visit.page.set_viewport_size({"width": width, "height": 800})
    visit.page.get_by_label("arg0, filled with").focus()
    for _ in range(5):
        visit.page.keyboard.press("Tab")
        if visit.page.evaluate("document.activeElement.dataset.testid") == "run":
            break
    visit.page.keyboard.press("Enter")
    visit.page.get_by_text("Ran in").wait_for()
    visit.screenshot("program", width)


LARGE = """async ({layers, unfolded}) => {
  const { drawGraph } = await import('/views/graph-picture.js');
  const { findFolds, likeness } = await import('/views/fold.js');
  const f32 = (...dims) => ({dtype: 'float32', dims});
  const box = (op, from, dims, weights = []) => ({op, on: 'gpu', attributes: [], weights,
    edges: from.map((i) => ({from: i, ...f32(1, 8, 64)})), results: [f32(...dims)]});
  const boxes = [box('et_vk.embedding_q8.default', [-1], [1, 8, 64], [f32(512, 64)])];
  for (let layer = 0; layer < layers; layer++) {
    const x = boxes.length - 1;
    const integer = {dtype: 'integer', dims: []};
    if (!layer) boxes.push({...box('sym_size.int', [-1], []), results: [integer]});
    const at = boxes.length;
    boxes.push(box('et_vk.rms_norm.default', [x], [1, 8, 64], [f32(64)]),
      box('et_vk.linear_q4gsw.default', [at], [1, 8, 64], [f32(64, 32)]),
      box('sdpa_with_kv_cache.default', [at + 1], [1, 8, 64]),
      box('aten.add.Tensor', [x, at + 2], [1, 8, 64]));
  }
  boxes.push(box('et_vk.linear_q4gsw.default', [boxes.length - 1], [1, 8, 512], [f32(512, 32)]));
  const picture = {name: 'forward', inputs: [{name: 'ids', ...f32(1, 8)}], boxes,
    outputs: [{name: 'logits', ...f32(1, 8, 512), from: boxes.length - 1}]};
  const start = performance.now();
  const folds = findFolds(boxes.map(likeness));
  const svg = drawGraph(picture, unfolded ? [] : folds);
  const spent = performance.now() - start;
  document.body.replaceChildren(svg);
  return {count: svg.querySelectorAll('.box').length, text: svg.textContent, spent,
          folds: folds.map(({start, end, times}) => [start, end, times]), all: boxes.length};
}"""


@pytest.fixture(scope="module")
def still(browser, settings):
    with Server(
        {"/": asset_path("web"), "/js/": asset_path("js")}, headers=dict(settings.headers)
    ) as running:
        running.pages["/picture.html"] = (
            b"<!doctype html><link rel=stylesheet href=style.css>"
            b"<link rel=stylesheet href=views/program.css><body>"
        )
        one = Visit(browser, running)
        one.page.goto(running.url + "/picture.html")
        yield one
        one.close()


def test_repeated_layers_are_folded_into_one(still):
    found = still.page.evaluate(LARGE, {"layers": LAYERS, "unfolded": False})
    assert found["folds"] == [[2, 6, LAYERS]]
    assert f"this layer comes {LAYERS} times" in found["text"]
    # Input, embedding, a size, four boxes of the layer, the last linear, output.
    assert found["count"] == 9
    still.page.screenshot(path=CASES.parents[2] / ".cache" / "screenshots" / "folded.png")
    whole = still.page.evaluate(LARGE, {"layers": LAYERS, "unfolded": True})
    assert whole["count"] == whole["all"] + 2 and whole["spent"] < 5000


def test_what_does_not_repeat_is_not_folded(still):
    assert still.page.evaluate(LARGE, {"layers": 1, "unfolded": False})["folds"] == []
