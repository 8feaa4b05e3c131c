"""Log-log plots as SVG: measured points of a few series, and a line with the expected slope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 76, 210, 40, 52
COLOURS = ("#2563eb", "#dc2626", "#16a34a", "#9333ea", "#ea580c", "#0891b2", "#4d7c0f", "#be185d")

Points = Sequence[tuple[float, float]]


class _Axis:
    """A logarithmic axis over whole decades from `start` to `stop` pixels."""

    def __init__(self, values: Sequence[float], start: float, stop: float) -> None:
        self.low, self.high = floor(log10(min(values))), ceil(log10(max(values)))
        self.high = max(self.high, self.low + 1)
        self.start, self.stop = start, stop

    def at(self, value: float) -> float:
        share = (log10(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.stop - self.start)

    @property
    def ticks(self) -> list[int]:
        return list(range(self.low, self.high + 1))


def log_plot(
    title: str, across: str, up: str, series: Mapping[str, Points], slope: float, note: str
) -> str:
    """An SVG of `series`; the dashed line has the expected `slope` and `note` says why."""
    xs = [x for points in series.values() for x, _ in points]
    ys = [y for points in series.values() for _, y in points]
    x_axis = _Axis(xs, LEFT, WIDTH - RIGHT)
    y_axis = _Axis(ys, HEIGHT - BOTTOM, TOP)
    parts = [_text(LEFT, 22, title, "font-weight='600' font-size='15'")]
    parts += _grid(x_axis, y_axis)
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, across, "text-anchor='middle'"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        _text(18, middle, up, f"text-anchor='middle' transform='rotate(-90 18 {middle:.0f})'")
    )
    parts.append(_expected(x_axis, y_axis, max(next(iter(series.values()))), slope))
    legend = TOP + 8
    for colour, (name, points) in zip(COLOURS, series.items(), strict=False):
        placed = [(x_axis.at(x), y_axis.at(y)) for x, y in sorted(points)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f"<polyline points='{line}' fill='none' stroke='{colour}' stroke-width='2'/>")
        parts += [f"<circle cx='{x:.1f}' cy='{y:.1f}' r='3' fill='{colour}'/>" for x, y in placed]
        parts.append(_text(WIDTH - RIGHT + 14, legend, name, f"fill='{colour}'"))
        legend += 18
    parts.append(_text(WIDTH - RIGHT + 14, legend + 6, f"- - {note}", "fill='#666'"))
    body = "\n".join(parts)
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' "
        f"font-family='system-ui, sans-serif' font-size='12'>\n"
        f"<rect width='{WIDTH}' height='{HEIGHT}' fill='#fff'/>\n{body}\n</svg>\n"
    )


def _grid(x_axis: _Axis, y_axis: _Axis) -> list[str]:
    parts = []
    for tick in x_axis.ticks:
        x = x_axis.at(10.0**tick)
        parts.append(_line(x, TOP, x, HEIGHT - BOTTOM))
        parts.append(_text(x, HEIGHT - BOTTOM + 18, _power(tick), "text-anchor='middle'"))
    for tick in y_axis.ticks:
        y = y_axis.at(10.0**tick)
        parts.append(_line(LEFT, y, WIDTH - RIGHT, y))
        parts.append(_text(LEFT - 8, y + 4, _power(tick), "text-anchor='end'"))
    return parts


def _expected(x_axis: _Axis, y_axis: _Axis, anchor: tuple[float, float], slope: float) -> str:
    """The slope through the largest size of the first series, cut to the plot."""
    centre_x, centre_y = (log10(value) for value in anchor)
    ends = []
    for edge in (x_axis.low, x_axis.high):
        y = centre_y + slope * (edge - centre_x)
        held = min(max(y, y_axis.low), y_axis.high)
        x = edge if held == y else centre_x + (held - centre_y) / slope
        ends += [x_axis.at(10.0**x), y_axis.at(10.0**held)]
    x1, y1, x2, y2 = ends
    return (
        f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='#666' "
        "stroke-dasharray='5 5'/>"
    )


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='#ddd'/>"


def _text(x: float, y: float, words: str, style: str) -> str:
    return f"<text x='{x:.1f}' y='{y:.1f}' {style}>{escape(words)}</text>"


def _power(tick: int) -> str:
    return f"{10.0**tick:g}" if -3 <= tick <= 5 else f"1e{tick}"
