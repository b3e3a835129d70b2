"""`chainkit council verify` against real transactions, and after real reorgs."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from chainkit.chain import parse_log
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.envelope import sign_originator_envelope, unsigned_originator_envelope
from chainkit.protocol.events import decode_payload_event
from chainkit.protocol.reports import sign_inconsistency_report
from chainkit.signatures import SigningKey, keccak256
from chainkit.types import message_sent
from support.chains.chain import LocalChain, dev_address
from support.command_line import Outcome, run
from support.council.triage import liveness_report, safety_report
from support.originated import NOW_NS, signed
from support.payloads import commit, identity_update

NODES = [SigningKey(bytes(31) + bytes([number])) for number in (0x61, 0x62)]
AUDITOR = SigningKey(bytes(31) + b"\x55")
GROUP, INBOX = b"\x01" * 32, b"\x02" * 32

FORWARDER = bytes.fromhex(
    "602036038060206000376000600082600060006000355af150600060008260006000600035 5af15000".replace(
        " ", ""
    )
)
"""A wallet as code: calls the address in its first word with the rest of its calldata, twice."""


@pytest.fixture
def chain(local_chain: LocalChain) -> LocalChain:
    for number, key in enumerate(NODES):
        local_chain.add_node(dev_address(5), key.public_key, f"https://{number}.example")
    return local_chain


def served(
    chain: LocalChain,
    transaction: bytes,
    position: int = 0,
    payload: bytes | None = None,
    key: SigningKey = NODES[0],
) -> bytes:
    """An honest node's envelope for a transaction, or with ``payload`` a dishonest one's."""
    receipt = chain.endpoint.receipt(transaction)
    assert receipt is not None
    event = decode_payload_event(parse_log(receipt["logs"][position]))
    if payload is not None:
        event = event._replace(payload=payload)
    header = chain.endpoint.header(int(receipt["blockNumber"], 16))
    return sign_originator_envelope(
        unsigned_originator_envelope(event, header.timestamp), transaction, key
    )


def verify(chain: LocalChain, tmp_path: Path, *envelopes: bytes, node_id: int = 100) -> Outcome:
    path = tmp_path / "report.bin"
    path.write_bytes(sign_inconsistency_report(node_id, envelopes, 1, AUDITOR))
    options = ["--rpc", chain.url, "--deployment", chain.record_path]
    plain = run("council", "verify", path, *options)
    as_json = run("council", "verify", path, "--json", *options)
    assert plain.code == as_json.code, plain.err
    assert f"verdict         {as_json.content['verdict']}\n" in plain.out
    assert max(map(len, plain.out.splitlines())) <= 100
    return as_json


def test_verify__tampered_payload__is_proved(chain: LocalChain, tmp_path: Path) -> None:
    transaction = chain.publish_message(GROUP, commit(GROUP))

    outcome = verify(chain, tmp_path, served(chain, transaction, payload=commit(GROUP, seed=1)))

    assert (outcome.code, outcome.content["verdict"]) == (0, "proved")
    assert outcome.content["envelopes"][0]["transaction_hash"] == "0x" + transaction.hex()
    steps = {step["name"]: step["found"] for step in outcome.content["steps"]}
    assert steps["reporter"].startswith("not established: ")
    assert steps["accused"].startswith("node 100, enabled")


def test_verify__swapped_transaction_hash__is_proved(chain: LocalChain, tmp_path: Path) -> None:
    transaction = chain.publish_message(GROUP, commit(GROUP))
    other = chain.publish_identity_update(INBOX, identity_update(INBOX))
    receipt = chain.endpoint.receipt(transaction)
    assert receipt is not None
    event = decode_payload_event(parse_log(receipt["logs"][0]))
    header = chain.endpoint.header(int(receipt["blockNumber"], 16))
    unsigned = unsigned_originator_envelope(event, header.timestamp)

    swapped = sign_originator_envelope(unsigned, other, NODES[0])

    assert verify(chain, tmp_path, swapped).content["verdict"] == "proved"


def test_verify__honest_envelopes__are_refuted(chain: LocalChain, tmp_path: Path) -> None:
    message = chain.publish_message(GROUP, commit(GROUP))
    update = chain.publish_identity_update(INBOX, identity_update(INBOX))

    outcome = verify(chain, tmp_path, served(chain, message), served(chain, update))

    assert (outcome.code, outcome.content["verdict"]) == (1, "refuted")


def test_verify__other_nodes_tampering__is_not_proved_against_the_accused(
    chain: LocalChain, tmp_path: Path
) -> None:
    transaction = chain.publish_message(GROUP, commit(GROUP))
    tampered = served(chain, transaction, payload=commit(GROUP, seed=1), key=NODES[1])

    accused, guilty = (
        verify(chain, tmp_path, tampered),
        verify(chain, tmp_path, tampered, node_id=200),
    )

    assert (accused.code, accused.content["verdict"]) == (1, "not proved")
    assert guilty.content["verdict"] == "proved"


def test_verify__invented_transaction__is_not_proved(chain: LocalChain, tmp_path: Path) -> None:
    unsigned = unsigned_originator_envelope(message_sent(GROUP, commit(GROUP), 1), 1_700_000_000)
    invented = sign_originator_envelope(unsigned, keccak256(b"invented"), NODES[0])

    outcome = verify(chain, tmp_path, invented)

    assert (outcome.code, outcome.content["verdict"]) == (1, "not proved")
    assert "absence is not proof" in outcome.content["envelopes"][0]["reason"]


def test_verify__reorg_swaps_two_transactions__honest_is_not_proved_and_tampered_is(
    chain: LocalChain, tmp_path: Path
) -> None:
    first = chain.publish_message(GROUP, commit(GROUP), sender=2)
    second = chain.publish_message(GROUP, commit(GROUP, seed=2), sender=3)
    honest = served(chain, first)
    tampered = served(chain, first, payload=commit(GROUP, seed=1))
    raw_first, raw_second = chain.raw_transaction(first), chain.raw_transaction(second)

    chain.reorg(2, [(raw_second, 0), (raw_first, 1)])

    assert served(chain, first) != honest
    moved = verify(chain, tmp_path, honest)
    assert (moved.code, moved.content["verdict"]) == (1, "not proved")
    assert "a reorg may have moved it" in moved.content["envelopes"][0]["reason"]
    assert verify(chain, tmp_path, tampered).content["verdict"] == "proved"
    assert verify(chain, tmp_path, served(chain, first)).content["verdict"] == "refuted"


def test_verify__reorg_drops_the_transaction__is_not_proved(
    chain: LocalChain, tmp_path: Path
) -> None:
    transaction = chain.publish_message(GROUP, commit(GROUP))
    honest = served(chain, transaction)

    chain.reorg(1)

    outcome = verify(chain, tmp_path, honest)
    assert (outcome.code, outcome.content["verdict"]) == (1, "not proved")


def test_verify__direct_call_reverted__proves_only_another_payload(
    chain: LocalChain, tmp_path: Path
) -> None:
    chain.send(chain.record.group_messages.address, keccak256(b"pause()")[:4], sender=1)
    payload = commit(GROUP)
    transaction = chain.publish_message(GROUP, payload)
    receipt = chain.endpoint.receipt(transaction)
    assert receipt is not None and receipt["status"] == "0x0"

    def envelope(posted: bytes) -> bytes:
        unsigned = unsigned_originator_envelope(message_sent(GROUP, posted, 1), 1_700_000_000)
        return sign_originator_envelope(unsigned, transaction, NODES[0])

    assert verify(chain, tmp_path, envelope(payload)).content["verdict"] == "not proved"
    assert verify(chain, tmp_path, envelope(commit(GROUP, seed=1))).content["verdict"] == "proved"


def test_verify__wallet_posts_twice__matches_either_and_proves_nothing(
    chain: LocalChain, tmp_path: Path
) -> None:
    wallet = b"\xfa" * 20
    chain.anvil.request("anvil_setCode", "0x" + wallet.hex(), "0x" + FORWARDER.hex())
    direct = chain.publish_message(GROUP, commit(GROUP))
    inner = bytes.fromhex(
        chain.anvil.request("eth_getTransactionByHash", "0x" + direct.hex())["input"][2:]
    )
    target = bytes(12) + chain.record.group_messages.address
    transaction = chain.send(wallet, target + inner)

    for position in (0, 1):
        honest = served(chain, transaction, position)
        assert verify(chain, tmp_path, honest).content["verdict"] == "refuted"
    tampered = served(chain, transaction, payload=commit(GROUP, seed=1))
    outcome = verify(chain, tmp_path, tampered)
    assert outcome.content["verdict"] == "not proved"
    assert "no direct call" in outcome.content["envelopes"][0]["reason"]


def test_verify__no_report__could_not_be_checked(chain: LocalChain, tmp_path: Path) -> None:
    options = ["--rpc", chain.url, "--deployment", chain.record_path]
    garbage = tmp_path / "garbage.bin"
    garbage.write_bytes(b"\xff\x1b[2J")

    assert run("council", "verify", garbage, *options).code == 2
    missing = run("council", "verify", tmp_path / "missing.bin", *options)
    assert missing.code == 2
    assert "expected a report or a bundle's folder, got none" in missing.err


# ------------------------------------------------------------------ other safety failures


def verify_safety(
    chain: LocalChain, tmp_path: Path, misbehavior: Misbehavior, *envelopes: bytes
) -> tuple[Outcome, Outcome]:
    path = tmp_path / "safety.pb"
    path.write_bytes(safety_report(100, NODES[1], misbehavior, *envelopes))
    options = ["--rpc", chain.url, "--deployment", chain.record_path]
    plain = run("council", "verify", path, *options)
    assert max(map(len, plain.out.splitlines())) <= 100
    return plain, run("council", "verify", path, "--json", *options)


@pytest.mark.parametrize(
    ("age", "code", "weight", "reason"),
    [
        (1, 0, "proved", "two different envelopes 1"),
        (0, 1, "refuted", "no two envelopes of node 100 with one id differ"),
    ],
)
def test_verify__two_envelopes_of_one_id__are_judged_with_the_registered_key(
    chain: LocalChain, tmp_path: Path, age: int, code: int, weight: str, reason: str
) -> None:
    envelopes = [signed(100, 1, NOW_NS - each, key=NODES[0]) for each in (0, age)]

    plain, as_json = verify_safety(chain, tmp_path, Misbehavior.DUPLICATE_SEQUENCE_ID, *envelopes)

    assert (plain.code, as_json.code) == (code, code)
    assert f"{weight:<16}{reason}\nverdict         {weight}\n" in plain.out
    content = as_json.content
    assert (content["verdict"], content["weight"], content["reason"]) == (weight, weight, reason)
    assert (content["misbehavior"], content["misbehaving_node_id"]) == (
        *("DUPLICATE_SEQUENCE_ID", 100),
    )
    steps = {step["name"]: step["found"] for step in content["steps"]}
    assert steps["reporter"].startswith("node 200, by its key")
    assert steps["accused"].startswith("node 100, enabled")
    assert content["evidence_sha256"] == sha256((tmp_path / "safety.pb").read_bytes()).hexdigest()


def test_verify__gap__is_claimed_and_not_proved(chain: LocalChain, tmp_path: Path) -> None:
    envelopes = [signed(100, number, key=NODES[0]) for number in (3, 1)]

    plain, as_json = verify_safety(chain, tmp_path, Misbehavior.OUT_OF_ORDER, *envelopes)

    assert (plain.code, as_json.content["verdict"]) == (1, "not proved")
    assert "claimed         3 came after 1\n" in plain.out


def test_verify__liveness__is_no_evidence(chain: LocalChain, tmp_path: Path) -> None:
    path = tmp_path / "liveness.pb"
    path.write_bytes(liveness_report(100, NODES[1]))

    outcome = run("council", "verify", path, "--rpc", chain.url, "--deployment", chain.record_path)

    assert outcome.code == 2
    assert "expected a safety failure (types 4 to 8), got UNRESPONSIVE_NODE" in outcome.err
