"""URLs on the host: ranges, servers without them, and what a server may do wrong."""

import asyncio

import pytest

from tiny_folder import files, write
from webgpu_py.errors import FormatError, NetworkError
from webgpu_py.host.server import Server
from webgpu_py.http_source import open_http
from webgpu_py.llm import LLM

DATA = bytes(range(251)) * 3


@pytest.fixture
def server(tmp_path):
    (tmp_path / "data.bin").write_bytes(DATA)
    with Server({"/": tmp_path}) as running:
        running.pages["/whole.bin"] = DATA
        running.pages["/page.html"] = b"<!doctype html>"
        yield running


def run(coroutine):
    return asyncio.run(coroutine)


@pytest.mark.parametrize("name", ["data.bin", "whole.bin"])
@pytest.mark.parametrize(("offset", "nbytes"), [(0, 0), (0, 753), (250, 3), (752, 1), (753, 0)])
def test_read_gives_the_range(server, name, offset, nbytes):
    async def check():
        source = await open_http(f"{server.url}/{name}")
        with pytest.raises(FormatError, match="it holds 753"):
            await source.read(752, 2)
        found = await source.read(offset, nbytes)
        source.close()
        return source.nbytes, found

    assert run(check()) == (753, DATA[offset : offset + nbytes])
    asked = [request.headers.get("Range") for request in server.log]
    wanted = [f"bytes={offset}-{offset + nbytes - 1}"] if nbytes and name == "data.bin" else []
    assert asked == ["bytes=0-0", *wanted]


def test_what_a_server_does_wrong_is_named(server, tmp_path):
    async def changed():
        source = await open_http(f"{server.url}/data.bin")
        (tmp_path / "data.bin").write_bytes(DATA[::-1])
        await source.read(0, 4)

    with pytest.raises(NetworkError, match="changed on the server"):
        run(changed())
    with pytest.raises(NetworkError, match="answered 404") as missing:
        run(open_http(f"{server.url}/none.bin"))
    assert missing.value.status == 404
    with pytest.raises(FormatError, match="HTML page"):
        run(open_http(f"{server.url}/page.html"))
    with pytest.raises(NetworkError, match="download failed") as failed:
        run(open_http("http://127.0.0.1:9/x"))
    assert failed.value.status is None
    with pytest.raises(NetworkError, match="begins with http"):
        run(open_http("file:///etc/hostname"))


@pytest.mark.parametrize("given", ["/model/", "/model/model.safetensors.index.json"])
def test_a_served_folder_is_a_model(server, tmp_path, given):
    write(tmp_path / "model", files(shards=2))

    async def check():
        llm = await LLM.load(server.url + given)
        text = await llm.generate("Hi", max_tokens=2).text()
        llm.close()
        return text

    assert run(check())
    with pytest.raises(FormatError, match=r"there is no config\.json"):
        run(LLM.load(f"{server.url}/other/"))
