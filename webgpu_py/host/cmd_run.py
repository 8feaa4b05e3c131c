"""`webgpu-py run MODEL.pte --inputs in.npz --outputs out.npz`: one call of one method."""

from __future__ import annotations

import argparse
import asyncio
import zipfile
from pathlib import Path

import numpy as np

from webgpu_py.commands import run_program, shared_device
from webgpu_py.errors import FormatError
from webgpu_py.host.cli import add_device_arguments, browser_settings
from webgpu_py.sources import FileSource


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_device_arguments(parser)
    parser.add_argument("model", type=Path, metavar="MODEL.pte")
    parser.add_argument("--inputs", type=Path, required=True, metavar="IN.npz")
    parser.add_argument("--outputs", type=Path, required=True, metavar="OUT.npz")
    parser.add_argument("--method", default="forward")
    parser.add_argument(
        "--debug",
        action="store_true",
        help="first run node by node, beside NumPy: the first NaN or wrong value is named",
    )


def main(args: argparse.Namespace) -> int:
    """Exit status 0; errors are raised."""
    args.model.stat()  # no browser is started for a file that is not there
    inputs = _arrays(args.inputs)
    external = sorted(args.model.parent.glob("*.ptd"))
    if args.device == "browser":
        found = _in_browser(args, external, inputs)
    else:
        found = asyncio.run(_on_host(args, external, inputs))
    np.savez(args.outputs, **found)  # type: ignore[arg-type]
    return 0


def _arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        with zipfile.ZipFile(path):
            pass
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (ValueError, zipfile.BadZipFile) as error:
        raise FormatError(
            f"{path}: {error}; inputs are a .npz file of plain arrays, as "
            "numpy.savez(path, arg0=first, arg1=second) writes it"
        ) from error


async def _on_host(
    args: argparse.Namespace, external: list[Path], inputs: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    device = await shared_device(args.device)
    sources = [FileSource(p) for p in external]
    source = FileSource(args.model)
    return await run_program(device, source, sources, args.method, inputs, args.debug)


def _in_browser(
    args: argparse.Namespace, external: list[Path], inputs: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    from webgpu_py.host.runner import BrowserRunner

    with BrowserRunner(browser_settings(args)) as runner:
        found: dict[str, np.ndarray] = runner.call(
            "webgpu_py.commands:run_entry",
            {
                "model": args.model,
                "external": external,
                "method": args.method,
                "inputs": inputs,
                "debug": args.debug,
            },
        )
    return found
