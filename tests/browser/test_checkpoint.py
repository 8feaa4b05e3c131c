"""A Hugging Face folder in the browser: chat over served shards, saved and loaded again."""

import asyncio
from hashlib import sha256

import pytest

import tiny_folder
from browser.pages import Visit
from webgpu_py.errors import FormatError, NetworkError
from webgpu_py.llm import LLM

MESSAGES = [{"role": "user", "content": "Hello, tiny model"}]


@pytest.fixture(scope="module")
def served(gpu, tmp_path_factory):
    folder = tmp_path_factory.mktemp("folders")
    tiny_folder.write(folder / "bf16", tiny_folder.files("BF16", shards=2))
    tiny_folder.write(folder / "f16", tiny_folder.files("F16", "qwen2", tied=False))
    lost = tiny_folder.files("BF16", shards=2)
    del lost["model-00002-of-00002.safetensors"]
    tiny_folder.write(folder / "lost", lost)
    gpu.server.mounts["/tiny/"] = folder
    yield gpu, folder
    del gpu.server.mounts["/tiny/"]


async def chat(source, messages, **options):
    """Load, answer, save, load what was saved, answer again."""
    import webgpu_py as wg

    device = await wg.request_device("browser")

    async def answer(given):
        llm = await wg.LLM.load(given, device=device, **options)
        stream = llm.chat(messages, max_tokens=6)
        await stream.text()
        packed = b"".join([piece async for piece in llm.packed()])
        lost = {n: (s.signal, s.noise) for n, s in llm.quantization.items()}
        ops = [node.op for node in llm.session.graph.nodes]
        memory = llm.memory()
        llm.close()
        return stream.tokens, lost, ops.count("webgpu_py.quantize_rows"), packed, memory

    first = await answer(source)
    second = await answer(first[3])
    left = device.bridge.stats()
    await device.close()
    return first, second, (left["buffers"], left["plans"])


def on_host(folder):
    async def answer():
        llm = await LLM.load(folder)
        stream = llm.chat(MESSAGES, max_tokens=6)
        await stream.text()
        packed = b"".join([piece async for piece in llm.packed()])
        llm.close()
        return stream.tokens, packed

    return asyncio.run(answer())


def data_of(raw):
    """A safetensors file without its header."""
    return raw[8 + int.from_bytes(raw[:8], "little") :]


@pytest.mark.parametrize(
    ("name", "matrices"),
    [
        ("bf16/", 15),
        pytest.param("f16/model.safetensors", 16, marks=pytest.mark.slow),
    ],
)
def test_a_chat_over_a_served_folder(served, name, matrices):
    gpu, folder = served
    first, second, left = gpu.call(chat, source=f"/tiny/{name}", messages=MESSAGES)
    tokens, packed = on_host(folder / name)
    assert first[0] == second[0] == tokens
    assert (first[2], second[2]) == (matrices, 0)
    # Codes, scales and vectors bit for bit; the losses are sums in another order.
    assert data_of(first[3]) == data_of(packed)
    assert second[3] == first[3]
    assert len(first[1]) == matrices
    assert first[4]["weights"] == second[4]["weights"]
    assert left == (0, 0)


def test_what_a_server_lacks_is_named(served):
    gpu, _ = served
    with pytest.raises(FormatError, match=r"model-00002-of-00002\.safetensors, which"):
        gpu.call(chat, source="/tiny/lost/", messages=MESSAGES)
    with pytest.raises(FormatError, match=r"there is no config\.json"):
        gpu.call(chat, source="/tiny/none/", messages=MESSAGES)
    with pytest.raises(NetworkError, match="download failed"):
        gpu.call(chat, source="http://127.0.0.1:9/tiny/", messages=MESSAGES)


CLIENT = """async ({folder, messages, names}) => {
  const client = await import('/client.js');
  const connection = new client.Connection({packages: ['tiktoken', 'jinja2']});
  const answer = async (source) => {
    const llm = await client.load(source, {connection});
    return [llm, await llm.chat(messages, {max_tokens: 6}).text()];
  };
  const [llm, served] = await answer(folder);
  const saved = await llm.save();
  const [, packed] = await answer(saved);
  const bytes = async (name) => await (await fetch(folder + name)).blob();
  const files = await Promise.all(names.map(async (name) => new File([await bytes(name)], name)));
  const [, dropped] = await answer(files);
  const failed = ({code, message}) => [code, message];
  const refused = await client.load(files.slice(1), {connection}).catch(failed);
  globalThis.again = async () => (await answer(folder))[1];
  const raw = await saved.arrayBuffer();
  const data = raw.slice(8 + Number(new DataView(raw).getBigUint64(0, true)));
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', data));
  return {served, packed, dropped, refused, digest: [...digest]};
}"""


@pytest.mark.slow
def test_a_page_takes_the_folder_what_it_saved_and_dropped_files(served, browser):
    gpu, folder = served
    names = sorted(path.name for path in (folder / "bf16").iterdir())
    visit = Visit(browser, gpu.server)
    gpu.server.pages["/app.html"] = b"<!doctype html><title>an app</title>"
    visit.page.goto(gpu.server.url + "/app.html")
    given = {"folder": "/tiny/bf16/", "messages": MESSAGES, "names": names}
    found = visit.page.evaluate(CLIENT, given)
    # Kept, as a folder whose optional files were never all there: no network is needed.
    browser.call(lambda: visit.raw.context.set_offline(True))
    offline = visit.page.evaluate("async () => [navigator.onLine, await again()]")
    visit.close()
    assert offline == [False, found["served"]]
    assert names[0] == "config.json"
    assert found["served"] == found["packed"] == found["dropped"] != ""
    assert found["refused"] == [
        "FormatError",
        "the files: there is no config.json — a model's folder has it beside the weights",
    ]
    assert bytes(found["digest"]) == sha256(data_of(on_host(folder / "bf16")[1])).digest()


@pytest.mark.slow
def test_the_page_saves_what_it_shows_and_looks_into(served, browser):
    gpu, folder = served
    visit = Visit(browser, gpu.server).goto(f"/?model={gpu.server.url}/tiny/bf16/")
    name, saved = visit.downloaded(lambda page: page.get_by_text("Save model").click())
    assert name == "bf16.safetensors"
    assert data_of(saved) == data_of(on_host(folder / "bf16")[1])
    visit.page.get_by_role("button", name="Look inside").click()
    visit.by("tokens").wait_for()
    assert "NumPy's own reading" in visit.by("check").first.inner_text()
    assert "BF16" in visit.page.locator("#inside").inner_text()
    visit.close()
