"""No sentence begins with a word that puts its subject last (CONTRIBUTING.md)."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from chainkit_client.mls.program import PROGRAM
from support.project import ROOT

FIRST_WORDS = tuple(word.capitalize() for word in ("of", "what", "who", "whoever", "whose"))
FOLDERS = (
    *(
        "backups",
        "benchmarks",
        "client",
        "contracts",
        "demo",
        "deployments",
        "docs",
        "gateway",
        "indexer",
    ),
    *("jobs", "localnet", "node"),
    *("operations", "scripts", "src", "tests", "tools"),
)
FIRST_WORD = re.compile(rf"(?:\b|\\n)(?:{'|'.join(FIRST_WORDS)})\b")
BEGINNING = re.compile(rf"(?:^|[.!?:][\"')*_]* )(?:{'|'.join(FIRST_WORDS)})\b[^.!?]{{0,60}}")
MARKS = re.compile(r"^[\s#>*|/-]+")
TAGS = re.compile(r"<[^>]*>|\{[%#].*?[%#]\}|\{\{|\}\}|(?<=[(, ])\"", re.DOTALL)
HEADING = re.compile(r"^#+ .*$", re.MULTILINE)
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
        # The line below a heading begins a sentence.
        apart = HEADING.sub(r"\g<0>\n", FENCE.sub("", text))
        yield from re.split(r"\n\s*\n|\n(?=#|[-*|] )|(?<=\|) ", apart)
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
    yield from (*ROOT.glob("*.md"), ROOT / ".ci" / "run", ROOT / "Makefile")
    for folder in FOLDERS:
        for suffix in ("py", "md", "sol", "mjs", "yaml", "yml", "j2", "sql"):
            for path in sorted(ROOT.joinpath(folder).rglob(f"*.{suffix}")):
                if path != PROGRAM:
                    yield path


def joined(paragraph: str) -> str:
    return " ".join(MARKS.sub("", line) for line in paragraph.splitlines()).strip()


@pytest.mark.parametrize("word", FIRST_WORDS)
@pytest.mark.parametrize("before", ["", "It ends. ", "It ends (so). ", "One thing: ", "Is it? "])
def test_beginnings__a_sentence_begins_with_a_word__is_found(word: str, before: str) -> None:
    assert beginnings(f"{before}{word} it is.") == [f"{word} it is"]


@pytest.mark.parametrize("text", ["The one who asks of what.", "Whatever. Often.", "It is Who."])
def test_beginnings__the_words_stand_elsewhere__nothing_is_found(text: str) -> None:
    assert beginnings(text) == []


@pytest.mark.parametrize("word", FIRST_WORDS)
def test_paragraphs__text_stands_right_below_a_heading__is_one_of_its_own(
    word: str, tmp_path: Path
) -> None:
    path = tmp_path / "page.md"
    path.write_text(f"# Page\n\n## Consequence\n{word} it is.\nIt ends.\n")

    found = [words for each in paragraphs(path) for words in beginnings(joined(each))]
    assert found == [f"{word} it is"]


def test_texts__sentences_and_headings__none_begins_with_the_words() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {words}"
        for path in texts()
        for paragraph in paragraphs(path)
        for words in beginnings(joined(paragraph))
    ]

    assert found == []
