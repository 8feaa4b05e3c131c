"""What a notebook shows: pictures of graphs, facts of sessions, heat maps, progress."""

import asyncio
import re
import struct
import sys
import types
import xml.etree.ElementTree as ET
import zlib
from pathlib import Path

import numpy as np
import pytest

import webgpu_py as wg
from webgpu_py.errors import DtypeError
from webgpu_py.graph.drawing import BOX_HEIGHT, BOX_WIDTH, MAX_BOXES, short_name
from webgpu_py.graph.tables import MAX_ROWS, bars_html
from webgpu_py.notebook import HIGH, LOW, ODD, ZERO, colours
from webgpu_py.picture import program_picture

SVG = "{http://www.w3.org/2000/svg}"
CASES = Path(__file__).resolve().parents[1] / "conformance" / "cases" / "own"


def diamond():
    """linear, then sigmoid and relu side by side, then their product."""
    g = wg.Graph()
    x = g.input("x", (wg.dim("n", max=16), 4))
    h = g.call("aten.linear.default", x, g.constant(np.eye(4, dtype=np.float32)), None)
    g.output("y", g.mul(g.sigmoid(h), g.relu(h)))
    return g


def drawn(graph):
    root = ET.fromstring(graph._repr_svg_())
    cells = {}
    for group in root.iter(f"{SVG}g"):
        rect = group.find(f"{SVG}rect")
        name, below = (t.text for t in group.iter(f"{SVG}text"))
        cells[name] = float(rect.get("x")), float(rect.get("y")), below
    return root, cells


def test_a_graph_draws_every_operator_below_what_it_takes():
    root, cells = drawn(diamond())
    assert list(cells) == ["x", "linear", "sigmoid", "relu", "mul.Tensor", "y"]
    heights = [cells[n][1] for n in cells]
    assert heights == sorted(heights) and heights[2] == heights[3] and len(set(heights)) == 5
    assert abs(cells["relu"][0] - cells["sigmoid"][0]) >= BOX_WIDTH
    assert cells["x"][2] == "float32  n ≤ 16 × 4" and cells["relu"][2] == "float32 16 × 4"
    assert len(list(root.iter(f"{SVG}path"))) == 6
    corner = max(x for x, _, _ in cells.values()) + BOX_WIDTH, heights[-1] + BOX_HEIGHT
    assert float(root.get("width")) >= corner[0] and float(root.get("height")) >= corner[1]


def test_weights_and_attributes_are_in_the_boxes_tip():
    root, _ = drawn(diamond())
    tips = [t.text for t in root.iter(f"{SVG}title")]
    assert any("aten.linear.default\nfloat32 4 × 4" in tip for tip in tips)


def test_what_a_notebook_asks_a_graph_for_in_vain_is_simply_not_there():
    assert not hasattr(wg.Graph(), "savefig")
    with pytest.raises(wg.UnsupportedOperator, match="no helper 'savefig'") as caught:
        wg.Graph().savefig("x.png")
    assert caught.value.code == "UnsupportedOperator"


def test_an_empty_graph_and_a_port_alone_are_drawn():
    assert "0 operators" in wg.Graph()._repr_svg_()
    g = wg.Graph()
    g.output("y", g.input("x", (3,)))
    assert list(drawn(g)[1]) == ["x", "y"]


def test_a_large_graph_says_what_it_leaves_out():
    g = wg.Graph()
    y = g.input("x", (4,))
    for _ in range(MAX_BOXES + 7):
        y = g.relu(y)
    g.output("y", y)
    root, cells = drawn(g)
    assert "7 more operators" in "".join(root.itertext())
    assert len(list(root.iter(f"{SVG}rect"))) == MAX_BOXES + 1 and "y" not in cells


def test_names_are_short_and_never_markup():
    assert short_name("et_vk.prepack.default") == "prepack"
    assert short_name("aten.add.Tensor") == "add.Tensor"
    assert "<script>" not in bars_html([("<script>", 1)], "bytes")


def test_a_session_shows_memory_and_times():
    async def run():
        session = await diamond().build(await wg.request_device("cpu"))
        await session.run(x=np.ones((2, 4), np.float32))
        return session, session._repr_html_()

    session, html = asyncio.run(run())
    memory = session.memory()
    assert f"{memory['total']:,} bytes on the device" in html
    assert "last run" in html and "Session on cpu" in html and "<svg" in html
    assert f"{memory['weights']:,} bytes" in html


def test_bars_are_ordered_and_the_rest_is_counted():
    html = bars_html([(f"k{i}", float(i)) for i in range(MAX_ROWS + 3)], "µs")
    numbers = [float(n.replace(",", "")) for n in re.findall(r"<td>([\d,.]+) µs", html)]
    assert numbers[:-1] == [float(i) for i in range(MAX_ROWS + 2, 2, -1)]
    assert "3 more" in html and numbers[-1] == 0 + 1 + 2


def pixels_of(png):
    """A PNG decoder for 8-bit RGB without filters."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, parts, size = 8, {}, None
    while at < len(png):
        (n,) = struct.unpack(">I", png[at : at + 4])
        kind, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + n]
        assert struct.unpack(">I", png[at + 8 + n : at + 12 + n])[0] == zlib.crc32(kind + data)
        parts[kind] = data
        at += 12 + n
    size = struct.unpack(">II", parts[b"IHDR"][:8])
    lines = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(size[1], -1)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(size[1], size[0], 3)


def test_a_heat_map_has_a_pixel_a_value():
    x = np.array([[0, 4, -4], [2, np.nan, -1]], np.float32)
    pixels = pixels_of(wg.Heatmap(x).png())
    assert pixels.shape == (2, 3, 3)
    assert [tuple(p) for p in pixels[0]] == [ZERO, HIGH, LOW] and tuple(pixels[1, 1]) == ODD
    half = (np.add(ZERO, HIGH) / 2).round()
    np.testing.assert_array_equal(pixels[1, 0], half)
    assert wg.Heatmap(x, "x").caption() == "x · float32 2 × 3 · -4 … 4 · 1 not finite"


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((), (1, 1)),
        ((5,), (1, 5)),
        ((2, 3, 4), (6, 4)),
        ((1300, 2), (434, 2)),
        ((2, 512), (2, 512)),
    ],
)
def test_heat_maps_of_any_shape(shape, size):
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    shown = wg.Heatmap(x)
    assert pixels_of(shown.png()).shape == (*size, 3)
    assert ("every 3. row" in shown.caption()) == (1300 in shape)
    assert 'height="0"' not in shown._repr_html_()


def test_what_is_no_picture():
    assert "empty" in wg.Heatmap(np.zeros((0, 3)))._repr_html_()
    with pytest.raises(DtypeError, match="complex"):
        wg.Heatmap(np.zeros(2, complex))
    assert (colours(np.zeros((1, 1))) == ZERO).all()


def test_progress_is_a_bar_that_moves(monkeypatch):
    shown = []
    handle = types.SimpleNamespace(update=lambda bar: shown.append(bar._repr_html_()))
    display = types.ModuleType("IPython.display")
    display.display = lambda bar, display_id: shown.append(bar._repr_html_()) or handle
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    bar = wg.ProgressBar()
    for done in (0, 1, 500, 1000):
        bar("weights", done, 1000)
    bar("kernels", 3, 0)
    assert len(shown) == 4
    assert 'max="1000" value="500"' in shown[1] and "50 %" in shown[1]
    assert "100 %" in shown[2] and "kernels" in shown[3]


def test_progress_outside_a_notebook_keeps_its_numbers(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    bar = wg.ProgressBar()
    bar("weights", 5, 10)
    assert bar.stages == {"weights": (5, 10)} and "50 %" in bar._repr_html_()


@pytest.mark.parametrize("case", ["two_delegates", "control_flow", "symbolic", "decoder_block"])
def test_a_program_draws_every_method(case):
    async def load():
        return await wg.load(CASES / case / "model.pte", device=await wg.request_device("cpu"))

    program = asyncio.run(load())
    html = program._repr_html_()
    pictures = program_picture(program)
    assert [f"<h4>{p['name']}</h4>" in html for p in pictures] == [True] * len(pictures)
    boxes = [b for p in pictures for b in p["boxes"]]
    roots = [ET.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", html, re.S)]
    kinds = [g.get("class") for root in roots for g in root.iter(f"{SVG}g")]
    assert boxes and sorted(k for k in kinds if k != "port") == sorted(b["on"] for b in boxes)
