"""No sentence begins with a word that puts its subject last (CONTRIBUTING.md)."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from support.project import ROOT

FIRST_WORDS = ("Of", "What", "Who", "Whoever", "Whose")
FOLDERS = (
    *("benchmarks", "contracts", "demo", "deployments", "docs", "indexer", "jobs", "localnet"),
    *("operations", "scripts", "src", "tests", "tools"),
)
FIRST_WORD = re.compile(rf"\b(?:{'|'.join(FIRST_WORDS)})\b")
BEGINNING = re.compile(rf"(?:^|[.!?:][\"')*_]* )(?:{'|'.join(FIRST_WORDS)})\b[^.!?]{{0,60}}")
MARKS = re.compile(r"^[\s#>*|-]+|\"\"\"")
TAGS = re.compile(r"<[^>]*>|\{[%#].*?[%#]\}|\{\{|\}\}|(?<=[(, ])\"", re.DOTALL)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def beginnings(text: str) -> list[str]:
    """Return how each sentence of some text begins that begins with one of the words."""
    return [found.group().lstrip(".!?:\"')*_ ") for found in BEGINNING.finditer(text)]


def paragraphs(path: Path) -> Iterator[str]:
    """Yield what people read in a file: comments and texts of Python, all of the others."""
    text = path.read_text(encoding="utf-8")
    if not FIRST_WORD.search(text):
        return  # parsing takes a hundred times as long
    if path.suffix == ".j2":
        text = TAGS.sub("\n\n", text)
    if path.suffix != ".py":
        yield from re.split(r"\n\s*\n|\n(?=#|[-*|] )|(?<=\|) ", FENCE.sub("", text))
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.split(r"\n\s*\n", node.value)
    comments: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.append(token.string)
        elif token.type != tokenize.NL:
            yield "\n".join(comments)
            comments = []


def texts() -> Iterator[Path]:
    """Return the files that people read, without those that are generated or installed."""
    yield from ROOT.glob("*.md")
    for folder in FOLDERS:
        for suffix in ("py", "md", "sol", "mjs", "yaml", "yml", "j2"):
            yield from sorted(ROOT.joinpath(folder).rglob(f"*.{suffix}"))


def joined(paragraph: str) -> str:
    return " ".join(MARKS.sub("", line) for line in paragraph.splitlines()).strip()


def test_beginnings__sentences_of_a_text__only_those_words_are_found() -> None:
    text = "What it costs. The one who asks. Whatever. (Who) Read. Of all: Who asks? It is what."

    assert beginnings(text) == ["What it costs", "Of all: Who asks"]


def test_texts__sentences_and_headings__none_begins_with_the_words() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {words}"
        for path in texts()
        if path != Path(__file__)  # it lists the words
        for paragraph in paragraphs(path)
        for words in beginnings(joined(paragraph))
    ]

    assert found == []
