"""What happens, for an app that wants to know: records of the standard logger `webgpu_py`.

```python
import logging
import webgpu_py

logging.getLogger("webgpu_py").addHandler(handler)  # record.event, record.facts
logging.getLogger("webgpu_py").setLevel("INFO")
```

A record has `event`, a name such as `model.loaded`, and `facts`, plain data. Prompts, answers and
the contents of files are never among them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

Fact = str | int | float | bool | None

_log = logging.getLogger("webgpu_py")
_log.addHandler(logging.NullHandler())


def tell(event: str, facts: Mapping[str, Fact], level: int = logging.INFO) -> None:
    """Log one event; its message has the facts as text, `name=value` each."""
    if _log.isEnabledFor(level):
        text = " ".join(f"{name}={value}" for name, value in facts.items())
        _log.log(level, "%s %s", event, text, extra={"event": event, "facts": dict(facts)})
