"""A page of a plain web server, with the rest of the network cut off."""

import re
import subprocess
import sys
from contextlib import contextmanager

from browser.pages import Visit
from webgpu_py.host.urls import PYODIDE_CDN


class PlainServer:
    """`python -m http.server`: no ranges, no headers of ours."""

    def __init__(self, folder):
        command = [sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", "0"]
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        port = re.search(r"port (\d+)", self.process.stdout.readline())[1]
        self.url = f"http://127.0.0.1:{port}"

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@contextmanager
def visiting(browser, folder, allow=None):
    """A page of a plain server; `outside` has every request that left it."""
    server = PlainServer(folder)
    one = Visit(browser, server)
    one.outside = []

    async def guard(route):
        url = route.request.url
        if url.startswith((server.url + "/", "blob:", "data:")):
            return await route.continue_()
        one.outside.append(url)
        if allow and url.startswith(PYODIDE_CDN):
            path = allow / url.removeprefix(PYODIDE_CDN)
            return await route.fulfill(path=path, headers={"Access-Control-Allow-Origin": "*"})
        return await route.abort()

    try:
        browser.call(lambda: one.raw.context.route("**/*", guard))
        yield one
    finally:
        one.close()
        server.stop()
