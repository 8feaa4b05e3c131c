"""What the site takes from the rest of the repository: docstrings of operators, documents."""

import ast
import inspect
import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

import webgpu_py

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = {
    "features.md": "FEATURES.md",
    "benchmarks.md": "BENCHMARKS.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
    "changelog.md": "CHANGELOG.md",
    "npm.md": "web/README.md",
    "examples.md": "examples/README.md",
    "testing-example.md": "examples/testing/README.md",
}
"""Page of the site -> the file that it is."""

_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.M | re.S)
_SIGNS = re.compile(r"[\\`*_{}\[\]<>&|#~]")
_HEADS = ("Shapes:", "Layout:", "Errors:", "Source:", "Args:", "Returns:", "Raises:")


def on_files(files, config):
    """Add the pages that are made from other files."""
    for name, source in DOCUMENTS.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=text))
    files.append(File.generated(config, "operators.md", content=operators()))
    files.append(File.generated(config, "api.md", content=interface()))
    return files


def on_page_markdown(markdown, page, config, files):
    """Point links of a repository's file at the site's page of it; others become text."""
    name = page.file.src_uri
    place = posixpath.dirname(DOCUMENTS.get(name, f"docs/{name}"))
    pages = {source: page for page, source in DOCUMENTS.items()}

    def link(match):
        image, text, target = match.groups()
        path, mark, anchor = target.partition("#")
        if not path or "://" in path:
            return match[0]
        found = posixpath.normpath(posixpath.join(place, path))
        inside = pages.get(found)
        if inside is None and found.startswith("docs/"):
            inside = found.removeprefix("docs/")
        if inside is None:
            return text if path.rstrip("/") in text else f"{text} (`{found}`)"
        relative = posixpath.relpath(inside, posixpath.dirname(name) or ".")
        return f"{image}[{text}]({relative}{mark}{anchor})"

    kept = []
    plain = _FENCE.sub(lambda m: (kept.append(m[0]), f"\0{len(kept) - 1}\0")[1], markdown)
    linked = _LINK.sub(link, plain)
    return re.sub(r"\0(\d+)\0", lambda m: kept[int(m[1])], linked)


def operators():
    """The reference of all operators: a section a family, in the words of its docstrings."""
    parts = [
        "# Operators\n\nGenerated from the docstrings of `webgpu_py/ops`. `=` marks arguments that "
        "may be absent or None, `!` what is written in place. What the tests saw of each is in "
        "[Features](features.md).\n"
    ]
    for path in sorted((ROOT / "webgpu_py/ops").glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        classes = [(node, found) for node in tree.body if (found := signatures(node))]
        if classes:
            parts.append(f"## {path.stem}\n\n{prose(ast.get_docstring(tree) or '')}\n")
        for node, found in classes:
            names = ", ".join(f"`{s.partition('(')[0]}`" for s in found)
            parts.append(f"### {names}\n\n```text\n" + "\n".join(found) + "\n```\n")
            parts.append(prose(ast.get_docstring(node) or "") + "\n")
    return "\n".join(parts)


def interface():
    """The reference of the package's public names, errors aside: those have a page of their own."""
    parts = [
        "# Python interface\n\nGenerated from the docstrings of `webgpu_py`. Errors are in "
        "[Errors](errors.md), operators in [Operators](operators.md).\n"
    ]
    for name in webgpu_py.__all__:
        found = getattr(webgpu_py, name)
        if not inspect.isclass(found):
            parts.append(entry("##", name, found))
        elif not issubclass(found, webgpu_py.WebGPUPyError):
            parts.append(f"## `{name}`\n\n{prose(inspect.getdoc(found) or '')}\n")
            for member, value in vars(found).items():
                # A field of a dataclass is a descriptor too, without words of its own.
                if not member.startswith("_") and not inspect.ismemberdescriptor(value):
                    parts.append(entry("###", f"{name}.{member}", value))
    return "\n".join(parts)


def entry(mark, name, value):
    """A function, method or property: its signature, its words."""
    if isinstance(value, property):
        head = f"{name} -> {inspect.signature(value.fget).return_annotation}"
    else:
        called = inspect.unwrap(getattr(value, "__func__", value))
        wait = "await " if inspect.iscoroutinefunction(called) else ""
        head = f"{wait}{name}{called_with(inspect.signature(called))}"
        head = re.sub(r"(: |-> )'([^']*)'", r"\1\2", head)
    return f"{mark} `{name}`\n\n```python\n{head}\n```\n\n{prose(inspect.getdoc(value) or '')}\n"


def called_with(signature, most=80):
    """A signature as a call has it, a line a parameter where one line is too long for the page."""
    own = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
    signature = signature.replace(parameters=own)
    if len(str(signature)) <= most:
        return signature
    parts = []
    for parameter in own:
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        parts.append(str(parameter))
    lines = "".join(f"    {part},\n" for part in parts)
    return f"(\n{lines}) -> {signature.return_annotation}"


def signatures(node):
    """The operator signatures that decorate a class."""
    for decorator in getattr(node, "decorator_list", []):
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "operator":
            return [ast.literal_eval(argument) for argument in decorator.args]
    return []


def prose(text):
    """A docstring as Markdown: its paragraphs, a line for each head, signs taken as they are."""
    lines = []
    for line in text.splitlines():
        head, colon, rest = line.partition(":") if line.startswith(_HEADS) else ("", "", line)
        lines += ["", f"*{head}:*{plain(rest)}"] if colon else [plain(rest.strip())]
    return "\n".join(lines)


def plain(text):
    """Text whose signs mean nothing to Markdown, code in backticks left as it is."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else _SIGNS.sub(lambda m: f"&#{ord(m[0])};", part)
        for part in parts
    )
