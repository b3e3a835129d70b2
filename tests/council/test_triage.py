"""`chainkit council triage` with real reports on a real chain, down to the node's disabling."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from chainkit.chain import parse_log
from chainkit.council.proposal import Proposal, read_proposal
from chainkit.council.proposal.execution import execute, prepare, sign_execution
from chainkit.council.signing import KeySigner
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.envelope import sign_originator_envelope, unsigned_originator_envelope
from chainkit.protocol.events import decode_payload_event
from chainkit.protocol.reports import sign_inconsistency_report
from chainkit.signatures import SigningKey, keccak256
from chainkit.types import message_sent
from support.audit.identities import key_of
from support.chains.chain import LocalChain, dev_address, dev_secret
from support.command_line import Outcome, run
from support.council.scene import PAYER, CouncilScene, safe_scene, send_as_safe
from support.council.triage import AUDITOR, OTHER_AUDITOR, liveness_report, safety_report
from support.payloads import commit

NODE_IDS = (100, 200, 300, 400, 500)
GROUP = b"\x01" * 32


@pytest.fixture
def scene(local_chain: LocalChain, tmp_path: Path) -> Iterator[CouncilScene]:
    """Five nodes of five operators, and the council's Safe."""
    for number, node_id in enumerate(NODE_IDS):
        added = local_chain.add_node(
            dev_address(2 + number), key_of(node_id).public_key, f"https://{node_id}.example"
        )
        assert added == node_id
    with safe_scene(local_chain, tmp_path) as scene:
        yield scene


@pytest.fixture
def heap(tmp_path: Path) -> Path:
    path = tmp_path / "evidence"
    path.mkdir()
    return path


def served(chain: LocalChain, node_id: int, transaction: bytes, seed: int | None = None) -> bytes:
    """A node's envelope for a transaction; with a ``seed``, of another payload than the chain's."""
    receipt = chain.endpoint.receipt(transaction)
    assert receipt is not None
    event = decode_payload_event(parse_log(receipt["logs"][0]))
    if seed is not None:
        event = event._replace(payload=commit(GROUP, seed=seed))
    header = chain.endpoint.header(int(receipt["blockNumber"], 16))
    unsigned = unsigned_originator_envelope(event, header.timestamp)
    return sign_originator_envelope(unsigned, transaction, key_of(node_id))


def report(node_id: int, envelope: bytes, key: SigningKey = AUDITOR) -> bytes:
    return sign_inconsistency_report(node_id, [envelope], 1, key)


def tampering(scene: CouncilScene, node_id: int, seed: int = 1) -> bytes:
    transaction = scene.chain.publish_message(GROUP, commit(GROUP))
    return served(scene.chain, node_id, transaction, seed)


def put(heap: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        path = heap / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)


def triage(scene: CouncilScene, heap: Path, *options: object) -> Outcome:
    outcome = run("council", "triage", heap, *scene.rpc, *scene.files[:2], *options)
    if "--json" not in options:
        # The folder of a test has a longer name than one line holds.
        lines = [line.replace(str(scene.folder), "") for line in outcome.out.splitlines()]
        assert max(map(len, [*lines, ""])) <= 100
    return outcome


def propose(scene: CouncilScene, heap: Path, *options: object) -> tuple[Outcome, Path]:
    path = scene.folder / "disable.json"
    return triage(scene, heap, "--propose", path, *scene.files[2:], *options), path


def opened(scene: CouncilScene, path: Path) -> Proposal:
    return read_proposal(path, scene.record, scene.council)


def carry_out(scene: CouncilScene, proposal: Proposal) -> None:
    """Let two of three owners sign, and anybody execute."""
    signed = scene.signed(proposal, [0, 2])
    execution = prepare(signed, scene.standing(signed), dev_address(PAYER))
    payer = KeySigner("key", dev_secret(PAYER))
    execute(execution, scene.sending, sign_execution(execution, scene.sending, payer))


def disabled(scene: CouncilScene) -> list[int]:
    nodes = scene.registry().nodes(scene.endpoint.head().reference)
    return [node.node_id for node in nodes if not node.is_enabled]


def digests(heap: Path, *names: str) -> list[tuple[str, str]]:
    return [
        (Path(name).name, hashlib.sha256((heap / name).read_bytes()).hexdigest()) for name in names
    ]


def test_triage__safety_proof__becomes_a_proposal_that_disables_the_node(
    scene: CouncilScene, heap: Path
) -> None:
    envelope = tampering(scene, 300)
    put(
        heap,
        {
            "first.pb": report(300, envelope),
            "more/again.bin": report(300, envelope, OTHER_AUDITOR),
            "more/copy.pb": report(300, envelope),
        },
    )
    assert triage(scene, heap).code == 1

    outcome, path = propose(scene, heap)

    assert outcome.code == 0, outcome.err
    assert "   300  enabled   critical       1        0          0  disable: one" in outcome.out
    proposal = opened(scene, path)
    grounds = proposal.grounds
    assert grounds.reason == "node 300: BLOCKCHAIN_INCONSISTENCY, proved"
    assert [(each.name, each.sha256) for each in grounds.evidence] == digests(heap, "first.pb")
    assert grounds.difference == ("node 300 status: enabled -> disabled",)
    carry_out(scene, proposal)
    assert disabled(scene) == [300]

    path.unlink()
    again, path = propose(scene, heap)
    assert again.code == 0, again.err
    assert "disabled already (one safety proof)" in again.out
    assert "nothing to propose: no file was written" in again.out
    assert not path.exists()


def test_triage__liveness__is_proposed_once_enough_peers_tell(
    scene: CouncilScene, heap: Path
) -> None:
    for peer in (100, 200):
        for number in range(3):
            data = liveness_report(400, key_of(peer), time_ns=number)
            put(heap, {f"{peer}-{number}.pb": data})
    waiting, path = propose(scene, heap)
    assert (waiting.code, path.exists()) == (0, False)
    assert "wait: 2 of 3 reporters" in waiting.out

    put(heap, {"500.pb": liveness_report(400, key_of(500), Misbehavior.SLOW_NODE)})
    outcome, path = propose(scene, heap, "--reason", "it is down", "--json")

    assert outcome.code == 0, outcome.err
    assert outcome.content["proposal"] == str(path)
    assert outcome.content["nodes"][0]["reporters"] == 3
    proposal = opened(scene, path)
    assert proposal.grounds.reason == "it is down"
    assert [(each.name, each.sha256) for each in proposal.grounds.evidence] == digests(
        heap, "100-0.pb", "200-0.pb", "500.pb"
    )
    carry_out(scene, proposal)
    assert disabled(scene) == [400]


def test_triage__several_nodes__are_disabled_by_one_proposal(
    scene: CouncilScene, heap: Path
) -> None:
    off = scene.call("updateHealth", 500, False)
    send_as_safe(scene, off.target, off.calldata)
    for node_id in (100, 300, 500):
        put(heap, {f"{node_id}.pb": report(node_id, tampering(scene, node_id))})

    outcome, path = propose(scene, heap)

    assert outcome.code == 0, outcome.err
    assert "disable         node 100, node 300\n" in outcome.out
    proposal = opened(scene, path)
    assert [call.arguments["tokenId"] for call in proposal.calls] == [100, 300]
    assert len(proposal.grounds.evidence) == 2
    carry_out(scene, proposal)
    assert disabled(scene) == [100, 300, 500]


def test_triage__attacks_and_honest_mistakes__disable_nobody(
    scene: CouncilScene, heap: Path
) -> None:
    transaction = scene.chain.publish_message(GROUP, commit(GROUP))
    invented = sign_originator_envelope(
        unsigned_originator_envelope(message_sent(GROUP, commit(GROUP), 1), 1_700_000_000),
        keccak256(b"invented"),
        key_of(300),
    )
    sybils = [SigningKey(keccak256(b"sybil %d" % number)) for number in range(4)]
    put(
        heap,
        {
            "honest.pb": report(300, served(scene.chain, 300, transaction)),
            "invented.pb": report(300, invented),
            "of-another.pb": report(300, served(scene.chain, 200, transaction, seed=1)),
            "itself.pb": liveness_report(300, key_of(300), time_ns=7),
            "unregistered.pb": report(900, tampering(scene, 300)),
            **{
                f"chain-{peer}.pb": safety_report(
                    300, key_of(peer), Misbehavior.OUT_OF_ORDER, invented, is_from_node=True
                )
                for peer in (100, 200, 400, 500)
            },
            "garbage.bin": b"\xff\x1b[2J",
            **{f"one-{n}.pb": liveness_report(300, key_of(100), time_ns=n) for n in range(10)},
            **{
                f"sybil-{number}.pb": liveness_report(300, key) for number, key in enumerate(sybils)
            },
            **{
                f"client-{node_id}.pb": liveness_report(300, key_of(node_id), is_from_node=False)
                for node_id in NODE_IDS
            },
        },
    )

    content = triage(scene, heap, "--json").content
    outcome, path = propose(scene, heap)

    assert (outcome.code, path.exists()) == (0, False)
    assert content["disable"] == []
    (node,) = content["nodes"]
    assert (node["node_id"], node["proved"]) == (300, 0)
    told = {each["path"]: each["reason"] for each in content["not_counted"]}
    assert told["honest.pb"].startswith("refuted: what the node signed is byte for byte")
    assert "absence is not proof" in told["invented.pb"]
    assert "the accused node did not sign it" in told["of-another.pb"]
    assert "the accused reports itself" in told["itself.pb"]
    assert told["unregistered.pb"].startswith("not proved")
    assert told["chain-100.pb"].startswith("not proved: a payload of the chain")
    assert "is no registered node" in told["sybil-0.pb"]
    assert "the accused reports itself" in told["client-300.pb"]
    assert "only stored it for a client" in told["client-100.pb"]
    assert len(told) == 6 + 4 + len(sybils) + len(NODE_IDS)


def test_triage__endpoint_of_another_chain__could_not_be_checked(
    scene: CouncilScene, heap: Path, tmp_path: Path
) -> None:
    put(heap, {"first.pb": report(300, tampering(scene, 300))})
    record = tmp_path / "other.json"
    text = scene.chain.record_path.read_text()
    record.write_text(text.replace("0x" + scene.record.genesis_hash.hex(), "0x" + "11" * 32))

    outcome = run("council", "triage", heap, *scene.rpc, "--deployment", record)

    assert outcome.code == 2
    assert not outcome.out
