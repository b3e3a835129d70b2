"""A proposal that is longer than a screen ends with a summary that is not."""

from __future__ import annotations

import time
from pathlib import Path

from chainkit.cli.change.screen import SCREEN_LINES
from chainkit.council.calls import Call
from chainkit.council.proposal import Proposal
from support.command_line import run
from support.council.offline import WEEK, paper
from support.council.proposal_commands import proposal_path
from support.council.proposals import OWNERS, SECRETS, disable, pause, proposed, transfer
from support.council.scene import REASON, CouncilScene

QUESTION_LINES = 3
HASH = "SafeTx hash     0x"


def shown(folder: Path, *calls: Call) -> tuple[list[str], Proposal]:
    proposal = proposed(*calls, expires=int(time.time()) + WEEK)
    scene = paper(folder, proposal=proposal)
    outcome = scene.sign(*scene.keystore(SECRETS[0]))
    assert outcome.code == 0, outcome.err
    # The question is on standard error; behind it are the signers.
    lines = outcome.out.splitlines()
    end = next(number for number, line in enumerate(lines) if "signed by " in line)
    return lines[:end], proposal


def test_sign__many_calls__ends_with_a_summary_shorter_than_a_screen(tmp_path: Path) -> None:
    moves = [transfer(OWNERS[0], OWNERS[1], 100 * number) for number in range(1, 12)]

    lines, proposal = shown(tmp_path, *moves, pause())

    start = next(number for number, line in enumerate(lines) if line.startswith("in short"))
    summary = lines[start:]
    assert len(summary) + QUESTION_LINES < SCREEN_LINES
    assert summary[0].startswith(
        f"in short        12 calls of {proposal.account} on chain id 31337"
    )
    assert sum(line.startswith("  call ") for line in summary) == 8
    assert "                and 4 more calls, above" in summary
    assert summary[-1] == HASH + proposal.hash.hex()
    assert max(map(len, lines)) <= 100


def test_sign__one_call__has_no_summary(tmp_path: Path) -> None:
    lines, _ = shown(tmp_path, disable())

    assert not [line for line in lines if line.startswith("in short")]
    assert sum(line.startswith(HASH) for line in lines) == 1


def test_status__storage_longer_than_all_else__ends_with_the_hash(scene: CouncilScene) -> None:
    path = proposal_path(scene)
    place = ("--propose", path, "--reason", REASON, *scene.rpc, *scene.files)
    drafted = run("contracts", "grant-admin", "all", OWNERS[0], *place)

    status = run("council", "status", path, *scene.rpc, *scene.files)

    assert drafted.code == 0, drafted.err
    for outcome in (drafted, status):
        after = outcome.out.split("\nin short")[1].splitlines()
        assert len(after) + QUESTION_LINES < SCREEN_LINES
        assert [line for line in after if line.startswith("  caution       new administrator of")]
        assert [line for line in after if line.startswith(HASH)]
        assert not [line for line in after if line.startswith("storage")]
    assert (
        "  call          GroupMessages.grantRole(role=DEFAULT_ADMIN_ROLE, account=0x" in status.out
    )
