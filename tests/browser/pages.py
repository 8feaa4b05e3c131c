"""A page under test: opened as a visitor would, with what it violates and prints kept."""

from pathlib import Path

from playwright.sync_api import TimeoutError as PlaywrightTimeout

from webgpu_py.host.browser_thread import Synchronous

CASES = Path(__file__).resolve().parents[1] / "conformance" / "cases"
SCREENSHOTS = Path(__file__).resolve().parents[2] / ".cache" / "screenshots"
WATCH = """
window.violations = [];
addEventListener('securitypolicyviolation',
  (e) => violations.push(`${e.violatedDirective} ${e.blockedURI}`));
"""
STARTED_MS = 240_000
SETTLED_MS = 60_000


class Visit:
    """One page in a context of its own; attributes are Playwright's, made synchronous."""

    def __init__(self, browser, server, **context):
        self.browser, self.server = browser, server
        self.raw = browser.new_page(**context)
        self.page = Synchronous(browser, self.raw)
        self.console = []

        async def watch():
            self.raw.on("console", lambda m: self.console.append(m.text))
            self.raw.on("pageerror", lambda e: self.console.append(f"pageerror {e}"))
            await self.raw.add_init_script(WATCH)

        browser.call(watch)

    def goto(self, path="/", state="ready"):
        self.page.goto(self.server.url + path)
        return self.wait(state)

    def wait(self, state):
        self.page.locator('html:not([data-state="loading"])').wait_for(
            state="attached", timeout=STARTED_MS
        )
        try:
            # What was asked for a moment ago may not have begun yet.
            wanted = self.page.locator(f'html[data-state="{state}"]')
            wanted.wait_for(state="attached", timeout=SETTLED_MS)
        except PlaywrightTimeout as error:
            seen = self.state, self.page.locator("main").inner_text(), self.console
            raise AssertionError(f"{state!r} was awaited, seen {seen}") from error
        return self

    @property
    def state(self):
        return self.page.locator("html").get_attribute("data-state")

    @property
    def error(self):
        return self.page.locator("html").get_attribute("data-error")

    def by(self, test_id):
        return self.page.get_by_test_id(test_id)

    def downloaded(self, act):
        """Name and bytes of the file that an action, a function of Playwright's page, saves."""

        async def watched():
            async with self.raw.expect_download() as started:
                await act(self.raw)
            found = await started.value
            return found.suggested_filename, Path(await found.path()).read_bytes()

        return self.browser.call(watched)

    def violations(self):
        told = [line for line in self.console if "Content Security Policy" in line]
        return self.page.evaluate("violations") + told

    def screenshot(self, name, width, height=800):
        self.page.set_viewport_size({"width": width, "height": height})
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}-{width}.png")
        extra = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert extra <= 0, f"{name} is {extra} px wider than its {width} px window"

    def close(self):
        self.browser.call(self.raw.context.close)
