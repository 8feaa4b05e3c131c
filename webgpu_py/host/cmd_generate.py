"""`webgpu-py generate MODEL --prompt TEXT`: text from a language model, streamed."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from webgpu_py.commands import generate_text, shared_device
from webgpu_py.generation import GenerationOptions
from webgpu_py.host.cli import add_device_arguments, browser_settings
from webgpu_py.host.demo_model import ensure_demo_model
from webgpu_py.host.fetch import say
from webgpu_py.model_files import is_folder

LLM_PACKAGES = ("tiktoken", "regex", "jinja2")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a .gguf file, a folder with config.json and model.safetensors, a URL, or 'demo'",
    )
    parser.add_argument("--prompt", required=True, metavar="TEXT")
    parser.add_argument("--chat", action="store_true", help="apply the model's chat template")
    parser.add_argument("--max-tokens", type=int, default=128, metavar="N")
    parser.add_argument("--temperature", type=float, default=0.0, metavar="T")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")
    add_device_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Exit status 0; errors are raised."""
    options = {"max_tokens": args.max_tokens, "temperature": args.temperature}
    # Refused before a model is fetched or a browser started.
    GenerationOptions.given(options)
    found = answer(args, options, Printer(quiet=args.json))
    print(json.dumps(found) if args.json else "", flush=True)
    return 0


class Printer:
    """Text to stdout as it comes, progress to stderr."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._stage = ""

    def __call__(self, event: dict[str, Any]) -> None:
        """One event of `generate_text`."""
        if "text" in event and not self._quiet:
            sys.stdout.write(event["text"])
            sys.stdout.flush()
        if "quantized" in event:
            say("quantized {} matrices, SNR of the worst {:.1f} dB".format(*event["quantized"]))
        if "progress" in event and event["progress"][0] != self._stage:
            self._stage = event["progress"][0]
            say(f"loading {self._stage} ({event['progress'][2]:,} bytes)")


def answer(args: argparse.Namespace, options: dict[str, Any], emit: Printer) -> dict[str, Any]:
    """`generate_text` on the device that the command line asks for."""
    path = ensure_demo_model() if args.model == "demo" else args.model
    is_url = isinstance(path, str) and "://" in path
    if not is_url:
        Path(path).stat()
    if args.device != "browser":
        return asyncio.run(_on_host(args, str(path), options, emit))
    from webgpu_py.host.runner import BrowserRunner

    request = {
        **({"model": path, "file": ""} if is_url else _served(Path(path))),
        "prompt": args.prompt,
        "chat": args.chat,
        "options": options,
    }
    with BrowserRunner(browser_settings(args), packages=LLM_PACKAGES) as runner:
        found: dict[str, Any] = runner.call("webgpu_py.commands:generate_entry", request, emit)
    return found


def _served(path: Path) -> dict[str, Any]:
    """What the browser is given: weights that lie in a folder come with all of it."""
    if path.is_file() and is_folder(path):
        return {"model": path.parent, "file": path.name}
    return {"model": path, "file": ""}


async def _on_host(
    args: argparse.Namespace, path: str, options: dict[str, Any], emit: Printer
) -> dict[str, Any]:
    device = await shared_device(args.device)
    return await generate_text(device, path, args.prompt, args.chat, options, emit)
