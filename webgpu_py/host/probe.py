"""Ask a browser what GPU it offers, without loading Python in it."""

from __future__ import annotations

from typing import Any

from webgpu_py.host.browser_thread import BrowserThread
from webgpu_py.host.server import Server

# The first request after the GPU process starts can answer null, so it is asked twice.
_SCRIPT = """async () => {
  if (!isSecureContext) return {adapter: null, reason: 'InsecureContext'};
  if (!navigator.gpu) return {adapter: null, reason: 'NoWebGPU'};
  const options = {powerPreference: 'high-performance'};
  const adapter = await navigator.gpu.requestAdapter(options)
    ?? await navigator.gpu.requestAdapter(options);
  if (!adapter) return {adapter: null, reason: 'NoAdapter'};
  const {vendor, architecture, device, description} = adapter.info;
  const limits = {};
  for (const name in adapter.limits) limits[name] = adapter.limits[name];
  return {reason: '', adapter: {
    vendor, architecture, device, description, limits, features: [...adapter.features].sort()}};
}"""


def probe(thread: BrowserThread) -> dict[str, Any]:
    """What the browser of `thread` offers to an empty page on loopback.

    Returns `version`, `adapter` (name, limits and features, or None) and, when there is no
    adapter, the error code that says why as `reason`.
    """
    page = thread.new_page()

    async def ask() -> dict[str, Any]:
        await page.goto(f"{server.url}/empty.html")
        found: dict[str, Any] = await page.evaluate(_SCRIPT)
        await page.context.close()
        return found

    assert thread.browser is not None
    with Server({}, pages={"/empty.html": b"<!doctype html>"}) as server:
        return {"version": thread.browser.version, **thread.call(ask, thread.settings.launch_s)}
