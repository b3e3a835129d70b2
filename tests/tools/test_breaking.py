"""A change to a copy of a project, and what is run there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from chainkit.errors import ConfigurationError
from tools import breaking
from tools.breaking import NOT_RUN, Break, Copies, Copy

BREAK = Break("rules.py", "LIMIT = 5", "LIMIT = 6")
PRINT = ("python", "-c", "import rules; print(rules.LIMIT)")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    (root / "rules.py").write_text("LIMIT = 5\n")
    (root / ".gitignore").write_text("kept\n")
    (root / "kept").write_text("")
    return root


@pytest.fixture
def copy(root: Path, tmp_path: Path) -> Copy:
    return Copy(tmp_path / "copy", root)


def test_copy__of_a_project__has_what_git_knows_or_would_add(copy: Copy) -> None:
    assert (copy.folder / "rules.py").exists()
    assert not (copy.folder / "kept").exists()


def test_changed__a_file__is_run_with_the_change_and_is_the_same_afterwards(
    copy: Copy, root: Path
) -> None:
    with copy.changed(BREAK):
        assert copy.run(*PRINT).printed == "6\n"
        assert (root / "rules.py").read_text() == "LIMIT = 5\n"

    assert copy.run(*PRINT).printed == "5\n"


@pytest.mark.parametrize("source", ["LIMIT = 4\n", "LIMIT = 5\n" * 2])
def test_changed__text_that_does_not_stand_once__is_refused(copy: Copy, source: str) -> None:
    (copy.folder / "rules.py").write_text(source)

    with pytest.raises(ConfigurationError, match="the text of a break once"), copy.changed(BREAK):
        pass


def test_applied_to__replacement_that_is_the_text__is_refused() -> None:
    with pytest.raises(ConfigurationError, match="another instead"):
        Break("rules.py", "5", "5").applied_to("LIMIT = 5\n")


def test_run__command_that_does_not_end__is_ended_with_all_that_it_started(
    copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breaking, "_TIMEOUT_SECONDS", 0.1)

    # The child holds the pipe: without its end, nobody reads the end of the output.
    ended = copy.run("sh", "-c", "sleep 1000 & wait")

    assert (ended.status, ended.output) == (NOT_RUN, "no end within 0.1 s")


def test_each__several_items__are_answered_in_order_by_copies_that_take_turns(root: Path) -> None:
    with Copies(workers=2, root=root) as copies:
        folders = set(copies.each(range(2), lambda copy, _: copy.folder))
        answers = list(copies.each([3, 1, 2], lambda copy, item: (copy.folder in folders, item)))

    assert len(folders) == 2
    assert answers == [(True, 3), (True, 1), (True, 2)]
    assert not any(folder.exists() for folder in folders)
