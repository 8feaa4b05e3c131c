"""The `gpu` fixture: Python in a worker of real Chromium, called like a function."""

import builtins
import inspect
import itertools
import textwrap

from browser.harness import transfer
from webgpu_py import errors

KNOWN_CODES = {kind.code for kind in errors.WebGPUPyError.__subclasses__()}


class RemoteError(Exception):
    """An exception in the browser that has no class of its own here; `type` is its name there."""

    def __init__(self, type_, message):
        super().__init__(f"{type_}: {message}")
        self.type = type_


class Gpu:
    """One page with one worker; `run` sends Python there and brings back its last expression."""

    def __init__(self, thread, server, half="/js/bridge.js", packages=()):
        self.thread, self.server = thread, server
        self.address = f"{server.url}/harness/?half={half}&packages={','.join(packages)}"
        self.results = {}
        self.console = []
        self._count = itertools.count()
        server.sinks["/harness/out/"] = self._receive
        self._open()

    def run(self, code, /, **values):
        """Run `code` (top-level await allowed) with `values` as its names.

        Values and the result may be anything that `transfer.pack` takes. An exception there is
        raised here: of this package's class when its code is known, else of the builtin class of
        that name, else `RemoteError`; the browser's traceback is in its notes.
        """
        key = next(self._count)
        request = {"code": code, "input": f"/harness/in/{key}", "output": f"/harness/out/{key}"}
        self.server.pages[request["input"]] = transfer.pack(values)
        try:
            done = self._evaluate("r => harness.run(r)", request)
        except Exception as error:
            for line in self.console[-20:]:
                error.add_note(line)
            self.restart()
            raise
        finally:
            del self.server.pages[request["input"]]
        if "error" in done:
            raise self._noted(RemoteError(done["error"]["type"], done["error"]["message"]), "")
        answer = transfer.unpack(self.results.pop(request["output"]))
        if "error" in answer:
            raise self._raised(**answer["error"])
        return answer["result"]

    def call(self, function, /, **values):
        """Run a function that needs nothing but its arguments; `async def` is awaited."""
        source = textwrap.dedent(inspect.getsource(function))
        wait = "await " if inspect.iscoroutinefunction(function) else ""
        names = ", ".join(f"{name}={name}" for name in values)
        return self.run(f"{source}\n{wait}{function.__name__}({names})", **values)

    def restart(self):
        """Throw the page away and boot a new one."""
        self.close()
        self._open()

    def close(self):
        self.thread.call(self.page.context.close)

    def _open(self):
        self.console.clear()
        self.page = self.thread.new_page()
        self.page.on("console", lambda m: self.console.append(f"{m.type}: {m.text}"))
        self.page.on("pageerror", lambda e: self.console.append(f"pageerror: {e}"))
        self.thread.call(lambda: self.page.goto(self.address))
        try:
            self.info = self._evaluate("harness.ready", limit_s=self.thread.settings.boot_s)
        except Exception as error:
            raise self._noted(error, "the harness page did not start") from None
        self.progress = self._evaluate("harness.progress")
        self.adapter = self.info["adapter"]

    def _evaluate(self, expression, argument=None, limit_s=None):
        return self.thread.call(lambda: self.page.evaluate(expression, argument), limit_s)

    def _receive(self, path, body):
        self.results[path] = body

    def _raised(self, type, code, message, traceback):
        builtin = getattr(builtins, type, None)
        if code in KNOWN_CODES:
            error = errors.error_of_code(code, message)
        elif inspect.isclass(builtin) and issubclass(builtin, Exception):
            try:
                error = builtin(message)
            except TypeError:
                error = RemoteError(type, message)
        else:
            error = RemoteError(type, message)
        return self._noted(error, traceback)

    def _noted(self, error, text):
        error.add_note("in the browser: " + text)
        for line in self.console[-20:]:
            error.add_note("console " + line)
        return error
