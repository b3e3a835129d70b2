"""An upgrade by a Safe: the code is deployed by anybody, and the owners sign the step to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from eth_utils.address import to_checksum_address

from chainkit.contracts import artifacts
from chainkit.contracts.artifacts import Release, masked, releases
from chainkit.contracts.state import DEFAULT_ADMIN_ROLE, IMPLEMENTATION_SLOT
from chainkit.contracts.verification import implementation_of
from chainkit.council.proposal import Proposal, read_proposal, write_proposal_file
from chainkit.council.upgrade.upgrade import deploy_implementation
from chainkit.signatures import keccak256
from support.chains.chain import LocalChain, dev_address
from support.chains.tampering import ADMINISTRATOR, call_as, change_last_byte, write_slot
from support.command_line import Outcome, run
from support.council.scene import PAYER, REASON, CouncilScene, safe_scene
from support.council.signers import dev_signer
from support.council.upgrades import NAME, note_release


@pytest.fixture
def older_release(local_chain: LocalChain, monkeypatch: pytest.MonkeyPatch) -> Release:
    """The proxy runs code that is not this package's, and that release 0.0.1 knows."""
    code = change_last_byte(local_chain, implementation_of(local_chain.record.group_messages))
    own = releases(NAME)[0]
    hash_ = keccak256(masked(code, own.immutables))
    return note_release(monkeypatch, replace(own, version="0.0.1", masked_code_hash=hash_))


@pytest.fixture
def scene(
    local_chain: LocalChain, tmp_path: Path, older_release: Release
) -> Iterator[CouncilScene]:
    with safe_scene(local_chain, tmp_path) as scene:
        yield scene


@pytest.fixture
def implementation(scene: CouncilScene) -> str:
    """Where anybody has deployed this package's code."""
    new = deploy_implementation(scene.sending, scene.record, NAME, dev_signer(PAYER))
    return to_checksum_address(new.address)


def upgrade(scene: CouncilScene, *arguments: object) -> Outcome:
    return run("contracts", "upgrade", NAME, *arguments, *scene.rpc, *scene.files)


def read(scene: CouncilScene) -> Proposal:
    return read_proposal(scene.folder / "upgrade.json", scene.record, scene.council)


def joined(text: str) -> str:
    """A command's output, without its line breaks."""
    return " ".join(text.split())


def propose(scene: CouncilScene, implementation: str, *arguments: object) -> Outcome:
    path = scene.folder / "upgrade.json"
    place = ("--implementation", implementation, "--propose", path, "--reason", REASON)
    return upgrade(scene, *place, *arguments)


def test_propose__then_sign_and_execute__runs_this_packages_code(
    scene: CouncilScene, implementation: str
) -> None:
    proposed = propose(scene, implementation)
    assert proposed.code == 0, proposed.err
    assert "storage         the same in every namespace" in proposed.out
    path = scene.folder / "upgrade.json"

    shown = run("council", "show", path, *scene.files)

    assert f"-> {implementation} (not in your council file)" in joined(shown.out)
    assert f"nobody looked at the code at {implementation}" in joined(shown.out)
    asked = run("council", "status", path, *scene.rpc, *scene.files)
    release = releases(NAME)[0].version
    assert f"at {implementation} is {NAME} of release {release}" in joined(asked.out)
    assert "GroupMessages.upgradeToAndCall" in shown.out
    proposal = scene.signed(read(scene), (0, 1))
    write_proposal_file(path, proposal, is_new=False)
    payer = ("--broadcast", *scene.keystore(PAYER))
    executed = run("council", "execute", path, *scene.rpc, *scene.files, *payer)
    assert executed.code == 0, executed.err
    runs = scene.state().implementation(scene.record.group_messages.address)
    assert to_checksum_address(runs) == implementation


def test_dry_run__administrator_is_a_safe__says_what_comes_next(
    scene: CouncilScene, implementation: str
) -> None:
    proxy, account = scene.record.group_messages.address, dev_address(ADMINISTRATOR)
    role = (DEFAULT_ADMIN_ROLE, account)
    call_as(scene.chain, ADMINISTRATOR, NAME, proxy, "renounceRole", *role)

    first, second = upgrade(scene), upgrade(scene, "--implementation", implementation)

    assert first.out.endswith("a contract: first --implementation-only --broadcast\n")
    assert second.out.endswith("a contract: add --propose FILE to draft it\n")
    for outcome in (first, second):
        assert outcome.code == 0, outcome.err
        assert max(map(len, outcome.out.splitlines())) <= 100


def test_propose__proxy_was_upgraded_since__is_in_the_way(
    scene: CouncilScene, implementation: str
) -> None:
    assert propose(scene, implementation).code == 0
    proposal = scene.signed(read(scene), (0, 1))
    sibling = int.from_bytes(implementation_of(scene.record.identity_updates), "big")
    write_slot(scene.chain, scene.record.group_messages.address, IMPLEMENTATION_SLOT, sibling)

    obstacles = scene.standing(proposal).obstacles

    assert any("changed since it was drafted: GroupMessages" in words for words in obstacles)


def test_propose__for_a_script__is_the_plan_and_the_file(
    scene: CouncilScene, implementation: str
) -> None:
    content = propose(scene, implementation, "--json").content

    assert (content["sent"], content["refused"]) == (False, None)
    assert content["proposal"] == str(scene.folder / "upgrade.json")
    assert json.loads((scene.folder / "upgrade.json").read_text())


def test_propose__code_of_no_known_release__is_refused_unless_accepted(
    scene: CouncilScene, implementation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "_past_releases", lambda name: ())

    refused = propose(scene, implementation)
    accepted = propose(scene, implementation, "--accept-unknown")
    shown = run("council", "show", scene.folder / "upgrade.json", *scene.files)

    assert (refused.code, accepted.code) == (1, 0), accepted.err
    assert "the deployed code is no known release" in joined(refused.out)
    assert f"(no known release) -> {implementation}" in joined(shown.out)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--propose", "x.json"], "--propose needs --implementation ADDRESS"),
        (["--propose", "x.json", "--implementation-only"], "--implementation-only deploys"),
        (["--propose", "x.json", "--broadcast", "--account", "a"], "give one of them"),
    ],
)
def test_propose__with_options_that_do_not_go_together__is_refused(
    scene: CouncilScene, arguments: list[str], words: str
) -> None:
    outcome = upgrade(scene, *arguments)

    assert outcome.code == 2
    assert words in joined(outcome.err)


def test_propose__other_code__is_refused(scene: CouncilScene) -> None:
    sibling = to_checksum_address(implementation_of(scene.record.identity_updates))

    outcome = propose(scene, sibling)

    assert outcome.code == 2
    assert "this package's GroupMessages" in outcome.err
    assert not (scene.folder / "upgrade.json").exists()
