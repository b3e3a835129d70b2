"""Cautions stand above all else, wherever a proposal is drafted, read or executed."""

from __future__ import annotations

from pathlib import Path

from localnet.accounts import COUNCIL
from support.audit.audit_exports import key_of
from support.chains.chain import LocalChain, dev_address
from support.command_line import Outcome, run
from support.council.fake_registry import node_key
from support.council.offline import in_one_line
from support.council.proposal_commands import execute, proposal_path, propose, sign, with_node
from support.council.registry_commands import KEYS, add_arguments, registry_command
from support.council.scene import REASON, CouncilScene
from support.council.triage import liveness_report
from support.solidity import encode_call

LAST = "caution         no node is enabled any more once this is done"
STRANGER = dev_address(2)


def head(outcome: Outcome, code: int = 0) -> list[str]:
    """The lines above the account, or the call: nothing but cautions."""
    assert outcome.code == code, outcome.err
    lines = outcome.out.splitlines()
    end = next(number for number, line in enumerate(lines) if line.startswith(("account", "call")))
    return lines[:end]


def test_disable__last_enabled_node__is_a_caution_until_another_is_there(
    scene: CouncilScene,
) -> None:
    drafted = propose(scene)
    status = run("council", "status", proposal_path(scene), *scene.rpc, *scene.files)
    sign(scene, 0)
    sign(scene, 1)
    dry = execute(scene)
    directly = run("registry", "disable", 100, *scene.rpc, "--deployment", scene.chain.record_path)

    for outcome, code in ((drafted, 0), (status, 1), (dry, 0), (directly, 0)):
        assert head(outcome, code) == [LAST]


def test_disable__another_node_stays_enabled__is_no_caution(
    local_chain: LocalChain,
) -> None:
    with_node(local_chain)
    local_chain.add_node(dev_address(9), node_key(2).public_key, "https://other.example")
    command = ("--rpc", local_chain.url, "--deployment", local_chain.record_path)

    assert head(run("registry", "disable", 100, *command)) == []


def test_add__second_key_at_the_url_of_an_enabled_node__is_a_caution(
    local_chain: LocalChain,
) -> None:
    with_node(local_chain)

    def shown(url: str) -> str:
        outcome = registry_command(local_chain, *add_arguments(KEYS[2], url))
        return in_one_line(" ".join(head(outcome)))

    caution = "the new node is at the URL of node 100, which is enabled"
    assert caution in shown("https://node.example")
    assert caution in shown("https://NODE.example:443/")
    assert shown("https://node.example:9") == ""


def test_enable__at_the_url_of_an_enabled_node__is_a_caution_unless_that_is_disabled(
    local_chain: LocalChain,
) -> None:
    with_node(local_chain)
    local_chain.add_node(dev_address(9), node_key(2).public_key, "https://node.example")
    registry = local_chain.record.node_registry.address

    def disabled(node_id: int) -> None:
        data = encode_call("updateHealth(uint256,bool)", node_id, False)
        local_chain.send(registry, data, COUNCIL)

    disabled(200)
    beside = in_one_line(" ".join(head(registry_command(local_chain, "enable", 200))))
    disabled(100)
    in_its_place = head(registry_command(local_chain, "enable", 200))

    assert "node 200 is at the URL of node 100, which is enabled" in beside
    assert in_its_place == []


def test_propose__evidence_against_another_node__is_a_caution(
    scene: CouncilScene, tmp_path: Path
) -> None:
    report = tmp_path / "report.pb"
    report.write_bytes(liveness_report(300, key_of(100)))
    place = ("--propose", proposal_path(scene), "--reason", REASON, "--evidence", report)

    outcome = run("registry", "disable", 100, *place, *scene.rpc, *scene.files)

    shown = in_one_line(" ".join(head(outcome)))
    assert 'evidence "report.pb" accuses node 300, which no call disables' in shown
    assert 'evidence "report.pb" is not proved here: the chain cannot show' in shown


def test_grant__account_that_the_council_file_does_not_name__is_a_caution_offline_too(
    scene: CouncilScene,
) -> None:
    place = ("--propose", proposal_path(scene), "--reason", REASON, *scene.rpc, *scene.files)
    drafted = run("contracts", "grant-admin", "GroupMessages", STRANGER, *place)
    shown = run("council", "show", proposal_path(scene), *scene.files)
    as_json = run("council", "show", proposal_path(scene), *scene.files, "--json").content

    words = f"new administrator of GroupMessages {STRANGER} is not in your council file"
    assert words in in_one_line(" ".join(head(drafted)))
    assert words in in_one_line(" ".join(head(shown)))
    assert as_json["cautions"] == [words]


def test_typed_address__without_a_checksum__is_a_caution(scene: CouncilScene) -> None:
    calls = f"- NodeRegistry.transferOwnership: {{newOwner: '{STRANGER.lower()}'}}\n"
    record = ("--deployment", scene.chain.record_path, *scene.rpc)
    words = "has no checksum: compare each of its digits"

    in_a_file = propose(scene, calls)
    lower = run("registry", "hand-over", "--to", STRANGER.lower(), *record)
    upper = run("registry", "hand-over", "--to", "0x" + STRANGER[2:].upper(), *record)
    right = run("registry", "hand-over", "--to", STRANGER, *record)

    assert f"{STRANGER.lower()} {words}" in in_one_line(in_a_file.err)
    assert f"{STRANGER.lower()} {words}" in in_one_line(lower.err)
    assert f"0x{STRANGER[2:].upper()} {words}" in in_one_line(upper.err)
    assert words not in right.err
