"""Result files of `bench/results`: reading, checking, choosing the newest of each adapter."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"

FIELDS = ("machine", "adapter", "versions", "date", "rows")
ROW_FIELDS = (
    "suite",
    "case",
    "ours",
    "ours_ms",
    "peer",
    "peer_version",
    "peer_ms",
    "ratio",
    "share_of_limit",
)
SUITES = ("kernels", "model", "llama1b", "overhead")

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Result:
    """One file: what was measured where, with what, and when."""

    path: Path
    data: Mapping[str, Any]

    @property
    def adapter(self) -> str:
        """The adapter's name in file names: what follows the date."""
        return self.path.stem.split("-", 3)[3]

    @property
    def rows(self) -> list[Row]:
        """Every row, in the order of the file."""
        return list(self.data["rows"])

    def suite(self, name: str) -> list[Row]:
        """The rows of one suite."""
        return [r for r in self.rows if r["suite"] == name]


def has_f16(adapter: Mapping[str, Any]) -> bool:
    """Whether kernels could compute with half precision: as good as another adapter."""
    return "shader-f16" in adapter["features"]


def file_name(data: Mapping[str, Any]) -> str:
    """`<date>-<adapter>.json`, the adapter's name ending with -f16 where it has shader-f16."""
    adapter = data["adapter"]
    words = adapter["description"] or f"{adapter['vendor']} {adapter['architecture']}"
    words = re.sub(r"\(.*?\)", "", words) + (" f16" if has_f16(adapter) else "")
    slug = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
    return f"{data['date']}-{slug}.json"


def check(data: Mapping[str, Any], name: str) -> None:
    """Refuse a file that has not the agreed form.

    Raises:
        ValueError: a field is missing, a suite unknown, or a ratio not peer_ms / ours_ms.
    """
    missing = [f for f in FIELDS if f not in data]
    if missing:
        raise ValueError(f"{name}: there is no {', '.join(missing)}")
    for row in data["rows"]:
        lacking = [f for f in ROW_FIELDS if f not in row]
        if lacking or row["suite"] not in SUITES:
            raise ValueError(f"{name}: {row.get('case')}: suite {row.get('suite')}, no {lacking}")
        if row["ratio"] is not None:
            expected = row["peer_ms"] / row["ours_ms"]
            if abs(row["ratio"] / expected - 1) > 1e-6:
                raise ValueError(f"{name}: {row['case']}: ratio {row['ratio']}, not {expected}")


def newest(paths: Iterable[Path] | None = None) -> list[Result]:
    """The newest result of each adapter, by adapter; ValueError for another form or name."""
    found: dict[str, Result] = {}
    for path in sorted(paths if paths is not None else RESULTS.glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        check(data, path.name)
        if path.name != file_name(data):
            raise ValueError(f"{path.name}: of its date and adapter it must be {file_name(data)}")
        result = Result(path, data)
        found[result.adapter] = result
    return [found[adapter] for adapter in sorted(found)]
