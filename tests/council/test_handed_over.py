"""`contracts verify` after a hand-over: the council's file says who holds the contracts."""

from __future__ import annotations

import pytest

from chainkit.contracts.parameters import SEQUENCED_LOGS
from chainkit.contracts.state import DEFAULT_ADMIN_ROLE
from localnet.accounts import COUNCIL
from support.chains.chain import dev_address
from support.command_line import Outcome, run
from support.council.desk import Desk, send_as_safe
from support.council.offline import in_one_line
from support.differences import differences

LOGS = [f"administrators of {name}" for name in SEQUENCED_LOGS]


def verify(desk: Desk, *arguments: object) -> Outcome:
    return run("contracts", "verify", *desk.rpc, *desk.files, *arguments)


def differing(outcome: Outcome) -> list[str]:
    return [each["subject"] for each in differences(outcome)]


def revoke_the_former_administrator(desk: Desk) -> None:
    for name in SEQUENCED_LOGS:
        call = desk.call("revokeRole", DEFAULT_ADMIN_ROLE, dev_address(COUNCIL), contract=name)
        send_as_safe(desk, call.target, call.calldata)


def test_verify__handed_over_but_the_former_one_still_administers__names_both_logs(
    desk: Desk,
) -> None:
    outcome = verify(desk, "--json")

    assert outcome.code == 1
    assert differing(outcome) == LOGS


def test_verify__handed_over__is_as_the_council_file_wants_it(desk: Desk) -> None:
    revoke_the_former_administrator(desk)
    bounds = desk.call("setPayloadBounds", 1, 60_000, contract="GroupMessages")
    send_as_safe(desk, bounds.target, bounds.calldata)

    with_council = verify(desk)
    by_record = run("contracts", "verify", *desk.rpc, *desk.files[:2], "--json")

    assert with_council.code == 0, with_council.out
    out = in_one_line(with_council.out)
    assert f"as expected owner of NodeRegistry: {desk.council.address}" in out
    assert f"as expected kind of registry owner {desk.council.address}: contract" in out
    assert "not compared payload bounds of GroupMessages: 1 to 60000 bytes" in out
    # The record says what it was deployed with, which is past.
    assert by_record.code == 1
    assert differing(by_record) == [
        LOGS[0],
        "payload bounds of GroupMessages",
        LOGS[1],
        "owner of NodeRegistry",
    ]


def test_verify__council_file_in_the_environment__counts_unless_parameters_are_given(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    revoke_the_former_administrator(desk)
    place = (*desk.rpc, *desk.files[:2])
    monkeypatch.setenv("CHAINKIT_COUNCIL", desk.files[-1])

    assert run("contracts", "verify", *place).code == 0
    parameters = ("--parameters", "deployments/parameters/local.json")
    assert run("contracts", "verify", *place, *parameters).code == 1
    both = run("contracts", "verify", *place, *parameters, "--council", desk.files[-1])
    assert both.code == 2
    assert "expected one of --parameters and --council, got both" in both.err
