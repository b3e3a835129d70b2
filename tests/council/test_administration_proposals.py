"""A Safe administers the two logs: a change is proposed, signed, executed and read back."""

from __future__ import annotations

import pytest

from chainkit.contracts.parameters import SEQUENCED_LOGS
from chainkit.council.proposal import read_proposal, write_proposal_file
from support.chains.chain import dev_address
from support.command_line import Outcome, run
from support.council.scene import PAYER, REASON, CouncilScene

SUCCESSOR = dev_address(9)


def propose(scene: CouncilScene, *arguments: object) -> Outcome:
    place = ("--propose", scene.folder / "proposal.json", "--reason", REASON)
    return run("contracts", *arguments, *place, *scene.rpc, *scene.files)


def sign_and_execute(scene: CouncilScene) -> Outcome:
    path = scene.folder / "proposal.json"
    proposal = scene.signed(read_proposal(path, scene.record, scene.council), (0, 1))
    write_proposal_file(path, proposal, is_new=False)
    payer = ("--broadcast", *scene.keystore(PAYER))
    return run("council", "execute", path, *scene.rpc, *scene.files, *payer)


def log_addresses(scene: CouncilScene) -> dict[str, bytes]:
    return {log.name: log.address for log in scene.record.sequenced_logs}


def test_pause__both_logs_in_one_proposal__pauses_both(scene: CouncilScene) -> None:
    proposed = propose(scene, "pause", "all")
    executed = sign_and_execute(scene)

    assert proposed.code == 0, proposed.err
    assert executed.code == 0, executed.err
    for name, address in log_addresses(scene).items():
        assert scene.state().ask(name, address, "paused") is True


@pytest.mark.parametrize(
    "arguments",
    [
        ["grant-admin", "all", SUCCESSOR],
        ["set-bounds", "all", "--minimum", 3, "--maximum", 4],
    ],
    ids=["grant-admin", "set-bounds"],
)
def test_change__both_logs_in_one_proposal__is_read_back(
    scene: CouncilScene, arguments: list[object]
) -> None:
    proposed = propose(scene, *arguments, "--json")
    executed = sign_and_execute(scene)

    assert executed.code == 0, executed.err
    assert len(proposed.content["difference"]) == len(SEQUENCED_LOGS)
    again = run("contracts", *arguments, *scene.rpc, *scene.files[:2])
    assert "one that changes something" in again.err


def test_propose__another_administrator_was_named_since__is_in_the_way(scene: CouncilScene) -> None:
    assert propose(scene, "grant-admin", "GroupMessages", SUCCESSOR).code == 0
    path = scene.folder / "proposal.json"
    (scene.folder / "proposal.json").rename(scene.folder / "first.json")
    assert propose(scene, "grant-admin", "GroupMessages", dev_address(8)).code == 0
    assert sign_and_execute(scene).code == 0
    (scene.folder / "first.json").replace(path)

    refused = sign_and_execute(scene)

    assert refused.code == 2
    assert "changed since it was drafted: GroupMessages administrators" in refused.err


def test_propose__by_a_safe_that_is_no_administrator__writes_nothing(scene: CouncilScene) -> None:
    assert propose(scene, "revoke-admin", "GroupMessages", safe_of(scene)).code == 0
    assert sign_and_execute(scene).code == 0
    (scene.folder / "proposal.json").unlink()

    refused = propose(scene, "pause", "GroupMessages")

    assert refused.code == 2
    administrator = f"an administrator of GroupMessages ({dev_address(1)})"
    assert f"expected {administrator}, got {safe_of(scene)}, which has no such role" in refused.err
    assert not (scene.folder / "proposal.json").exists()


def safe_of(scene: CouncilScene) -> str:
    return scene.council.address
