"""The registry of a Safe: what its commands propose is signed, executed and seen on the chain."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chainkit.council.proposal import read_proposal
from chainkit.council.proposal.execution import execute, prepare, sign_execution
from chainkit.council.signing import KeySigner
from support.chains.chain import LocalChain, dev_address, dev_secret
from support.command_line import Outcome
from support.council.registry_commands import (
    KEYS,
    OPERATOR,
    OTHER_OPERATOR,
    URL,
    add_arguments,
    registry_command,
    standing,
)
from support.council.scene import PAYER, CouncilScene, safe_scene


@pytest.fixture
def scene(local_chain: LocalChain, tmp_path: Path) -> Iterator[CouncilScene]:
    local_chain.add_node(OPERATOR, KEYS[0], URL)
    with safe_scene(local_chain, tmp_path) as scene:
        yield scene


def propose(scene: CouncilScene, *arguments: object) -> Outcome:
    path = scene.folder / "proposal.json"
    path.unlink(missing_ok=True)
    terms = ["--council", scene.folder / "council.json", "--reason", "a trial"]
    return registry_command(scene.chain, *arguments, "--propose", path, *terms)


def execute_proposal(scene: CouncilScene) -> None:
    proposal = read_proposal(scene.folder / "proposal.json", scene.record, scene.council)
    signed = scene.signed(proposal, [0, 1])
    execution = prepare(signed, scene.standing(signed), dev_address(PAYER))
    payer = KeySigner("key", dev_secret(PAYER))
    assert execute(execution, scene.sending, sign_execution(execution, scene.sending, payer))


def desired_file(folder: Path) -> Path:
    path = folder / "nodes.yaml"
    nodes = [
        (KEYS[0], OTHER_OPERATOR, URL, "disabled"),
        (KEYS[1], OPERATOR, "https://b", "enabled"),
    ]
    path.write_text(
        "nodes:\n"
        + "".join(
            f"  - key: 0x{key.hex()}\n    holder: {holder}\n    http_address: {url}\n"
            f"    status: {status}\n"
            for key, holder, url, status in nodes
        )
    )
    return path


def test_propose_plan__signed_and_executed__makes_the_chain_what_the_file_says(
    scene: CouncilScene,
) -> None:
    path = desired_file(scene.folder)
    before = standing(scene.chain)

    proposed = propose(scene, "plan", path, "--no-check-url")

    assert proposed.code == 0, proposed.err
    assert standing(scene.chain) == before
    assert registry_command(scene.chain, "diff", path).code == 1
    execute_proposal(scene)
    assert registry_command(scene.chain, "diff", path).code == 0


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (add_arguments(KEYS[1], "https://b.example"), "200  enabled"),
        (["disable", 100], "100  disabled"),
    ],
    ids=["add", "disable"],
)
def test_propose__one_call_signed_and_executed__is_seen_in_the_registry(
    scene: CouncilScene, arguments: list[object], shown: str
) -> None:
    proposed = propose(scene, *arguments)
    assert proposed.code == 0, proposed.err

    execute_proposal(scene)

    assert shown in registry_command(scene.chain, "list").out
    account = registry_command(scene.chain, "history", "--json").content["events"][-1]
    assert account["event"] == "NodeUpdated"
    safe = scene.council.address
    assert f"by              {safe}" in registry_command(scene.chain, "history").out


def test_propose_hand_over__offered_by_a_safe__is_accepted_by_an_account(
    scene: CouncilScene, tmp_path: Path
) -> None:
    assert propose(scene, "hand-over", "--to", dev_address(7)).code == 0
    execute_proposal(scene)

    accepted = registry_command(scene.chain, "accept", "--broadcast", *scene.keystore(7))

    assert accepted.code == 0, accepted.err
    assert registry_command(scene.chain, "list", "--json").content["owner"] == dev_address(7)


def test_propose_accept__safe_is_the_pending_owner__takes_the_registry_over(
    scene: CouncilScene, tmp_path: Path
) -> None:
    propose(scene, "hand-over", "--to", dev_address(7))
    execute_proposal(scene)
    seven = ["--broadcast", *scene.keystore(7)]
    registry_command(scene.chain, "accept", *seven)
    back = registry_command(scene.chain, "hand-over", "--to", scene.council.address, *seven)
    assert back.code == 0, back.err

    proposed = propose(scene, "accept")

    assert proposed.code == 0, proposed.err
    assert "NodeRegistry.acceptOwnership" in proposed.out
    execute_proposal(scene)
    owner = registry_command(scene.chain, "list", "--json").content["owner"]
    assert owner == scene.council.address


def test_propose_set_url__safe_holds_the_node__changes_its_url(scene: CouncilScene) -> None:
    for arguments in (["transfer", 100, "--holder", scene.council.address], ["open-updates"]):
        assert propose(scene, *arguments).code == 0
        execute_proposal(scene)

    proposed = propose(scene, "set-url", 100, "--http-address", f"{URL}:5051", "--no-check-url")

    assert proposed.code == 0, proposed.err
    assert "node 100 http address: as below -> the httpAddress of the call" in proposed.out
    execute_proposal(scene)
    shown = registry_command(scene.chain, "show", 100, "--json").content
    assert shown["http_address"] == f"{URL}:5051"
