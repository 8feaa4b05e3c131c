"""`webgpu-py serve`: the pages on loopback, with the package as it is at every reload."""

from __future__ import annotations

import argparse
import threading

from webgpu_py.errors import NetworkError
from webgpu_py.host.browser import Settings
from webgpu_py.host.fetch import say
from webgpu_py.host.mounts import WHEEL_URL, development_mounts, fresh_wheel
from webgpu_py.host.server import Server


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--port", type=int, default=8000, help="default 8000; 0 takes a free one")


def main(options: argparse.Namespace) -> int:
    """Serve until interrupted."""
    server = Server(development_mounts(), dict(Settings().headers), port=options.port)
    server.pages[WHEEL_URL] = fresh_wheel
    try:
        server.start()
    except OSError as error:
        raise NetworkError(
            f"port {options.port} cannot be listened on ({error}); choose another with --port"
        ) from error
    say(f"serving on {server.url}/  (Ctrl-C stops)")
    try:
        threading.Event().wait()
    finally:
        server.stop()
    return 0
