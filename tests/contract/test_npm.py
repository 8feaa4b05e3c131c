"""The npm package: whole, equal to its sources, free of dependencies, and typed."""

import json
import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

from webgpu_py.errors import FormatError
from webgpu_py.host import npm_package

ROOT = Path(__file__).resolve().parents[2]
needs_node = pytest.mark.skipif(
    shutil.which("npm") is None, reason="Node.js is not installed; it is for packing only"
)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder = tmp_path_factory.mktemp("npm") / "webgpu-py"
    npm_package.write_package(folder)
    return folder


@pytest.fixture(scope="module")
def about(package):
    return json.loads((package / "package.json").read_text())


def names(folder):
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def test_copies_equal_their_sources(package):
    for name in names(package):
        if name.startswith("js/"):
            source = ROOT / "webgpu_py" / name
        elif name.startswith("python/") or name in ("python-files.js", "LICENSE"):
            continue
        else:
            source = ROOT / "web" / name
        assert (package / name).read_bytes() == source.read_bytes(), name
    halves = {p.name for p in (ROOT / "webgpu_py/js").glob("*.js")}
    assert {n.removeprefix("js/") for n in names(package) if n.startswith("js/")} == halves


def test_every_import_and_address_leads_to_a_file(package):
    for name in names(package):
        if name.endswith(".js"):
            text = (package / name).read_text()
            found = re.findall(r"(?:from|import\()\s*'(\.[^']+)'", text)
            found += re.findall(r"new URL\(['\"](\./[^'\"]+[^/'\"])['\"], import", text)
            for target in found:
                assert (package / name).parent.joinpath(target).is_file(), f"{name}: {target}"


def test_the_page_is_not_in_it(package):
    kinds = {n.rpartition(".")[2] for n in names(package)}
    assert not {n for n in names(package) if n.startswith("views/")}
    assert not kinds & {"html", "css", "svg"}


def test_metadata(package, about):
    assert about["version"] == metadata.version("webgpu-py")
    assert about["type"] == "module" and about["license"] == "MIT"
    assert not {"dependencies", "peerDependencies", "scripts"} & set(about)
    assert (package / "LICENSE").is_file() and (package / "README.md").is_file()
    for target in about["exports"].values():
        for file in target.values() if isinstance(target, dict) else [target]:
            assert (package / file).is_file(), file


def test_a_folder_with_things_in_it_is_left_alone(package, capsys):
    with pytest.raises(FormatError, match="not empty"):
        npm_package.write_package(package)
    assert npm_package.main([str(package)]) == 1
    assert "FormatError" in capsys.readouterr().err


@needs_node
def test_npm_packs_every_file(package):
    command = ["npm", "pack", "--dry-run", "--json", str(package)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    packed = json.loads(done.stdout)
    (found,) = packed if isinstance(packed, list) else packed.values()
    assert {f["path"] for f in found["files"]} == names(package)


APP = """
import { Connection, Graph, array, build, dim, load } from 'webgpu-py';
import type { Message, NdArray, Progress, Stream } from 'webgpu-py';
import OpenAI from 'webgpu-py/openai';

export async function everything(gpuDevice: GPUDevice, file: File): Promise<number> {
  const { signal } = new AbortController();
  const onProgress = (p: Progress) => console.log(p.stage, p.loaded);
  const opened = await load('model.gguf', { onProgress, signal });
  if (opened.info.kind !== 'model' || !('chat' in opened)) throw new Error('no model');
  const messages: Message[] = [{ role: 'user', content: 'hi' }];
  const stream: Stream = opened.chat(messages, { temperature: 0.5, signal });
  for await (const text of stream) console.log(text.length);
  const reason: 'stop' | 'length' | 'cancelled' | null = stream.finishReason;
  const program = await load(file, { connection: new Connection({ baseURL: '/webgpu-py/' }) });
  if ('run' in program) {
    const [output] = await program.run([array(new Int32Array(4)), 1, true], { method: 'forward' });
    if (typeof output === 'object') console.log((output as NdArray).shape);
  }
  const g = new Graph();
  const x = g.input('x', [dim('n', 16), 64]);
  const halves = g.call('aten.split_with_sizes_copy.default', x, [32, 32], 1);
  g.output('y', g.call('aten.sigmoid.default', halves.at(0)));
  const session = await build(g, { gpuDevice, pyodideURL: '/pyodide/' });
  const given = array(new Float32Array(64), [1, 64]);
  const { y } = await session.run({ x: given }, { transfer: true });
  const openai = new OpenAI({ model: 'model.gguf' });
  const answer = await openai.chat.completions.create({ messages });
  session.close();
  return y!.data.length + answer.usage.total_tokens + (reason ? 1 : 0);
}
"""
WRONG = """
import { Graph, build, load } from 'webgpu-py';
load('x', { device: 'quantum' });
new Graph().input('x', 3);
build(new Graph(), { workerURL: 'x' });
"""


@pytest.mark.slow
@needs_node
def test_the_types_fit_an_app(package, tmp_path):
    (tmp_path / "package.json").write_text('{"type": "module", "private": true}')
    install = ["npm", "install", "--silent", "--no-audit", "typescript@5", "@webgpu/types"]
    subprocess.run([*install, str(package)], cwd=tmp_path, check=True, timeout=300)
    options = {
        "strict": True, "noEmit": True, "noUncheckedIndexedAccess": True, "target": "es2022",
        "module": "nodenext", "lib": ["es2022", "dom", "dom.iterable", "esnext.asynciterable"],
        "types": ["@webgpu/types"],
    }  # fmt: skip
    config = {"compilerOptions": options, "files": ["app.ts"]}
    (tmp_path / "tsconfig.json").write_text(json.dumps(config))

    def check(text):
        (tmp_path / "app.ts").write_text(text)
        command = ["node_modules/.bin/tsc", "-p", "."]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)

    fine = check(APP)
    assert fine.returncode == 0, fine.stdout
    wrong = check(WRONG)
    assert [line.partition("(")[2].partition(",")[0] for line in wrong.stdout.splitlines()] == [
        "3", "4", "5",
    ], wrong.stdout  # fmt: skip
