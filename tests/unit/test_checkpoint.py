"""Hugging Face folders on the NumPy device: precisions, shards, ties, saving, refusals."""

import asyncio
import json

import numpy as np
import pytest

import tiny_folder
from recording_bridge import RecordingBridge
from tiny_folder import FolderForward, files, safetensors_bytes, write
from tiny_model import END, tiny_gguf
from webgpu_py import Device
from webgpu_py.errors import FormatError, ShapeError, UnsupportedModel, WebGPUPyError
from webgpu_py.host.cli import main
from webgpu_py.llm import LLM
from webgpu_py.sources import BytesSource

PROMPT = "Hello, tiny model"


def run(coroutine):
    return asyncio.run(coroutine)


async def answer(llm, count=6):
    ids = llm.tokenize(PROMPT)
    stream = llm.generate(ids, max_tokens=count, top_logprobs=2)
    await stream.text()
    return ids, stream


def weights_of(llm):
    """Bytes on the device of every matrix and vector by name."""

    async def read(var):
        return b"" if var is None else await llm.session.read(var.id)

    async def all_of():
        stored = llm.stored.weights
        found = {n: (await read(m.codes), await read(m.scales)) for n, m in stored.matrices.items()}
        return found | {n: await read(v) for n, v in stored.vectors.items()}

    return all_of()


@pytest.mark.parametrize(
    ("kind", "arch", "tied", "shards", "quantize"),
    [
        ("BF16", "llama", True, 1, "q4"),
        ("F16", "qwen2", False, 3, "q4"),
        ("F32", "llama", False, 2, "q8"),
        ("BF16", "qwen2", True, 1, None),
        ("F16", "llama", False, 1, None),
        ("F32", "llama", True, 1, None),
    ],
)
def test_greedy_follows_the_float64_forward_of_the_quantized_weights(
    tmp_path, kind, arch, tied, shards, quantize
):
    folder = write(tmp_path / "model", files(kind, arch, tied, shards))

    async def check():
        llm = await LLM.load(folder, quantize=quantize)
        found = await answer(llm)
        names = set(llm.stored.weights.matrices)
        llm.close()
        return found, llm.quantization, names

    (ids, stream), losses, names = run(check())
    forward = FolderForward(kind, arch, tied, quantize=quantize)
    expected, gap = forward.greedy(ids, 6)
    assert gap > 1e-3, "this seed is a near tie, choose another"
    assert END not in expected
    assert stream.tokens == expected
    logits = forward(ids)[-1]
    exact = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
    found = [p for _, p in stream.top_logprobs[0]]
    np.testing.assert_allclose(found, np.sort(exact)[::-1][:2], atol=1e-4)
    assert ("lm_head.weight" in names) is not tied
    assert set(losses) == (names if quantize else set())


def test_what_was_lost_is_reported_for_each_matrix(tmp_path):
    folder = write(tmp_path / "model", files("F16"))

    async def check():
        llm = await LLM.load(folder)
        llm.close()
        return llm.quantization

    losses = run(check())
    exact = FolderForward("F16").exact
    for name, loss in losses.items():
        bits = 8 if name in tiny_folder.EDGES else 4
        error = exact[name] - tiny_folder.quantized(exact[name], bits)
        relative = np.sqrt((error**2).sum() / (exact[name] ** 2).sum())
        assert loss.relative_rms == pytest.approx(relative, rel=1e-5)
        assert loss.db == pytest.approx(-20 * np.log10(relative), abs=1e-3)
        assert 43 < loss.db < 50 if bits == 8 else 18 < loss.db < 24
    assert len(losses) == 15


@pytest.mark.parametrize(("quantize", "tied"), [("q4", True), ("q8", False), (None, True)])
def test_a_saved_model_loads_bit_for_bit_and_quantizes_nothing(tmp_path, quantize, tied):
    folder = write(tmp_path / "model", files("BF16", "qwen2", tied, shards=2))
    path = tmp_path / "saved.safetensors"

    async def recorded(source, **options):
        device = Device(RecordingBridge())
        llm = await LLM.load(source, device=device, **options)
        loaded = [args[0] for name, args in device.bridge.calls if name == "load_plan"]
        ops = [call.name for plan in loaded for call in plan.calls]
        found = await weights_of(llm), (await answer(llm))[1].tokens, ops, llm.quantization
        return llm, found

    async def check():
        llm, first = await recorded(folder, quantize=quantize)
        await llm.save(path)
        messages = [{"role": "user", "content": "hi"}]
        assert llm.render(messages) == "<|user|>hi<|assistant|>"
        llm.close()
        again, second = await recorded(str(path))
        assert again.render(messages) == "<|user|>hi<|assistant|>"
        assert again.tokenizer.ends == llm.tokenizer.ends
        _, third = await recorded(path.read_bytes())
        copy = b"".join([piece async for piece in again.packed()])
        again.close()
        return first, second, third, copy

    first, second, third, copy = run(check())
    assert first[0] == second[0] == third[0]
    assert first[1] == second[1] == third[1]
    matrices = sum(isinstance(value, tuple) for value in first[0].values())
    assert first[2].count("webgpu_py.quantize_rows") == (matrices if quantize else 0)
    assert not {"webgpu_py.quantize_rows", "webgpu_py.repack"} & set(second[2])
    if quantize:
        assert first[3] == second[3] != {}
    assert copy == path.read_bytes()
    assert not list(tmp_path.glob("*.part"))


def test_a_saved_file_says_how_it_is_laid_out_and_of_what_it_was_made(tmp_path):
    from hashlib import sha256

    contents = files("BF16")
    folder, path = write(tmp_path / "model", contents), tmp_path / "saved.safetensors"

    async def check():
        llm = await LLM.load(folder)
        await llm.save(path)
        llm.close()

    run(check())
    raw = path.read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    said = header["__metadata__"]
    source = contents["model.safetensors"]
    listing = source[: 8 + int.from_bytes(source[:8], "little")]
    assert said["webgpu_py.source"] == sha256(listing).hexdigest()
    matrices = json.loads(said["webgpu_py.matrices"])
    assert matrices["model.embed_tokens.weight"]["type"] == "Q8_0"
    assert matrices["model.layers.1.mlp.down_proj.weight"]["type"] == "Q4_0"
    assert matrices["model.layers.1.mlp.down_proj.weight"]["dims"] == [64, 96]
    place = header["files/config.json"]["data_offsets"]
    start = 8 + int.from_bytes(raw[:8], "little")
    assert raw[start + place[0] : start + place[1]] == contents["config.json"]


def test_end_tokens_are_those_of_every_file(tmp_path):
    contents = files()
    config = json.loads(contents["config.json"]) | {"eos_token_id": 258}
    contents["config.json"] = json.dumps(config).encode()

    async def check():
        llm = await LLM.load(write(tmp_path, contents))
        llm.close()
        return llm.tokenizer.ends

    assert run(check()) == {256, 257, 258}


def test_a_template_of_its_own_file_comes_first_and_a_named_one_is_found(tmp_path):
    contents = files()
    listed = [{"name": "tool_use", "template": "no"}, {"name": "default", "template": "listed"}]
    settings = {"eos_token": "<|end|>", "chat_template": listed}
    contents["tokenizer_config.json"] = json.dumps(settings).encode()

    async def rendered(more):
        llm = await LLM.load({**contents, **more})
        llm.close()
        return llm.render([{"role": "user", "content": "hi"}])

    assert run(rendered({})) == "listed"
    assert run(rendered({"chat_template.jinja": b"own file"})) == "own file"


class Counted(BytesSource):
    """Bytes that remember how far they were read."""

    def __init__(self, data, name):
        super().__init__(data, name)
        self.furthest = 0

    async def read(self, offset, nbytes):
        self.furthest = max(self.furthest, offset + nbytes)
        return await super().read(offset, nbytes)


def changed(contents, name, **values):
    return {**contents, name: json.dumps(json.loads(contents[name]) | values).encode()}


def without(contents, *names):
    return {name: raw for name, raw in contents.items() if name not in names}


def with_tensor(contents, name, record):
    """The single file of weights with one tensor replaced, or left out for None."""
    tensors = {n: ("BF16", list(a.shape), bytes(a.size * 2)) for n, a in FOLDER_ARRAYS.items()}
    if record is None:
        del tensors[name]
    else:
        tensors[name] = record
    return {**contents, "model.safetensors": safetensors_bytes(tensors)}


FOLDER_ARRAYS = tiny_folder.arrays()
ONE, SHARDED = files(), files(shards=2)
DOWN = "model.layers.1.mlp.down_proj.weight"
SECOND = "model-00002-of-00002.safetensors"


WEIGHT_MAP = json.loads(SHARDED["model.safetensors.index.json"])["weight_map"]
OTHER = next(name for name in WEIGHT_MAP.values() if name != WEIGHT_MAP[DOWN])


def index_to(name):
    index = json.loads(SHARDED["model.safetensors.index.json"])
    index["weight_map"][DOWN] = name
    return {**SHARDED, "model.safetensors.index.json": json.dumps(index).encode()}


@pytest.mark.parametrize(
    ("contents", "error", "text"),
    [
        (changed(ONE, "config.json", model_type="mamba"), UnsupportedModel, "'mamba'"),
        (
            changed(ONE, "config.json", quantization_config={"quant_method": "gptq"}),
            UnsupportedModel,
            "quantized by 'gptq'",
        ),
        (
            with_tensor(ONE, DOWN, ("F8_E4M3", [64, 96], bytes(64 * 96))),
            UnsupportedModel,
            "down_proj.weight is F8_E4M3",
        ),
        (
            with_tensor(ONE, DOWN, ("I32", [64, 96], bytes(64 * 96 * 4))),
            UnsupportedModel,
            "down_proj.weight is I32",
        ),
        (with_tensor(ONE, DOWN, None), FormatError, f"no tensor '{DOWN}'"),
        (
            with_tensor(ONE, DOWN, ("BF16", [64, 95], bytes(64 * 95 * 2))),
            ShapeError,
            r"is \[64, 95\], config.json says \[64, 96\]",
        ),
        (changed(ONE, "config.json", hidden_size=32), ShapeError, "config.json says"),
        (
            changed(ONE, "config.json", tie_word_embeddings=False),
            FormatError,
            "no tensor 'lm_head.weight'",
        ),
        (without(ONE, "config.json"), FormatError, "no config.json"),
        (without(ONE, "tokenizer.json"), FormatError, "no tokenizer.json"),
        (without(ONE, "model.safetensors"), FormatError, "no model.safetensors or"),
        (changed(ONE, "generation_config.json", eos_token_id="x"), FormatError, "eos_token_id"),
        ({**ONE, "config.json": b"[]"}, FormatError, "must be an object"),
        (without(SHARDED, SECOND), FormatError, f"{SECOND}, which is not there"),
        (index_to("../other.safetensors"), FormatError, "no plain file name"),
        (index_to("https://elsewhere/x.safetensors"), FormatError, "no plain file name"),
        (index_to(OTHER), FormatError, "it is not"),
    ],
)
def test_refused_by_name_before_any_weight_is_read(contents, error, text):
    sources = {name: Counted(raw, name) for name, raw in contents.items()}
    with pytest.raises(error, match=text):
        run(LLM.load(sources))
    for name, raw in contents.items():
        if name.endswith(".safetensors"):
            header = 8 + int.from_bytes(raw[:8], "little")
            assert sources[name].furthest <= header, f"weights of {name} were read"


def test_weights_that_are_no_numbers_are_named():
    broken = dict(ONE)
    raw = bytearray(broken["model.safetensors"])
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    at = 8 + int.from_bytes(raw[:8], "little") + header[DOWN]["data_offsets"][0]
    raw[at : at + 2] = b"\xc0\x7f"
    broken["model.safetensors"] = bytes(raw)

    async def check():
        device = Device(RecordingBridge())
        with pytest.raises(FormatError, match=f"{DOWN}: 1 groups"):
            await LLM.load(broken, device=device)
        return device.bridge.stats()["buffers"]

    assert run(check()) == 0


def test_what_is_no_model_is_said_to_be_none(tmp_path):
    folder = write(tmp_path / "model", ONE)
    with pytest.raises(FormatError, match="weights alone are no model"):
        run(LLM.load(ONE["model.safetensors"]))
    with pytest.raises(FormatError, match=r"there is no other\.safetensors"):
        run(LLM.load(folder / "other.safetensors"))
    with pytest.raises(UnsupportedModel, match="quantize='int4'"):
        run(LLM.load(folder, quantize="int4"))


def test_a_file_in_a_folder_stands_for_the_folder(tmp_path):
    one = write(tmp_path / "one", without(ONE, "model.safetensors"))
    (one / "other.safetensors").write_bytes(ONE["model.safetensors"])
    two = write(tmp_path / "two", SHARDED)

    async def tokens(source):
        llm = await LLM.load(source)
        found = (await answer(llm, 3))[1].tokens
        llm.close()
        return found

    first = run(tokens(one / "other.safetensors"))
    assert first == run(tokens(str(two / "model.safetensors.index.json"))) == run(tokens(ONE))


def test_a_gguf_has_nothing_to_save(tmp_path):
    async def check():
        llm = await LLM.load(tiny_gguf())
        assert llm.quantization == {}
        await llm.save(tmp_path / "x.safetensors")

    with pytest.raises(FormatError, match="ready to load as it is"):
        run(check())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (b'"webgpu_py.packed":"1"', b'"webgpu_py.packed":"2"', "version '2'"),
        (b'\\"Q8_0\\"', b'\\"Q2_0\\"', "can't be read"),
        (b'\\"dims\\": [64, 96]', b'\\"dims\\": [64, 97]', "Q4_0|must be"),
        (b'\\"dims\\": [64, 96]', b'\\"dims\\":[6,1e999]', "can't be read"),
        (b'\\"noise\\": 0', b'\\"noise\\":-0', "can't be read"),
        (b'"webgpu_py.matrices"', b'"webgpu_py.matricez"', "can't be read"),
        (b"down_proj.weight.scales", b"down_proj.weight.skales", "no tensor"),
        (b"files/config.json", b"files/konfig.json", "no config.json"),
    ],
)
def test_a_damaged_saved_file_is_refused(old, new, text):
    async def check():
        llm = await LLM.load(ONE)
        raw = b"".join([piece async for piece in llm.packed()])
        llm.close()
        assert old in raw
        await LLM.load(raw.replace(old, new))

    with pytest.raises(WebGPUPyError, match=text):
        run(check())


def test_the_command_line_takes_a_folder(tmp_path, capsys):
    folder = write(tmp_path / "model", ONE)
    given = ["--device", "cpu", "--prompt", PROMPT, "--max-tokens", "4", "--json"]
    assert main(["generate", str(folder), *given]) == 0
    said = capsys.readouterr()
    assert "quantized 15 matrices, SNR of the worst 21.0 dB" in said.err
    found = json.loads(said.out)
    expected, _ = FolderForward("BF16").greedy(found["prompt_tokens"], 4)
    assert found["tokens"] == expected
    assert main(["generate", str(tmp_path), *given]) == 1
    assert "there is no config.json" in capsys.readouterr().err
