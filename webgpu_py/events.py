"""What happens, for an app that wants to know: records of the standard logger `webgpu_py`.

```python
import logging
import webgpu_py

logging.getLogger("webgpu_py").addHandler(handler)  # record.event, record.facts
logging.getLogger("webgpu_py").setLevel("INFO")
```

A record has `event`, a name of EVENTS, and `facts`, plain data. Prompts, answers and the contents
of files are never among them, nor the query of an address. What JavaScript tells comes here too,
and what a page subscribes to (`subscribe` of client.js) comes from here: one schema for all.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping

Fact = str | int | float | bool | None

EVENTS: dict[str, tuple[str, ...]] = {
    "answer.ended": ("why", "tokens", "first_token_ms", "prefill_tps", "decode_tps"),
    "answer.failed": ("code",),
    "autotune.chose": ("case", "way", "ratio"),
    "device.lost": ("reason", "message"),
    "device.opened": ("vendor", "architecture"),
    "device.restarted": ("vendor", "architecture"),
    "download.ended": ("url", "nbytes", "fetched", "ms"),
    "download.failed": ("url", "code"),
    "download.retried": ("url", "why"),
    "download.started": ("url", "nbytes", "kept"),
    "download.warned": ("message",),
    "model.loaded": ("architecture", "device", "load_ms", "gpu_nbytes"),
    "pipelines.compiled": ("count", "ms"),
    "self_test.passed": ("what", "ms"),
    "self_test.without_integer_dots": ("message",),
    "self_test.without_matrices": ("message",),
    "session.built": ("nodes", "dispatches", "gpu_nbytes", "ms"),
    "session.ran": ("ms",),
    "weights.prepacked": ("nbytes", "ms"),
}
"""Every event and its facts."""

_log = logging.getLogger("webgpu_py")
_log.addHandler(logging.NullHandler())


def tell(event: str, facts: Mapping[str, Fact], level: int = logging.INFO) -> None:
    """Log one event; its message has the facts as text, `name=value` each."""
    if _log.isEnabledFor(level):
        text = " ".join(f"{name}={value}" for name, value in facts.items())
        _log.log(level, "%s %s", event, text, extra={"event": event, "facts": dict(facts)})


def since(started: float) -> float:
    """Milliseconds since `time.perf_counter()` was `started`, to a tenth."""
    return round(1e3 * (time.perf_counter() - started), 1)


def heard(event: str, level: str, facts: str) -> None:
    """An event that JavaScript tells of, its facts as JSON."""
    tell(event, json.loads(facts), logging.getLevelNamesMapping()[level.upper()])


class Forwarding(logging.Handler):
    """Gives every event to `send` as JSON: event, level, facts, and `time` in ms since 1970.

    From `start` to `stop` the logger lets `level` ("debug", "info", "warning") and above pass.
    """

    def __init__(self, send: Callable[[str], object], level: str) -> None:
        super().__init__(level.upper())
        self._send = send
        self._before = logging.NOTSET

    def emit(self, record: logging.LogRecord) -> None:
        """Give one event on; other records of the logger are no events."""
        event, facts = getattr(record, "event", None), getattr(record, "facts", None)
        if event is not None:
            when, level = round(1e3 * record.created), record.levelname.lower()
            said = {"event": event, "level": level, "facts": facts, "time": when}
            self._send(json.dumps(said))

    def start(self) -> None:
        """Begin."""
        self._before = _log.level
        _log.addHandler(self)
        _log.setLevel(self.level)

    def stop(self) -> None:
        """End; nothing is left of it."""
        _log.removeHandler(self)
        _log.setLevel(self._before)
