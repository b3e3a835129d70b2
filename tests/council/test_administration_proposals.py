"""A Safe administers the two logs: a change is proposed, signed, executed and read back."""

from __future__ import annotations

import pytest

from chainkit.contracts.parameters import SEQUENCED_LOGS
from chainkit.council.proposal import read_proposal, write_proposal_file
from support.chains.chain import dev_address
from support.command_line import Outcome, run
from support.council.desk import PAYER, REASON, Desk

SUCCESSOR = dev_address(9)


def propose(desk: Desk, *arguments: object) -> Outcome:
    place = ("--propose", desk.folder / "proposal.json", "--reason", REASON)
    return run("contracts", *arguments, *place, *desk.rpc, *desk.files)


def sign_and_execute(desk: Desk) -> Outcome:
    path = desk.folder / "proposal.json"
    proposal = desk.signed(read_proposal(path, desk.record, desk.council), (0, 1))
    write_proposal_file(path, proposal, is_new=False)
    payer = ("--broadcast", *desk.keystore(PAYER))
    return run("council", "execute", path, *desk.rpc, *desk.files, *payer)


def log_addresses(desk: Desk) -> dict[str, bytes]:
    return {log.name: log.address for log in desk.record.sequenced_logs}


def test_pause__both_logs_in_one_proposal__pauses_both(desk: Desk) -> None:
    proposed = propose(desk, "pause", "all")
    executed = sign_and_execute(desk)

    assert proposed.code == 0, proposed.err
    assert executed.code == 0, executed.err
    for name, address in log_addresses(desk).items():
        assert desk.state().ask(name, address, "paused") is True


@pytest.mark.parametrize(
    "arguments",
    [
        ["grant-admin", "all", SUCCESSOR],
        ["set-bounds", "all", "--minimum", 3, "--maximum", 4],
    ],
    ids=["grant-admin", "set-bounds"],
)
def test_change__both_logs_in_one_proposal__is_read_back(
    desk: Desk, arguments: list[object]
) -> None:
    proposed = propose(desk, *arguments, "--json")
    executed = sign_and_execute(desk)

    assert executed.code == 0, executed.err
    assert len(proposed.content["difference"]) == len(SEQUENCED_LOGS)
    again = run("contracts", *arguments, *desk.rpc, *desk.files[:2])
    assert "one that changes something" in again.err


def test_propose__another_administrator_was_named_since__is_in_the_way(desk: Desk) -> None:
    assert propose(desk, "grant-admin", "GroupMessages", SUCCESSOR).code == 0
    path = desk.folder / "proposal.json"
    (desk.folder / "proposal.json").rename(desk.folder / "first.json")
    assert propose(desk, "grant-admin", "GroupMessages", dev_address(8)).code == 0
    assert sign_and_execute(desk).code == 0
    (desk.folder / "first.json").replace(path)

    refused = sign_and_execute(desk)

    assert refused.code == 2
    assert "changed since it was drafted: GroupMessages administrators" in refused.err


def test_propose__by_a_safe_that_is_no_administrator__writes_nothing(desk: Desk) -> None:
    assert propose(desk, "revoke-admin", "GroupMessages", safe_of(desk)).code == 0
    assert sign_and_execute(desk).code == 0
    (desk.folder / "proposal.json").unlink()

    refused = propose(desk, "pause", "GroupMessages")

    assert refused.code == 2
    administrator = f"an administrator of GroupMessages ({dev_address(1)})"
    assert f"expected {administrator}, got {safe_of(desk)}, which has no such role" in refused.err
    assert not (desk.folder / "proposal.json").exists()


def safe_of(desk: Desk) -> str:
    return desk.council.address
