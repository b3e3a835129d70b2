"""The operator's guides: their commands, links and figures are so."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from eth_keyfile import keyfile

from support.operations import OPERATIONS, RUNBOOK, parse
from support.project import DOCS

GUIDES = (DOCS / "operator.md", OPERATIONS / "README.md", *sorted(RUNBOOK.glob("*.md")))


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
def test_guide__links__lead_somewhere(guide: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", guide.read_text()):
        assert (guide.parent / target).exists(), target


def commands_in(text: str) -> list[list[str]]:
    blocks = re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    lines += re.findall(r"`(chainkit [^`]+)`", text)
    found = []
    for line in lines:
        match = re.search(
            r"^(?:\$ )?(?:ExecStart=)?(?:\S*/bin/)?chainkit (?P<rest>.*)"
            r"|docker compose run --rm indexer (?P<other>.*)",
            line,
        )
        if match and "…" not in line:
            found.append(shlex.split(match["rest"] or match["other"], comments=True))
    return found


def test_guides__each_command__is_one_that_the_parser_takes() -> None:
    commands = [command for guide in GUIDES for command in commands_in(guide.read_text())]

    assert len(commands) >= 25
    for words in commands:
        parse(words)


def test_guides__packages_that_they_install__come_from_a_clone() -> None:
    installed = [
        word
        for guide in GUIDES
        for block in re.findall(r"^```\n(.*?)^```", guide.read_text(), re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
        if (command := line.partition("pip install ")[2])
        for word in shlex.split(command, comments=True)
        if not word.startswith("-")
    ]

    assert installed
    assert [word for word in installed if not word.startswith(".[")] == []


def test_guide__memory_of_the_start__has_room_for_what_scrypt_takes() -> None:
    guide = (DOCS / "operator.md").read_text()
    told = re.findall(r"scrypt decrypts the keystore \| (\d+) MB|takes (\d+) MB of it", guide)
    (start, _), (_, scrypt) = told

    # The parameters that `chainkit key new` writes; RFC 7914 has the 128 bytes.
    taken = 128 * keyfile.SCRYPT_R * keyfile.get_default_work_factor_for_kdf("scrypt")
    assert int(scrypt) == round(taken / 1e6) < int(start)
