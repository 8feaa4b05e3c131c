"""The documents: Python blocks run, JavaScript parses, links lead somewhere, the site builds."""

import ast
import asyncio
import hashlib
import html
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from playwright._impl._driver import compute_driver_executable

import tiny_folder
import webgpu_py as wg
from tiny_model import tiny_gguf
from webgpu_py import errors
from webgpu_py.graph.operator import find_operator, operator_index
from webgpu_py.host import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "examples").glob("**/README.md"),
        *ROOT.glob("*.md"),
        ROOT / "web/README.md",
        ROOT / "bench/README.md",
    ]
)
RECIPE = ROOT / "tests/conformance/cases/own/recipe"
LLAMA = ROOT / "tests/unit/goldens/llama"
FENCE = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^>]+) -->\n)?"
    r"^```(?P<language>\w*)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$",
    re.M | re.S,
)


def name(path):
    return str(path.relative_to(ROOT))


def blocks(path, language):
    return [m for m in FENCE.finditer(path.read_text()) if m["language"] == language]


def with_blocks(language):
    return [path for path in PAGES if blocks(path, language)]


# -- code


@pytest.fixture
def on_cpu(monkeypatch, tmp_path):
    """A folder with the files that the documents open, and a device that every machine has."""
    request = wg.request_device
    monkeypatch.setattr(wg, "request_device", lambda kind="browser", **_: request("cpu"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.gguf").write_bytes(tiny_gguf())
    shutil.copyfile(RECIPE / "model.pte", tmp_path / "model.pte")
    shutil.copyfile(LLAMA / "llama.pte", tmp_path / "llama.pte")
    tiny_folder.write(tmp_path / "SmolLM2-135M-Instruct", tiny_folder.files())


async def run_blocks(path):
    names = {"__name__": "__main__"}
    for block in blocks(path, "python"):
        if block["reason"] or block["title"]:
            continue
        line = path.read_text().count("\n", 0, block.start("text"))
        # Errors of a block are shown with the document's own line.
        tree = ast.increment_lineno(ast.parse(block["text"]), line)
        code = compile(tree, name(path), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        value = eval(code, names)
        if inspect.iscoroutine(value):
            await value


@pytest.mark.parametrize("path", with_blocks("python"), ids=name)
def test_python_runs(path, on_cpu):
    asyncio.run(run_blocks(path))


def test_blocks_that_do_not_run_say_why_and_are_a_minority():
    found = [m for p in PAGES for m in blocks(p, "python")]
    kept = [m["reason"] for m in found if m["reason"]]
    assert all(len(reason.split()) > 3 for reason in kept) and 3 * len(kept) < len(found)


def test_python_that_does_not_run_parses():
    for path in PAGES:
        for block in blocks(path, "python"):
            compile(block["text"], name(path), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.parametrize("path", with_blocks("js") + with_blocks("html"), ids=name)
def test_javascript_parses(path, tmp_path):
    node = compute_driver_executable()[0]
    texts = [m["text"] for m in blocks(path, "js")]
    for block in blocks(path, "html"):
        texts += re.findall(r'<script type="module">(.*?)</script>', block["text"], re.S)
    assert texts
    for at, text in enumerate(texts):
        file = tmp_path / f"{at}.mjs"
        file.write_text(text)
        done = subprocess.run([node, "--check", file], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_the_recipes_for_programs_wrote_the_programs_that_are_tested():
    page = ROOT / "docs/start/executorch.md"
    (llama,) = (m["text"] for m in blocks(page, "sh") if "export_llm" in m["text"])
    for text, made, by in (
        (blocks(page, "python")[0]["text"], RECIPE / "manifest.json", "export_cases.py recipe"),
        (llama, LLAMA / "expected.json", "export_llama.py"),
    ):
        made_of = json.loads(made.read_text())["recipe_sha256"]
        again = f"the recipe changed: run tests/conformance/{by}"
        assert hashlib.sha256(text.encode()).hexdigest() == made_of, again


def test_the_exported_llama_ranks_as_the_weights_it_was_made_of():
    """Four bits may change places of the best two of 256, and no more."""
    facts = json.loads((LLAMA / "expected.json").read_text())

    async def best_two():
        program = await wg.load(LLAMA / "llama.pte", device=await wg.request_device("cpu"))
        position, found = 0, []
        for tokens in (facts["prompt"], *([token] for token in facts["tokens"][:-1])):
            logits = await program.forward(np.array([tokens]), np.array([position]))
            found.append(logits[0].argsort()[-2:].tolist())
            position += len(tokens)
        return found

    for expected, found in zip(facts["tokens"], asyncio.run(best_two()), strict=True):
        assert expected in found


def test_commands_of_the_documents_are_there():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    for path in PAGES:
        for block in blocks(path, "sh"):
            for line in block["text"].replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words[:1] == ["make"]:
                    assert set(words[1:]) <= targets, line
                elif words[:1] == ["webgpu-py"]:
                    parsed = cli._parser(words[1]).parse_args(words[1:])
                    assert parsed.command == words[1], line


# -- links


def anchors(path):
    plain = FENCE.sub("", path.read_text())
    heads = re.findall(r"^#+ (.+)$", plain, re.M)
    return {re.sub(r"[^\w -]", "", h.lower()).strip().replace(" ", "-") for h in heads}


GENERATED = {"operators.md": "operators.md", "features.md": "FEATURES.md"}


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_links_lead_somewhere(path):
    plain = FENCE.sub("", path.read_text())
    for target in re.findall(r"\]\(([^)\s]+)\)", plain):
        file, _, anchor = target.partition("#")
        if "://" in target or (path.parent == ROOT / "docs" and file in GENERATED):
            continue
        found = (path.parent / file).resolve() if file else path
        assert found.exists(), f"{name(path)} links to {target}"
        assert not anchor or anchor in anchors(found), f"{name(path)} links to {target}"


# -- the site


def test_the_site_builds_without_a_warning(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    reference = (tmp_path / "site/operators/index.html").read_text()
    assert "x < 0 with the sign of a whole exponent" in html.unescape(reference)
    public = (tmp_path / "site/api/index.html").read_text()
    errors_page = (tmp_path / "site/errors/index.html").read_text()
    for known in wg.__all__:
        assert f"<code>{known}</code>" in public + errors_page, known
    missing = [n for n in operator_index() if f"<code>{n}</code>" not in reference]
    assert not missing
    # No page asks another server for anything.
    for page in (tmp_path / "site").rglob("*.html"):
        loaded = re.findall(
            r"<(?:script|link|img)[^>]+(?:src|href)=\"?(https?:[^\" >]+)", page.read_text()
        )
        assert not loaded, page


@pytest.mark.parametrize("operator", sorted(operator_index()))
def test_every_operator_says_what_it_does(operator):
    text = inspect.cleandoc(type(find_operator(operator)).__doc__ or "")
    assert len(text) > 20


def test_the_catalogue_has_every_code():
    table = re.findall(
        r"^\| `(\w+)` \| [^|]+ \| [^|]+ \|$", (ROOT / "docs/errors.md").read_text(), re.M
    )
    codes = {kind.code for kind in errors.WebGPUPyError.__subclasses__()}
    assert set(table) >= {c for c in codes if hasattr(errors, c)} and len(table) == len(set(table))
    assert not [c for c in table if not hasattr(errors, c)]


def test_the_picture_of_the_graph_is_the_librarys(on_cpu):
    block = blocks(ROOT / "docs/concepts.md", "python")[0]
    names = {}
    exec(block["text"], names)
    assert (ROOT / "docs/pictures/graph.svg").read_text() == names["picture"].rstrip() + "\n"


# -- an operator in 15 minutes


@pytest.mark.parametrize(
    "chosen",
    ["not browser", pytest.param("browser", marks=pytest.mark.slow)],
)
def test_the_guide_to_a_new_operator_works_as_it_is_written(chosen, tmp_path):
    ignored = shutil.ignore_patterns("__pycache__")
    for folder in ("webgpu_py", "wgsl", "web"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    for file in ("pyproject.toml", "playwright.config.py", "tests/conftest.py"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        shutil.copyfile(ROOT / file, tmp_path / file)
    shutil.copytree(ROOT / "tests/browser/harness", tmp_path / "tests/browser/harness")
    (tmp_path / "tests/ops").mkdir()
    for file in ("conftest.py", "opcase.py", "features.py", "native.py", "native_seen.txt"):
        shutil.copyfile(ROOT / "tests/ops" / file, tmp_path / "tests/ops" / file)
    (tmp_path / ".cache").symlink_to(ROOT / ".cache")
    files = {
        m["title"]: m["text"]
        for m in FENCE.finditer((ROOT / "docs/add-an-operator.md").read_text())
    }
    for title, text in files.items():
        if title:
            assert not (ROOT / title).exists()
            (tmp_path / title).write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/ops/test_softplus.py", "-q", "-k", chosen],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    # The copy has no FEATURES.md, so the run may call it stale; the tests themselves pass.
    assert re.search(r"^\d+ passed", done.stdout, re.M), done.stdout + done.stderr
    assert "failed" not in done.stdout and "error" not in done.stdout
