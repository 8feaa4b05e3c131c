"""Numbers of a session as HTML: bars with their words, for a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

MAX_ROWS = 40


def facts_html(title: str, memory: Mapping[str, int], timings: Mapping[str, Any]) -> str:
    """Memory by kind and times by kernel, largest first within each."""
    kinds = {name: n for name, n in memory.items() if name != "total" and n}
    times = [("build", timings["build_ms"]), ("last run", timings["run_ms"])]
    said = [f"{memory['total']:,} bytes on the device"]
    said += [f"{name} {ms:.1f} ms" for name, ms in times if ms]
    parts = [
        f"<p><b>{escape(title)}</b> {' · '.join(said)}</p>",
        bars_html(kinds.items(), "bytes"),
    ]
    kernels = timings["kernels"]
    if kernels:
        parts.append(bars_html(kernels, "µs"))
    return "".join(parts)


def bars_html(rows: Iterable[tuple[str, float]], unit: str) -> str:
    """A table of names, bars and numbers; what is past `MAX_ROWS` is counted in its last row."""
    ordered = sorted(rows, key=lambda row: -row[1])
    most = max((n for _, n in ordered), default=0) or 1
    cells = "".join(_row(name, n, n / most, unit) for name, n in ordered[:MAX_ROWS])
    rest = ordered[MAX_ROWS:]
    if rest:
        cells += _row(f"{len(rest)} more", sum(n for _, n in rest), 0, unit)
    return f"<table>{cells}</table>"


def _row(name: str, n: float, share: float, unit: str) -> str:
    number = f"{n:,}" if isinstance(n, int) else f"{n:,.1f}"
    bar = f'<div style="background:#7c93b5;height:10px;width:{160 * share:.0f}px"></div>'
    return (
        f'<tr><td style="text-align:left">{escape(name)}</td>'
        f'<td style="text-align:left">{bar}</td><td>{number} {unit}</td></tr>'
    )
