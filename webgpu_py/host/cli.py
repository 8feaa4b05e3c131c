"""The `webgpu-py` command. Each subcommand is a module `cmd_<name>.py` beside this one.

Such a module has `add_arguments(parser)` and `main(options) -> int`, the exit status. Results go to
stdout, progress and errors to stderr. Only the module of the command in use is imported.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata

from webgpu_py.errors import WebGPUPyError
from webgpu_py.host.browser import Settings
from webgpu_py.host.fetch import say

COMMANDS = {
    "inspect": "what a model file holds, and whether it can run here",
    "run": "run a .pte program on arrays from a .npz file",
    "conformance": "compare exported programs with the outputs of their origin",
    "generate": "text from a language model",
    "serve": "the pages on a development server on loopback",
    "build": "a static folder to put on any web server",
    "doctor": "whether this machine has what is needed, and what to do if not",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    chosen = next((word for word in words if not word.startswith("-")), None)
    options = _parser(chosen).parse_args(words)
    try:
        status: int = importlib.import_module(_module(options.command)).main(options)
        return status
    except WebGPUPyError as error:
        say(f"error [{error.code}]: {error}")
        return 1
    except OSError as error:
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        return 130


def add_device_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of every command that computes: `--device` and `--adapter`."""
    parser.add_argument(
        "--device",
        choices=("browser", "cpu", "native"),
        default="browser",
        help="real headless Chromium (default), NumPy, or wgpu-py",
    )
    add_adapter_argument(parser)


def add_adapter_argument(parser: argparse.ArgumentParser) -> None:
    """The option of every command that starts a browser: `--adapter`."""
    parser.add_argument(
        "--adapter",
        choices=("auto", "hardware", "software"),
        default="auto",
        help="the browser's GPU or its software adapter; by default the GPU where there is one",
    )


def browser_settings(options: argparse.Namespace) -> Settings:
    """The browser settings that `add_adapter_argument`'s option asks for."""
    return replace(Settings(), adapter=options.adapter)


def _parser(chosen: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="webgpu-py", description="Quantized neural networks on the browser's GPU, from Python."
    )
    version = f"webgpu-py {metadata.version('webgpu-py')}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, purpose in COMMANDS.items():
        if importlib.util.find_spec(_module(name)) is None:
            continue
        command = commands.add_parser(name, help=purpose, description=f"{name}: {purpose}.")
        if name == chosen:
            importlib.import_module(_module(name)).add_arguments(command)
    return parser


def _module(command: str) -> str:
    return f"webgpu_py.host.cmd_{command}"


if __name__ == "__main__":
    sys.exit(main())
