"""`webgpu-py inspect FILE`: what a model file holds, without running it."""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

from webgpu_py.inspection import describe, inspect
from webgpu_py.sources import FileSource


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="a .pte, .gguf or .safetensors file, or a model's folder",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")


def main(args: argparse.Namespace) -> int:
    """Exit status 0; a damaged file raises."""
    external = [FileSource(p) for p in sorted(args.file.parent.glob("*.ptd"))]
    facts = asyncio.run(inspect(args.file, external))
    print(json.dumps(facts, indent=1) if args.json else describe(facts))
    return 0
