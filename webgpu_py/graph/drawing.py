"""A picture of a graph as SVG: layers from top to bottom, operators side by side where they may."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from .picture import Origin, Record

BOX_WIDTH, BOX_HEIGHT, GAP_X, GAP_Y, MARGIN = 236, 52, 28, 34, 12
MAX_BOXES = 150
"""More are counted, not drawn: a notebook stays usable."""

STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#1c2430}"
    ".soft{fill:#5b6675;font-size:11px}"
    "rect{fill:#eef3fb;stroke:#7c93b5;rx:6px}"
    ".port rect{fill:#fff;stroke-dasharray:4 3}"
    ".cpu rect{fill:#fdf3e3;stroke:#c79a4b}"
    "path{fill:none;stroke:#7c93b5;stroke-width:1.4}"
)

_Place = tuple[float, float]


def graph_svg(picture: Record) -> str:
    """The SVG text of a picture; it says how many operators it left out, if any."""
    boxes = picture["boxes"][:MAX_BOXES]
    left_out = len(picture["boxes"]) - len(boxes)
    inputs = picture["inputs"]
    layers = _layers(boxes, len(inputs))
    places = _places(layers)
    shown = [p for p in picture["outputs"] if p["from"] in places or p["from"] is None]
    depth = len(layers)
    drawn: list[str] = []
    for index, box in enumerate(boxes):
        drawn += _edges(box["edges"], places, places[index])
    for k, port in enumerate(shown):
        drawn += _edges([port], places, _place(depth, k))
    drawn += [_port(port, places[-1 - k]) for k, port in enumerate(inputs)]
    drawn += [_box(box, places[index]) for index, box in enumerate(boxes)]
    drawn += [_port(port, _place(depth, k)) for k, port in enumerate(shown)]
    columns = max([len(shown), *map(len, layers)], default=1)
    width = 2 * MARGIN + columns * (BOX_WIDTH + GAP_X) - GAP_X
    height = 2 * MARGIN + (depth + 1) * (BOX_HEIGHT + GAP_Y) - GAP_Y
    if left_out:
        words = f"and {left_out} more operators, which are not drawn"
        drawn.append(f'<text x="{MARGIN}" y="{height + 4}">{words}</text>')
        height += 2 * MARGIN
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img">'
    title = f"<title>a graph of {len(picture['boxes'])} operators</title>"
    return "".join([head, title, f"<style>{STYLE}</style>", *drawn, "</svg>"])


def _layers(boxes: Sequence[Record], inputs: int) -> list[list[Origin]]:
    """Ids by layer: inputs first, each box below everything it takes."""
    layer: dict[Origin, int] = {-1 - k: 0 for k in range(inputs)}
    for index, box in enumerate(boxes):
        layer[index] = 1 + max((layer[edge["from"]] for edge in box["edges"]), default=0)
    found: list[list[Origin]] = [[] for _ in range(max(layer.values(), default=0) + 1)]
    for origin, at in layer.items():
        found[at].append(origin)
    return found


def _places(layers: Sequence[Sequence[Origin]]) -> dict[Origin, _Place]:
    return {
        origin: _place(depth, k)
        for depth, layer in enumerate(layers)
        for k, origin in enumerate(layer)
    }


def _place(depth: int, column: int) -> _Place:
    return MARGIN + column * (BOX_WIDTH + GAP_X), MARGIN + depth * (BOX_HEIGHT + GAP_Y)


def _edges(edges: Iterable[Record], places: dict[Origin, _Place], to: _Place) -> list[str]:
    found = []
    for edge in edges:
        if edge["from"] not in places:
            continue
        x, y = places[edge["from"]]
        x0, y0 = x + BOX_WIDTH / 2, y + BOX_HEIGHT
        x1, y1 = to[0] + BOX_WIDTH / 2, to[1]
        # An edge past other layers swings out to the left of the boxes between.
        swing = -BOX_WIDTH / 2 - 18 if y1 - y0 > 2 * GAP_Y and x0 == x1 else 0
        middle = (y0 + y1) / 2
        found.append(
            f'<path d="M{x0:g} {y0:g}C{x0 + swing:g} {middle:g} {x1 + swing:g} {middle:g} '
            f'{x1:g} {y1:g}"/>'
        )
    return found


def _port(port: Record, place: _Place) -> str:
    dims = " × ".join(port.get("words") or map(str, port["dims"])) or "scalar"
    return _cell("port", port["name"], f"{port['dtype']}  {dims}", port["name"], place)


def _box(box: Record, place: _Place) -> str:
    inside = [shape_words(w) for w in box["weights"]] + box["attributes"]
    tip = "\n".join([box["op"], *inside])
    small = ", ".join(shape_words(r) for r in box["results"])
    return _cell(box["on"], short_name(box["op"]), small, tip, place)


def _cell(kind: str, name: str, small: str, tip: str, place: _Place) -> str:
    x, y = place
    text = f'<text x="{x + 10}" y="{y + 21}">{escape(_cut(name, 32))}</text>'
    below = f'<text class="soft" x="{x + 10}" y="{y + 39}">{escape(_cut(small, 38))}</text>'
    box = f'<rect x="{x}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}"/>'
    return f'<g class="{kind}"><title>{escape(tip)}</title>{box}{text}{below}</g>'


def short_name(op: str) -> str:
    """An operator without its library and its default overload."""
    parts = op.split(".")
    kept = parts[1:] if len(parts) > 2 or parts[0] == "webgpu_py" else parts
    return ".".join(kept).removesuffix(".default")


def shape_words(record: Record) -> str:
    """`float32 4 × 64`."""
    return f"{record['dtype']} {' × '.join(map(str, record['dims']))}".strip()


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
