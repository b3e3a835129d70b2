"""`contracts verify` after a hand-over: the council's file says who holds the contracts."""

from __future__ import annotations

import pytest

from chainkit.contracts.parameters import SEQUENCED_LOGS
from chainkit.contracts.state import DEFAULT_ADMIN_ROLE
from localnet.accounts import COUNCIL
from support.chains.chain import dev_address
from support.command_line import Outcome, run
from support.council.offline import in_one_line
from support.council.scene import CouncilScene, send_as_safe
from support.differences import differences

LOGS = [f"administrators of {name}" for name in SEQUENCED_LOGS]


def verify(scene: CouncilScene, *arguments: object) -> Outcome:
    return run("contracts", "verify", *scene.rpc, *scene.files, *arguments)


def differing(outcome: Outcome) -> list[str]:
    return [each["subject"] for each in differences(outcome)]


def revoke_the_former_administrator(scene: CouncilScene) -> None:
    for name in SEQUENCED_LOGS:
        call = scene.call("revokeRole", DEFAULT_ADMIN_ROLE, dev_address(COUNCIL), contract=name)
        send_as_safe(scene, call.target, call.calldata)


def test_verify__handed_over_but_the_former_one_still_administers__names_both_logs(
    scene: CouncilScene,
) -> None:
    outcome = verify(scene, "--json")

    assert outcome.code == 1
    assert differing(outcome) == LOGS


def test_verify__handed_over__is_as_the_council_file_wants_it(scene: CouncilScene) -> None:
    revoke_the_former_administrator(scene)
    bounds = scene.call("setPayloadBounds", 1, 60_000, contract="GroupMessages")
    send_as_safe(scene, bounds.target, bounds.calldata)

    with_council = verify(scene)
    by_record = run("contracts", "verify", *scene.rpc, *scene.files[:2], "--json")

    assert with_council.code == 0, with_council.out
    out = in_one_line(with_council.out)
    assert f"as expected owner of NodeRegistry: {scene.council.address}" in out
    assert f"as expected kind of registry owner {scene.council.address}: contract" in out
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
    scene: CouncilScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    revoke_the_former_administrator(scene)
    place = (*scene.rpc, *scene.files[:2])
    monkeypatch.setenv("CHAINKIT_COUNCIL", scene.files[-1])

    assert run("contracts", "verify", *place).code == 0
    parameters = ("--parameters", "deployments/parameters/local.json")
    assert run("contracts", "verify", *place, *parameters).code == 1
    both = run("contracts", "verify", *place, *parameters, "--council", scene.files[-1])
    assert both.code == 2
    assert "expected one of --parameters and --council, got both" in both.err
