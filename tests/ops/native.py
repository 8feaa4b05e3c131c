"""The `gpu` fixture on wgpu-py: a plugin that `pytest tests/ops --native` puts in its place."""

import asyncio

import pytest


class Native:
    """Runs what a test sends to the browser in this process, on the native device."""

    kind = "native"

    def call(self, function, /, **values):
        if values.get("kind") == "browser":
            values["kind"] = self.kind
        return asyncio.run(function(**values))

    def run(self, code):
        exec(code, {})


@pytest.fixture(scope="session")
def gpu():
    return Native()
