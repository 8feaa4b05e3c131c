"""What a browser offers and whether it can be trusted, with advice: one text for a bug report."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

from . import __version__
from .bridge import BrowserBridge, registered_half, settled
from .device import Device
from .errors import WebGPUPyError
from .self_test import self_test

ADVICE = {
    "InsecureContext": "serve the page over https, or open it as http://localhost",
    "NoWebGPU": (
        "this browser has no WebGPU; use Chrome or Edge 113, Firefox 141, Safari 26 or newer; "
        "on Linux start Chromium with --enable-unsafe-webgpu"
    ),
    "NoAdapter": (
        "WebGPU is there, but the browser offers no adapter; turn on hardware acceleration, update "
        "the GPU driver and its Vulkan part; where chrome://gpu says that the GPU is blocklisted, "
        "start Chromium with --ignore-gpu-blocklist, or use its software adapter "
        "(--use-webgpu-adapter=swiftshader)"
    ),
    "WrongNumbers": (
        "this GPU or its driver computes wrong numbers; update the driver and the browser and "
        "restart; until then use the software adapter or device='cpu', and send this text to the "
        "makers of the driver"
    ),
}
"""What to do about a problem, by its code."""

SOFTWARE = (
    "the browser computes in software: answers are right but slow; turn on hardware acceleration, "
    "or on Linux start Chromium with --enable-features=Vulkan --ignore-gpu-blocklist"
)
FORGETFUL = (
    "nothing can be kept here, so every load downloads anew; leave the private window, or allow "
    "this site to store data"
)


@dataclasses.dataclass(frozen=True)
class Report:
    """What was found; `print` it, or take it apart.

    `facts` are plain data by topic. `problem` is what keeps WebGPU from being used, `code` and
    `message`, or None. `advice` is what to do, empty where all is well.
    """

    facts: dict[str, Any]
    problem: dict[str, str] | None
    advice: list[str]

    def __str__(self) -> str:
        """A line a topic, in plain text."""
        lines = [f"{name:<10} {_told(value)}" for name, value in self.facts.items()]
        usable = "yes" if self.problem is None else "no [{code}]: {message}".format(**self.problem)
        lines.append(f"{'usable':<10} {usable}")
        return "\n".join([*lines, *(f"{'advice':<10} {text}" for text in self.advice)])


def _told(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k}={v}" for k, v in value.items() if v != "") or "none"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value)


async def doctor(say: Callable[[str], Any] = print) -> Report:
    """Look at everything that computing in this page needs, from the inside; `say` hears the text.

    Runs the self test anew. Only in a browser: on a desktop it is `webgpu-py doctor`.
    """
    half = await registered_half()
    facts: dict[str, Any] = {"webgpu_py": __version__}
    facts |= (await settled(half.surroundings())).to_py()
    problem: dict[str, str] | None = None
    advice = [] if facts["storage"]["kept"] else [FORGETFUL]
    try:
        device = Device(await BrowserBridge.open(half))
        try:
            facts["adapter"] = dict(device.info)
            facts["features"] = sorted(device.features)
            facts["limits"] = dataclasses.asdict(device.limits)
            if device.info["software"]:
                advice.insert(0, SOFTWARE)
            started = time.perf_counter()
            await self_test(device)
            facts["self test"] = f"passed in {1e3 * (time.perf_counter() - started):.0f} ms"
        finally:
            await device.close()
    except WebGPUPyError as error:
        problem = {"code": error.code, "message": str(error)}
        advice = [ADVICE.get(error.code, "reload the page; if that does not help, report this")]
    report = Report(facts, problem, advice)
    say(str(report))
    return report


async def doctor_entry(args: dict[str, Any], emit: Callable[[Any], None]) -> dict[str, Any]:
    """`doctor` for the command line, as plain data."""
    return dataclasses.asdict(await doctor(lambda text: None))
