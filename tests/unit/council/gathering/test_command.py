"""`chainkit council gather` before it asks any node."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.command_line import Outcome, run

DEAD = "http://127.0.0.1:1"


def gather(tmp_path: Path, *options: object) -> Outcome:
    record = ("--rpc", DEAD, "--deployment", tmp_path / "deployment.json")
    return run("council", "gather", tmp_path / "evidence", *record, *options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--node", "100"), "--node: expected ID=URL, such as 100=https://node.example, got 100"),
        (("--node", "x=http://a"), "--node: expected ID=URL"),
        (("--node", "1="), "--node: expected ID=URL"),
        (("--node", "1=http://a", "--node", "1=http://b"), "expected node 1 once, got twice"),
        (("--after", "-1"), "is not in the range"),
        (("--seconds", "0"), "is not in the range"),
    ],
)
def test_gather__wrong_option__is_refused_before_anything_is_asked(
    tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    outcome = gather(tmp_path, *options)

    assert outcome.code == 2
    assert words in outcome.err
    assert not (tmp_path / "evidence").exists()


def test_gather__without_grpcio__names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "chainkit.council.gathering.transport", raising=False)
    monkeypatch.setitem(sys.modules, "grpc", None)

    outcome = gather(tmp_path)

    assert outcome.code == 2
    assert "expected the package grpcio, got none" in outcome.err
    assert "pip install 'chainkit[council]'" in " ".join(outcome.err.split())
