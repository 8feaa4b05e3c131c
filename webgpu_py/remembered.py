"""What a browser keeps about an adapter for the next visit: tests passed, kernels found fast."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import __version__
from .bridge import registered_half, settled

if TYPE_CHECKING:
    from .device import Device


async def recall(device: Device, topic: str) -> str | None:
    """The text kept under a topic by this release, for this adapter, driver and features."""
    half = await registered_half()
    found = await settled(half.remembered(topic, adapter_name(device)))
    return None if found is None else str(found)


async def keep(device: Device, topic: str, text: str) -> None:
    """Keep a text under a topic, in place of what was there."""
    half = await registered_half()
    await settled(half.remember(topic, adapter_name(device), text))


def adapter_name(device: Device) -> str:
    """Release, adapter and features: what a finding holds for."""
    info = [str(v) for v in device.info.values()]
    return "|".join([__version__, *info, *sorted(device.features)])
