"""The benchmark report: reproduced from its results, whose rows have the agreed fields."""

import json
import re
import statistics
from pathlib import Path

import pytest

from bench.plots import log_plot
from bench.readme import first_screen
from bench.report import report
from bench.results import RESULTS, ROW_FIELDS, SUITES, check, file_name, newest
from bench.run import SECONDS, SOFTWARE_SECONDS, merged

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(RESULTS.glob("*.json"))


def a_row(case, ours_ms, peer_ms, **more):
    named = {"suite": "kernels", "case": case, "ours": "webgpu_py.linear_q4"}
    peer = {"peer": "onnxruntime-web", "peer_version": "1.30.0", "peer_ms": peer_ms}
    times = {"ours_ms": ours_ms, "ratio": peer_ms / ours_ms, "share_of_limit": 0.37}
    return {**named, **peer, **times, **more}


def a_result(rows, date="2026-01-02", description="Some GPU", features=()):
    adapter = {"vendor": "v", "architecture": "a", "description": description}
    return {
        "machine": "A machine",
        "adapter": {**adapter, "software": False, "features": list(features)},
        "versions": {"browser": "Chrome/1", "webgpu_py": "0.1.0"},
        "date": date,
        "rows": rows,
    }


def stored(folder, *results):
    paths = [folder / file_name(data) for data in results]
    for path, data in zip(paths, results, strict=True):
        path.write_text(json.dumps(data))
    return newest(paths)


def test_benchmarks_md_and_its_plots_are_what_the_results_say():
    for path, text in report(newest()).items():
        assert (ROOT / path).read_text() == text, f"{path}: run `python -m bench.report`"


def test_the_readme_shows_what_the_results_say():
    text = (ROOT / "README.md").read_text()
    assert first_screen(text, newest()) == text, "run `python -m bench.report`"


def test_the_readme_names_the_fastest_peer(tmp_path):
    cases = ("smollm2/decode/128", "llama1b/decode/128", "llama1b/first_token/1024")
    rows = [
        a_row(c, 2.0, peer_ms, peer=peer, ours_per_s=12345.6)
        for c in cases
        for peer, peer_ms in [("slow", 9.0), ("fast", 5.0)]
    ]
    halves = [
        a_row("linear_q4/2048x8192/m512", 0.25, peer_ms, peer=peer, flops=5e10)
        for peer, peer_ms in [("slow f16", 2.0), ("fast f16", 0.5)]
    ]
    found = stored(
        tmp_path,
        a_result(rows, description="NVIDIA H200"),
        a_result(halves, description="NVIDIA H200", features=["shader-f16"]),
    )
    text = first_screen((ROOT / "README.md").read_text(), found)
    assert "| 200 TFLOP/s, 2.0 times fast f16 |" in text
    assert "| 12,300 tokens/s, 2.5 times fast in the same session |" in text
    assert "| 12,300 tokens/s, 2.5 times; 12,300 tokens/s, 2.5 times |" in text
    with pytest.raises(ValueError, match="must have one"):
        first_screen("# A README", found)


def test_no_plot_is_left_over():
    kept = {str(p.relative_to(ROOT)) for p in (ROOT / "docs" / "benchmarks").glob("*.svg")}
    assert kept == {path for path in report(newest()) if path.endswith(".svg")}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_result_files_have_the_agreed_form(path):
    data = json.loads(path.read_text())
    check(data, path.name)
    assert path.stem.startswith(data["date"])
    assert len({(r["case"], r["peer"]) for r in data["rows"]}) == len(data["rows"])


@pytest.mark.parametrize("field", ROW_FIELDS)
def test_a_row_without_a_field_is_refused(field):
    row = a_row("linear_q4/64x64/m1", 1.0, 2.0)
    del row[field]
    with pytest.raises(ValueError, match=field):
        check(a_result([row]), "file")


def test_a_ratio_that_is_not_the_quotient_is_refused():
    with pytest.raises(ValueError, match="ratio 3"):
        check(a_result([a_row("linear_q4/64x64/m1", 1.0, 2.0, ratio=3)]), "file")


def test_only_the_newest_file_of_an_adapter_counts(tmp_path):
    rows = [a_row("linear_q4/64x64/m1", 0.0125, 0.05)]
    old, new = a_result([], "2026-01-02"), a_result(rows, "2026-10-01")
    found = stored(tmp_path, new, old, a_result([], "2025-01-02", "Other GPU"))
    assert [(r.adapter, r.data["date"]) for r in found] == [
        ("other-gpu", "2025-01-02"),
        ("some-gpu", "2026-10-01"),
    ]


def test_an_adapter_with_f16_counts_as_another_with_a_section_of_its_own(tmp_path):
    at = [(1, 0.0125), (16, 0.1)]
    slow = [a_row(f"linear_q4/64x64/m{m}", ms, 0.3, ours_ran="packed_gemv") for m, ms in at]
    fast = [a_row(f"linear_q4/64x64/m{m}", ms / 2, 0.3) for m, ms in at]
    found = stored(tmp_path, a_result(slow), a_result(fast, "2026-01-03", features=["shader-f16"]))
    assert [r.path.name for r in found] == [
        "2026-01-02-some-gpu.json",
        "2026-01-03-some-gpu-f16.json",
    ]
    *plots, page = report(found)
    assert plots == [f"docs/benchmarks/some-gpu{f16}-rows.svg" for f16 in ("", "-f16")]
    _, plain, half = re.split("^## ", report(found)[page], flags=re.M)
    assert plain.startswith("Some GPU\n")
    assert (
        "| 64x64 | 12.5, 24.00×, 37 % | 100, 3.00×, 37 % |\n\nOurs: `packed_gemv` at 1, 16.\n"
        in plain
    )
    assert half.startswith("Some GPU, with shader-f16\n")
    assert "| 64x64 | 6.25, 48.00×, 37 % | 50, 6.00×, 37 % |" in half
    for section, plot in zip((plain, half), plots, strict=True):
        assert re.findall(r"!\[(.*?)\]", section) == [plot]


def test_a_file_with_f16_under_the_name_of_the_adapter_without_is_refused(tmp_path):
    path = tmp_path / "2026-01-02-some-gpu.json"
    path.write_text(json.dumps(a_result([], features=["shader-f16"])))
    with pytest.raises(ValueError, match=r"must be 2026-01-02-some-gpu-f16\.json"):
        newest([path])


def test_tables_show_time_ratio_and_share_against_the_fastest_peer(tmp_path):
    rows = [
        a_row("linear_q4/64x64/m1", 0.0125, 0.05),
        a_row("linear_q4/64x64/m1", 0.0125, 0.025, peer="onnxruntime-web int8"),
        a_row("linear_q4/64x64/m16", 0.1, 0.3),
        a_row("linear_q4/64x96/m16", 0.2, 0.1, note="a note"),
    ]
    files = report(stored(tmp_path, a_result(rows)))
    text = files["BENCHMARKS.md"]
    assert "| linear_q4 | 1 | 16 |" in text
    assert "| 64x64 | 12.5, 2.00×, 37 % | 100, 3.00×, 37 % |" in text
    assert "| 64x96 |  | 200, 0.50×, 37 % |" in text
    assert "- a note" in text
    mean = statistics.geometric_mean([3, 0.5])
    assert f"{mean:.2f}× of 2 (least 0.50×) elsewhere" in text
    assert "2.00× of 1 (least 2.00×) at size 1, not measured for attention of one row" in text
    assert "A machine; Some GPU, without shader-f16; browser Chrome/1, webgpu_py 0.1.0" in text
    assert list(files) == ["docs/benchmarks/some-gpu-rows.svg", "BENCHMARKS.md"]


def test_attention_of_one_row_has_a_mean_of_its_own(tmp_path):
    rows = [
        a_row("attention/llama/decode128", 0.1, 0.4),
        a_row("attention/llama/prefill128", 0.1, 0.3),
    ]
    text = report(stored(tmp_path, a_result(rows)))["BENCHMARKS.md"]
    attention = "4.00× of 1 (least 4.00×) for attention of one row"
    assert f"not measured at size 1, {attention}, 3.00× of 1 (least 3.00×) elsewhere" in text


def test_cases_left_out_are_named_once_a_shape(tmp_path):
    cases = ["linear_q4/64x64/m16", "linear_q4/64x64/m128", "llama1b/load", "llama1b/decode/8"]
    data = a_result([]) | {"left_out": cases}
    text = report(stored(tmp_path, data))["BENCHMARKS.md"]
    named = "linear_q4/64x64/m16|128, llama1b/load, llama1b/decode/8"
    assert f"Left out for want of time: {named}." in text


def test_a_suite_of_the_same_day_keeps_the_others_rows_and_the_kernels_limits(tmp_path):
    path = tmp_path / "file.json"
    kernel, other = a_row("linear_q4/64x64/m1", 1.0, 2.0), a_row("linear_q4/64x64/m16", 1.0, 2.0)
    load = a_row("smollm2/load", 3.0, 6.0, suite="model")
    first = a_result([kernel]) | {"limits": 1, "left_out": [other["case"], "smollm2/load"]}
    path.write_text(json.dumps(first))
    second = a_result([load]) | {"limits": 2, "left_out": ["smollm2/decode/128"]}
    both = merged(path, second)
    assert both["rows"] == [kernel, load]
    assert both["limits"] == 1
    assert both["left_out"] == [other["case"], "smollm2/decode/128"]
    path.write_text(json.dumps(both))
    third = merged(path, a_result([other]) | {"limits": 3, "left_out": []})
    assert third["rows"] == [kernel, load, other]
    assert (third["limits"], third["left_out"]) == (3, ["smollm2/decode/128"])


def test_the_suites_of_a_software_adapter_keep_to_25_minutes():
    assert set(SECONDS) == set(SOFTWARE_SECONDS) == set(SUITES)
    assert sum(SOFTWARE_SECONDS.values()) <= 20 * 60
    assert list(SECONDS)[-1] == "kernels"


def test_equal_factors_are_equal_distances_in_a_plot():
    points = [(10.0, 1.0), (100.0, 10.0), (1000.0, 100.0)]
    svg = log_plot("t", "x", "y", {"<a>": points}, 1.0, "slope 1")
    placed = [
        (float(x), float(y)) for x, y in re.findall(r"<circle cx='([\d.]+)' cy='([\d.]+)'", svg)
    ]
    (x0, y0), (x1, y1), (x2, y2) = placed
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.2)
    assert x1 > x0
    assert y1 < y0
    assert "&lt;a&gt;" in svg
