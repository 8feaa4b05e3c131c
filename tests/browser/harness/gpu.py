"""The `gpu` fixture: Python in a worker of real Chromium, called like a function."""

import inspect
import textwrap

from webgpu_py.host.remote import RemoteWorker


class Gpu:
    """One page with one worker; `run` sends Python there and brings back its last expression."""

    def __init__(self, thread, server, half="/js/bridge.js", packages=()):
        path = f"/harness/index.html?half={half}&packages={','.join(packages)}"
        self.progress = []
        self.worker = RemoteWorker(thread, server, path, self.progress.append)
        self.server = server
        self.worker.open()

    @property
    def adapter(self):
        """vendor, architecture, limits and features, in WebGPU's own spelling."""
        return self.worker.info["adapter"]

    @property
    def console(self):
        return self.worker.console

    def run(self, code, /, timeout_s=None, **values):
        """Run `code` (top-level await allowed) with `values` as its names.

        Values and the result may be anything that `webgpu_py.transfer.pack` takes. An exception
        there is raised here: of this package's class when its code is known, else of the builtin
        class of that name, else `RemoteError`; the browser's traceback is in its notes.
        """
        return self.worker.request({"code": code}, values, timeout_s=timeout_s)

    def call(self, function, /, timeout_s=None, **values):
        """Run a function that needs nothing but its arguments; `async def` is awaited."""
        source = textwrap.dedent(inspect.getsource(function))
        wait = "await " if inspect.iscoroutinefunction(function) else ""
        names = ", ".join(f"{name}={name}" for name in values)
        code = f"{source}\n{wait}{function.__name__}({names})"
        return self.run(code, timeout_s=timeout_s, **values)

    def restart(self):
        """Throw the page away and boot a new one."""
        self.worker.close()
        self.worker.open()

    def close(self):
        self.worker.close()
