"""BENCHMARKS.md, its plots and the README's numbers from the newest result of each adapter.

Every number in them is read from `bench/results`; nothing is measured here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import exp, log
from pathlib import Path
from statistics import median

from bench.plots import Points, log_plot
from bench.readme import first_screen
from bench.results import Result, Row, has_f16, newest

ROOT = Path(__file__).resolve().parents[1]
PLOTS = "docs/benchmarks"

INTRODUCTION = """\
# Benchmarks

Written by `make bench` from [bench/results](bench/results); every table names the machine, the
adapter, the versions and the day. We and the peers run in one browser session in turns, and the
numbers are medians. A ratio is the peer's time over ours: above 1 we are faster.

Kernel times are GPU time by timestamp query, taken inside one pass over many nodes of one operator
with operands of their own, whose results lie in one buffer, so that each waits for the one before
it, as in a model. *Share of the limit* is the least time that the bytes and operations of a node
could take, by a plain copy kernel and by chained multiply-adds measured at the start of the same
page, over the time taken; a copy that waits for the one before it, as a node does, is slower too.
Before each measurement a GPU is kept busy until its clock is up.

`load` lasts until a model can be asked, `load_and_answer` until the first token of a first prompt,
with all that is compiled on the way: some compile at the load, others at the first answer.

Figures of a software adapter rank programs on that machine; they say nothing about a GPU.
"""


def report(results: Sequence[Result]) -> dict[str, str]:
    """Path from the repository's root -> content, of BENCHMARKS.md and every plot."""
    files: dict[str, str] = {}
    parts = [INTRODUCTION]
    for result in results:
        parts.append(_heading(result))
        plots = {f"{PLOTS}/{result.adapter}-{n}.svg": p for n, p in _plots(result).items()}
        files |= plots
        parts += [_kernels(result), _models(result), _overheads(result)]
        if plots:
            parts.append("### How time grows\n\n" + "\n".join(f"![{p}]({p})" for p in plots) + "\n")
    files["BENCHMARKS.md"] = "\n".join(p for p in parts if p)
    return files


def _heading(result: Result) -> str:
    data = result.data
    adapter = data["adapter"]
    named = adapter["description"] or f"{adapter['vendor']} {adapter['architecture']}"
    f16 = has_f16(adapter)
    versions = ", ".join(f"{name} {version}" for name, version in data["versions"].items())
    lines = [
        f"## {named}{', with shader-f16' if f16 else ''}\n",
        f"{data['machine']}; {named}{', software' if adapter['software'] else ''}, "
        f"{'with' if f16 else 'without'} shader-f16; {versions}; {data['date']}.",
    ]
    left_out = data.get("left_out")
    limits = data.get("limits")
    if limits:
        copies = f"Copy kernel of {limits['copy_nbytes'] >> 20} MiB: {limits['copy_gbps']:.3g} GB/s"
        if "chain_gbps" in limits:
            one_by_one = f"of {limits['chain_nbytes'] >> 20} MiB, one after the other"
            copies += f", {one_by_one}: {limits['chain_gbps']:.3g} GB/s"
        lines.append(f"{copies}; multiply-adds: {limits['fma_gflops']:.3g} GFLOP/s.")
    if left_out:
        lines.append(f"Left out for want of time: {_grouped(left_out)}.")
    return "\n".join(lines) + "\n"


def _grouped(cases: Iterable[str]) -> str:
    """Names of cases, those that differ in their size alone as one."""
    sizes: dict[str, list[str]] = {}
    for case in cases:
        stem = case.rstrip("0123456789")
        sizes.setdefault(stem, []).append(case.removeprefix(stem))
    return ", ".join(s + "|".join(sorted(found, key=len)) for s, found in sizes.items())


# -- kernels


def _fastest(rows: Iterable[Row]) -> dict[str, Row]:
    """Case -> its row against the fastest peer, or its only row."""
    found: dict[str, Row] = {}
    for row in rows:
        held = found.get(row["case"])
        if held is None or (row["ratio"] or 1e99) < (held["ratio"] or 1e99):
            found[row["case"]] = row
    return found


def _size(case: str) -> tuple[str, int]:
    """`linear_q4/2048x512/m16` -> ("linear_q4/2048x512/m", 16)."""
    found = re.fullmatch(r"(.*?)(\d+)", case)
    if found is None:
        raise ValueError(f"case {case!r} does not end with a size")
    return found[1], int(found[2])


def _kernels(result: Result) -> str:
    every = result.suite("kernels")
    rows = _fastest(every)
    if not rows:
        return ""
    tables: dict[str, dict[str, dict[int, Row]]] = {}
    for case, row in rows.items():
        stem, size = _size(case)
        operator, _, shape = stem.partition("/")
        tables.setdefault(operator, {}).setdefault(shape, {})[size] = row
    peers = sorted({f"{r['peer']} {r['peer_version']}" for r in every if r["ratio"]})
    lines = ["### Kernels\n", "Microseconds of ours; ratio to the fastest of "]
    lines[-1] += f"{', '.join(peers) or 'no peer'}; share of the limit. "
    lines[-1] += "An empty cell was not measured.\n"
    for operator, shapes in tables.items():
        sizes = sorted({size for by_size in shapes.values() for size in by_size})
        lines.append(f"| {operator} | " + " | ".join(map(str, sizes)) + " |")
        lines.append("|---" * (1 + len(sizes)) + "|")
        for shape, by_size in shapes.items():
            cells = [_cell(by_size.get(size)) for size in sizes]
            lines.append(f"| {_shape_name(shape)} | " + " | ".join(cells) + " |")
        lines += [
            "",
            *_ran("Ours", (row for by_size in shapes.values() for row in by_size.values())),
        ]
    lines += [_geometric(rows), _spreads(rows.values())]
    notes = sorted({r["note"] for r in rows.values() if r.get("note")})
    lines += [f"- {note}" for note in notes]
    return "\n".join(lines) + "\n"


def _ran(named: str, rows: Iterable[Row]) -> list[str]:
    """Lines that say which kernels of ours ran at which sizes, where that was recorded."""
    sizes: dict[str, set[int]] = {}
    for row in rows:
        if row.get("ours_ran"):
            sizes.setdefault(row["ours_ran"], set()).add(_size(row["case"])[1])
    told = [f"`{ran}` at {', '.join(map(str, sorted(at)))}" for ran, at in sizes.items()]
    return [f"{named}: {'; '.join(told)}.", ""] if told else []


def _shape_name(shape: str) -> str:
    shape = shape.rstrip("/")
    return "vocabulary" if shape == "v" else re.sub(r"/?m$", "", shape)


def _cell(row: Row | None) -> str:
    if row is None or row["ours_ms"] is None:
        return ""
    ratio = f", {row['ratio']:.2f}×" if row["ratio"] else ""
    share = row["share_of_limit"]
    return f"{_number(1000 * row['ours_ms'])}{ratio}, {100 * share:.0f} %"


def _number(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _geometric(rows: Mapping[str, Row]) -> str:
    def mean(chosen: Callable[[str], bool]) -> str:
        ratios = [r["ratio"] for case, r in rows.items() if r["ratio"] and chosen(case)]
        if not ratios:
            return "not measured"
        low = min(ratios)
        count = len(ratios)
        return f"{exp(sum(map(log, ratios)) / count):.2f}× of {count} (least {low:.2f}×)"

    def decodes(case: str) -> bool:
        return "/decode" in case

    one = mean(lambda case: _size(case)[1] == 1)
    more = mean(lambda case: _size(case)[1] > 1 and not decodes(case))
    told = f"{one} at size 1, {mean(decodes)} for attention of one row, {more} elsewhere"
    return f"Geometric mean of the ratios: {told}.\n"


def _spreads(rows: Collection[Row]) -> str:
    """(largest - smallest) / median of a case's samples, where there is more than one."""
    told = []
    for whose in ("ours", "peer"):
        found = sorted(r[f"{whose}_spread"] for r in rows if r.get(f"{whose}_spread"))
        if found:
            told.append(f"{whose} {100 * median(found):.0f} %, at most {100 * found[-1]:.0f} %")
    if not told:
        return "Every case has one sample, so nothing is known of its spread.\n"
    return f"Spread of a case's samples, as a median over cases: {'; '.join(told)}.\n"


# -- models and overheads


def _models(result: Result) -> str:
    parts = []
    for suite in ("model", "llama1b"):
        rows = result.suite(suite)
        if not rows:
            continue
        lines = [
            f"### {'SmolLM2-135M' if suite == 'model' else 'Llama-3.2-1B shape, random weights'}\n",
            "| case | ours | tokens/s | peer | its time | its tokens/s | ratio |",
            "|---|---|---|---|---|---|---|",
        ]
        for row in rows:
            ran = f" ({row['peer_ran']})" if row.get("peer_ran") else ""
            peer = f"{row['peer']} {row['peer_version']}{ran}" if row["peer"] else ""
            ratio = f"{row['ratio']:.2f}×" if row["ratio"] else ""
            lines.append(
                f"| {row['case']} | {_ms(row['ours_ms'])} | {_rate(row.get('ours_per_s'))} "
                f"| {peer} | {_ms(row['peer_ms'])} | {_rate(row.get('peer_per_s'))} | {ratio} |"
            )
        lines.append("")
        for kind in ("first_token", "decode"):
            lines += _ran(f"Ours, {kind}", (r for r in rows if f"/{kind}/" in r["case"]))
        notes = sorted({r["note"] for r in rows if r.get("note")})
        parts.append("\n".join([*lines, *(f"- {n}" for n in notes)]) + "\n")
    return "\n".join(parts)


def _ms(value: float | None) -> str:
    return "" if value is None else f"{_number(value)} ms"


def _rate(value: float | None) -> str:
    return "" if value is None else _number(value)


def _overheads(result: Result) -> str:
    rows = result.suite("overhead")
    if not rows:
        return ""
    lines = ["### Overheads\n", "| case | ours | beside | | |", "|---|---|---|---|---|"]
    for row in rows:
        mine = _ms(row["ours_ms"]) or _number(row.get("value") or 0)
        beside = f"{row['peer']}: {_ms(row['peer_ms'])}" if row["peer"] else ""
        more = [
            f"{row[key]:,.4g} {words}"
            for key, words in (("crossings", "crossings"), ("us_a_dispatch", "us a dispatch"))
            if row.get(key) is not None
        ]
        if row.get("nbytes"):
            more.append(f"{row['nbytes'] / 1e6:.1f} MB")
        for key, words in (("peer_nbytes", "beside"), ("model_nbytes", "with a model of")):
            if row.get(key):
                more[-1] += f", {words} {row[key] / 1e6:.1f} MB"
        ratio = f"{row['ratio']:.2f}×" if row["ratio"] else ""
        lines.append(f"| {row['case']} | {mine} | {beside} | {ratio} | {', '.join(more)} |")
    return "\n".join(lines) + "\n"


# -- plots


def _plots(result: Result) -> dict[str, str]:
    """Time against each size that it should grow with."""
    rows = {c: r for c, r in _fastest(result.suite("kernels")).items() if r["ours_ms"]}
    every = {c: r for r in result.rows if r["ours_ms"] for c in [r["case"]]}

    def ends(pattern: str, found: Mapping[str, Row]) -> dict[str, Points]:
        series: dict[str, list[tuple[float, float]]] = {}
        for case, row in found.items():
            match = re.fullmatch(pattern, case)
            if match:
                series.setdefault(match[1], []).append((int(match[2]), 1000 * row["ours_ms"]))
        return {name: points for name, points in series.items() if len(points) > 1}

    by_area: dict[str, list[tuple[float, float]]] = {}
    for case, row in rows.items():
        match = re.fullmatch(r"(linear_\w+)/(\d+)x(\d+)/m(1|128)", case)
        if match:
            area = int(match[2]) * int(match[3])
            by_area.setdefault(f"{match[1]} M={match[4]}", []).append((area, 1000 * row["ours_ms"]))
    areas = {name: points for name, points in by_area.items() if len(points) > 1}
    contexts = ends(r"attention/(\w+)/decode(\d+)", rows)
    prompts = ends(r"(\w+)/first_token/(\d+)", every)
    shapes = ends(r"linear_q4/(\d+x\d+)/m(\d+)", rows)
    vocabularies = ends(r"(sample)/v(\d+)", rows)
    specs: list[tuple[str, str, str, Mapping[str, Points], str]] = [
        ("rows", "linear_q4", "M", shapes, "slope 1: arithmetic"),
        ("weights", "4-bit linear layers", "K × N", areas, "slope 1: bytes of weights"),
        ("context", "attention of one token", "context", contexts, "slope 1: bytes of keys"),
        ("vocabulary", "sampling", "vocabulary", vocabularies, "slope 1: bytes of logits"),
        ("prompt", "first token of a prompt", "tokens", prompts, "slope 1: arithmetic"),
    ]
    return {
        name: log_plot(title, across, "microseconds", series, 1.0, note)
        for name, title, across, series, note in specs
        if series
    }


def main() -> int:
    """Write the report; the exit status."""
    results = newest()
    readme = first_screen((ROOT / "README.md").read_text(encoding="utf-8"), results)
    for path, text in {**report(results), "README.md": readme}.items():
        target = ROOT / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
