"""Programs of a few instructions, written and run in one step."""

import asyncio

import pte_writer as w
import webgpu_py as wg
from webgpu_py.program import load


def run_program(data, *runs, external=None, between=None):
    """A result for each run of `forward` on one loaded program."""

    async def go():
        device = await wg.request_device("cpu")
        program = await load(data, device=device, external=external)
        try:
            results = []
            for inputs in runs:
                results.append(await program.method("forward").run(inputs))
                if between:
                    await between(program)
            return results
        finally:
            program.close()

    return asyncio.run(go())


def program_of(values, calls, inputs, outputs, operators, **kwargs):
    """A file with one method and no delegate."""
    return w.pte([w.plan(values, calls, inputs, outputs, operators=operators)], **kwargs)
