"""Only a person at a terminal answers the question for the hash; a pipe does on local chains."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from chainkit.council.proposal import read_proposal
from support.command_line import Outcome, run
from support.council.offline import Paper, in_one_line, paper
from support.council.proposals import OWNERS, RECORD, SAFE, SECRETS
from support.terminal import run_at_terminal

PROGRAM = "from chainkit.cli.main import main; main()"


def command(scene: Paper) -> list[str]:
    arguments = ("council", "sign", str(scene.path), *scene.files, *scene.keystore(SECRETS[0]))
    return [sys.executable, "-c", PROGRAM, *arguments]


def signers(scene: Paper) -> list[str]:
    return list(read_proposal(scene.path, RECORD, SAFE).signatures)


def typed(scene: Paper, digits: int) -> str:
    return scene.proposal.hash.hex()[:digits]


def test_sign__digits_typed_at_a_terminal__signs(tmp_path: Path) -> None:
    scene = paper(tmp_path)

    done = run_at_terminal(command(scene), typed(scene, 16) + "\n")

    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    assert signers(scene) == [OWNERS[0]]


def test_sign__digits_from_a_pipe__signs_nothing_and_does_not_ask(tmp_path: Path) -> None:
    scene = paper(tmp_path)

    done = subprocess.run(
        command(scene), input=typed(scene, 16) + "\n", capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert "expected a terminal, got a pipe or a file" in in_one_line(done.stderr)
    assert "To sign, type" not in done.stderr
    assert "SafeTx hash" in done.stdout
    assert signers(scene) == []


def test_sign__digits_from_a_pipe_on_a_local_chain__signs_and_warns(tmp_path: Path) -> None:
    scene = paper(tmp_path)

    outcome = scene.sign(*scene.keystore(SECRETS[0]))

    assert outcome.code == 0, outcome.err
    assert "WARNING: THE DIGITS COME FROM A PIPE" in outcome.err
    assert signers(scene) == [OWNERS[0]]


def test_check_pipe__any_other_chain__is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = paper(tmp_path)
    monkeypatch.setattr("chainkit.cli.council.confirming.LOCAL_CHAIN_IDS", (1337,))

    outcome = scene.sign(*scene.keystore(SECRETS[0]))

    assert outcome.code == 2
    assert "expected a local chain (1337), got chain id 31337" in in_one_line(outcome.err)
    assert signers(scene) == []


def answered(scene: Paper, answer: str) -> Outcome:
    arguments = (scene.path, *scene.files, *scene.keystore(SECRETS[0]), "--digits-from-pipe")
    return run("council", "sign", *arguments, typed=answer + "\n")


@pytest.mark.parametrize("prefix", ["", "0x"])
@pytest.mark.parametrize("digits", [16, 64])
def test_sign__first_16_digits_or_all__signs(tmp_path: Path, digits: int, prefix: str) -> None:
    scene = paper(tmp_path)

    assert answered(scene, prefix + typed(scene, digits)).code == 0
    assert signers(scene) == [OWNERS[0]]


@pytest.mark.parametrize("digits", [15, 17, 63])
def test_sign__any_other_number_of_digits__signs_nothing(tmp_path: Path, digits: int) -> None:
    scene = paper(tmp_path)

    outcome = answered(scene, typed(scene, digits))

    assert outcome.code == 2
    assert "expected its first 16 digits, or all 64" in outcome.err
    assert signers(scene) == []


def test_sign__all_digits_but_the_last_is_wrong__signs_nothing(tmp_path: Path) -> None:
    scene = paper(tmp_path)
    last = "1" if scene.proposal.hash.hex()[-1] == "0" else "0"

    assert answered(scene, typed(scene, 63) + last).code == 2
    assert signers(scene) == []
