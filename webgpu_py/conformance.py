"""Conformance cases: a program, inputs and expected outputs, compared element by element."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .device import Device
from .errors import UnsupportedOperator, WebGPUPyError
from .program import Method, load
from .sources import BytesSource

Reader = Callable[[str], Awaitable[bytes]]


@dataclass(slots=True)
class CaseResult:
    """How a case ended: PASS, FAIL, ERROR or MISSING (an operator), with the largest errors."""

    op: str
    case: str
    status: str
    max_abs: float = 0.0
    max_rel: float = 0.0
    message: str = ""

    def line(self) -> str:
        """The report's line."""
        return (
            f"{self.status} {self.op}/{self.case} {self.max_abs:.3g} {self.max_rel:.3g} "
            f"{self.message}"
        ).rstrip()

    def as_dict(self) -> dict[str, Any]:
        """The report's JSON object."""
        return asdict(self)


async def run_case(read: Reader, device: Device, external: Sequence[str] = ()) -> CaseResult:
    """Run the case whose files `read(name)` gives; `external` names its `.ptd` files.

    A case with `expect` passes on a typed error, and on right outputs.
    """
    manifest = json.loads(await read("manifest.json"))
    result = CaseResult(manifest["op"], manifest["case"], "PASS")
    try:
        files = [BytesSource(await read(name), name) for name in external]
        source = BytesSource(await read(manifest["pte"]), manifest["pte"])
        program = await load(source, device=device, external=files)
        try:
            for run in manifest["runs"]:
                await _run(read, program.method("forward"), manifest, run, result)
        finally:
            program.close()
    except UnsupportedOperator as error:
        missing = "unsupported op:" in str(error)
        result.status = "MISSING" if missing else "PASS" if "expect" in manifest else "ERROR"
        result.message = str(error)
    except WebGPUPyError as error:
        result.status = "PASS" if "expect" in manifest else "ERROR"
        result.message = f"{error.code}: {error}"
    except Exception as error:
        result.status = "ERROR"
        result.message = f"{type(error).__name__}: {error}"
    return result


async def _run(
    read: Reader, method: Method, manifest: dict[str, Any], run: dict[str, Any], result: CaseResult
) -> None:
    inputs = [await _given(read, i) for i in run["inputs"]]
    found = await method.run(inputs)
    pairs = [(o, found.outputs[o["method_output_index"]]) for o in run["outputs"]]
    pairs += [(m, found.inputs[m["input_index"]]) for m in run.get("mutated_inputs", [])]
    for expected, got in pairs:
        want = await _array(read, expected)
        problem = _compare(np.asarray(got), want, manifest["atol"], manifest["rtol"], result)
        if problem and result.status == "PASS":
            result.status = "FAIL"
            result.message = f"{run.get('name', '')} {expected['path']}: {problem}"


async def _given(read: Reader, described: dict[str, Any]) -> Any:
    return described["scalar"] if "scalar" in described else await _array(read, described)


async def _array(read: Reader, described: dict[str, Any]) -> np.ndarray:
    raw = await read(described["path"])
    return np.frombuffer(raw, described["dtype"]).reshape(described["shape"])


def _compare(
    got: np.ndarray, want: np.ndarray, atol: float, rtol: float, result: CaseResult
) -> str:
    """What is wrong with an output, or ""; records the largest errors."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype} {list(got.shape)}, expected {want.dtype} {list(want.shape)}"
    if want.dtype.kind != "f":
        wrong = int(np.count_nonzero(got != want))
        if wrong:
            result.max_abs = max(
                result.max_abs, float(np.max(np.abs(got.astype(float) - want.astype(float))))
            )
        return f"{wrong} of {want.size} differ" if wrong else ""
    a, b = got.astype(np.float64).ravel(), want.astype(np.float64).ravel()
    with np.errstate(invalid="ignore"):
        error = np.where(a == b, 0.0, np.abs(a - b))
    relative = error / np.maximum(np.abs(b), 1e-6)
    both_nan = np.isnan(a) & np.isnan(b)
    good = (error <= atol) | (relative <= rtol) | both_nan
    if error.size:
        finite = np.where(both_nan | ~np.isfinite(error), 0.0, error)
        result.max_abs = max(result.max_abs, float(finite.max()))
        result.max_rel = max(
            result.max_rel, float(np.where(np.isfinite(relative), relative, 0.0).max())
        )
    wrong = int(np.count_nonzero(~good))
    return f"{wrong} of {want.size} differ" if wrong else ""
