"""The measured numbers on the README's first screen, from the results of one adapter."""

from __future__ import annotations

from collections.abc import Sequence

from bench.results import Result, Row

ADAPTER = "nvidia-h200"
SOURCE = "[BENCHMARKS.md](BENCHMARKS.md)"


def first_screen(text: str, results: Sequence[Result]) -> str:
    """`text` of the README, its rows as the newest results of `ADAPTER` have them.

    Raises:
        ValueError: there is no such result, it lacks a case, or the README has no such row.
    """
    models, halves = (_result(results, name) for name in (ADAPTER, f"{ADAPTER}-f16"))
    lines = text.splitlines(keepends=True)
    for row in [*_models(models), _matrices(halves)]:
        label = row.split("|")[1]
        at = [i for i, line in enumerate(lines) if line.startswith(f"|{label}|")]
        if len(at) != 1:
            raise ValueError(f"the README has {len(at)} rows of{label}, must have one")
        lines[at[0]] = f"{row}\n"
    return "".join(lines)


def _result(results: Sequence[Result], adapter: str) -> Result:
    found = next((r for r in results if r.adapter == adapter), None)
    if found is None:
        raise ValueError(f"there is no result of {adapter}")
    return found


def _models(result: Result) -> list[str]:
    small = _fastest(result, "smollm2/decode/128")
    large, prompt = (_fastest(result, f"llama1b/{c}") for c in ("decode/128", "first_token/1024"))
    beside = f"{small['peer']} in the same session"
    return [
        "| SmolLM2-135M on an NVIDIA H200, decode at context 128 "
        f"| {_rate(small)}, {_times(small)} {beside} | {SOURCE} |",
        "| a model of Llama-3.2-1B's shape there, decode at context 128; a prompt of 1024 | "
        f"{_rate(large)}, {_times(large)}; {_rate(prompt)}, {_times(prompt)}{_noted(prompt)} "
        f"| {SOURCE} |",
    ]


def _matrices(result: Result) -> str:
    row = _fastest(result, "linear_q4/2048x8192/m512")
    tera = row["flops"] / row["ours_ms"] / 1e9
    return (
        "| 512 rows times a 4-bit matrix of 2048 by 8192 there, with shader-f16 and subgroup "
        f"matrices | {tera:.0f} TFLOP/s, {_times(row)} {row['peer']}{_noted(row)} | {SOURCE} |"
    )


def _fastest(result: Result, case: str) -> Row:
    rows = [r for r in result.rows if r["case"] == case and r["ratio"]]
    if not rows:
        raise ValueError(f"{result.path.name} has no {case} beside a peer")
    return min(rows, key=lambda r: float(r["ratio"]))


def _rate(row: Row) -> str:
    rounded = float(f"{row['ours_per_s']:.3g}")
    return f"{rounded:,.0f} tokens/s"


def _times(row: Row) -> str:
    return f"{row['ratio']:.1f} times"


def _noted(row: Row) -> str:
    """A word where a row's numbers are not to be read without its note."""
    return ", see the note there" if row.get("note") else ""
