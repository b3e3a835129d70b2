"""Proofs of messages: what follows from one block hash is told, and nothing else passes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chainkit.errors import ConfigurationError, InvalidSignature, MalformedData
from chainkit.evidence.message_proof import (
    MessageProof,
    message_proof_bytes,
    parse_message_proof,
    verify_message,
)
from chainkit.signatures import SigningKey, address_of
from chainkit.types import TopicKind
from support import publishes
from support.audit.audit_exports import Post, base_posts, key_of, registered, time_of
from support.chain_times import chain_ns
from support.chains.proved_chain import PAYER, proved_chain, sent_of
from support.message_proofs import RECORD, proof_of
from support.originated import NOW_NS, signed

GROUP = publishes.GROUP_ID.ljust(32, b"\0")
POSTED_COMMIT = Post(9, 18, publishes.commit({}), group=GROUP)
POSTS = [*base_posts(), POSTED_COMMIT]
REGISTERED, POSTED = 2, 18
"""Blocks: of the registry's entry, and of the commit."""
ELSEWHERE = 3
"""A block in which another contract writes an entry of the node."""
STRANGER = SigningKey(b"\x07" * 32)

[_entry] = sent_of([], [registered(100, key=STRANGER)])
_FALSE_ENTRY = replace(
    _entry, block=ELSEWHERE, logs=tuple(replace(each, address=b"\x13" * 20) for each in _entry.logs)
)
CHAIN = proved_chain([*sent_of(POSTS, [registered(100), registered(200)]), _FALSE_ENTRY])
MESSAGE = proof_of(CHAIN, REGISTERED, 0, signed(100, 5))
COMMIT = proof_of(CHAIN, POSTED, 0, POSTED_COMMIT.envelope(key_of(100)))


def refused(proof: MessageProof, words: str) -> None:
    block = CHAIN.hash_of(proof.transaction.block_number)
    with pytest.raises(MalformedData, match=words):
        verify_message(proof, block, RECORD)


def test_verify_message__of_a_node__tells_who_originated_it_when_and_who_paid() -> None:
    proved = verify_message(MESSAGE, CHAIN.hash_of(REGISTERED), RECORD)

    assert proved.place == (100, 5)
    assert proved.originator_ns == NOW_NS
    assert proved.client.topic == TopicKind.GROUP_MESSAGE.topic(publishes.GROUP_ID)
    assert proved.payer == address_of(publishes.PAYER.public_key)
    assert proved.originator is not None
    assert proved.originator.signing_key == key_of(100).public_key
    assert proved.block.number == REGISTERED


def test_verify_message__of_the_chain__tells_its_block_and_who_sent_it() -> None:
    proved = verify_message(COMMIT, CHAIN.hash_of(POSTED), RECORD)

    assert proved.place == (0, 9)
    assert proved.originator_ns == chain_ns(time_of(POSTED), 9)
    assert proved.payer == address_of(PAYER.public_key)
    assert proved.originator is None
    assert proved.transaction_hash == CHAIN.transaction_of(9)


def test_verify_message__of_the_chain_by_any_server__is_the_chains() -> None:
    envelope = POSTED_COMMIT.envelope(STRANGER)

    verify_message(replace(COMMIT, envelope=envelope), CHAIN.hash_of(POSTED), RECORD)


def test_verify_message__another_blocks_hash__says_which_hash_is_needed() -> None:
    with pytest.raises(ConfigurationError, match="the hash of block 2, on which") as raised:
        verify_message(MESSAGE, CHAIN.hash_of(POSTED), RECORD)
    # A reader who copied the hash from here would trust the proof.
    assert CHAIN.hash_of(REGISTERED).hex() not in str(raised.value)


def test_verify_message__another_signer__is_refused() -> None:
    with pytest.raises(InvalidSignature):
        verify_message(
            replace(MESSAGE, envelope=signed(100, 5, key=STRANGER)),
            CHAIN.hash_of(REGISTERED),
            RECORD,
        )


def test_verify_message__entry_of_another_node__is_refused() -> None:
    refused(proof_of(CHAIN, REGISTERED, 1, signed(100, 5)), "the entry of node 100")


def test_verify_message__entry_in_another_registry__is_refused() -> None:
    envelope = signed(100, 5, key=STRANGER)

    refused(proof_of(CHAIN, ELSEWHERE, 0, envelope), "the entry of node 100 in the registry")


def test_verify_message__transaction_of_another_block__is_refused() -> None:
    # Header and transaction are true, but not of one block.
    with pytest.raises(MalformedData, match="one of block 2, got block 18"):
        verify_message(
            replace(MESSAGE, transaction=COMMIT.transaction), CHAIN.hash_of(REGISTERED), RECORD
        )
    moved = replace(COMMIT.transaction, block_number=REGISTERED)
    refused(replace(MESSAGE, transaction=moved), "transaction 0 of block 2")


def test_verify_message__another_payload_than_was_posted__is_refused() -> None:
    later = replace(POSTED_COMMIT, block=POSTED + 1)
    for other in (POSTS[0], replace(POSTED_COMMIT, sequence_id=8), later):
        envelope = other.envelope(key_of(100))
        refused(replace(COMMIT, envelope=envelope), "one that transaction 0x.* posted")


def test_verify_message__payload_that_breaks_a_rule__is_refused() -> None:
    for_another = signed(100, 5, payer_envelope=publishes.paid(publishes.group_message(), 200))

    refused(replace(MESSAGE, envelope=for_another), "keeps the rules of a publish")
    # Anyone may post any bytes.
    garbage = proof_of(CHAIN, 13, 0, POSTS[3].envelope(key_of(100)))
    refused(garbage, "one that names its topic")


def test_verify_message__an_envelope_that_is_none__is_refused() -> None:
    for garbage in (b"", b"\xff\xff", signed(100, 5)[:-1]):
        with pytest.raises(MalformedData):
            verify_message(replace(MESSAGE, envelope=garbage), CHAIN.hash_of(REGISTERED), RECORD)


@pytest.mark.parametrize("proof", [MESSAGE, COMMIT])
def test_message_proof__file__has_one_form(proof: MessageProof) -> None:
    data = message_proof_bytes(proof)

    assert parse_message_proof(data) == proof
    for other in (data + b"\n", data.replace(b"0x", b"0X", 1), data[1:], b"", b"[]", b"{}"):
        with pytest.raises(MalformedData):
            parse_message_proof(other)


def test_verify_message__any_byte_changed__is_refused_or_another_message() -> None:
    """Nothing that the proof shows can be changed by who passes it on."""
    true = verify_message(MESSAGE, CHAIN.hash_of(REGISTERED), RECORD)
    envelope = MESSAGE.envelope
    for position in range(len(envelope)):
        changed = bytearray(envelope)
        changed[position] ^= 1
        try:
            shown = verify_message(
                replace(MESSAGE, envelope=bytes(changed)), CHAIN.hash_of(REGISTERED), RECORD
            )
        except MalformedData:
            continue
        assert shown == true
    for name in ("transaction", "receipt"):
        nodes = getattr(MESSAGE.transaction, name)
        for number, node in enumerate(nodes):
            for position in range(len(node)):
                spoilt = bytearray(node)
                spoilt[position] ^= 1
                path = (*nodes[:number], bytes(spoilt), *nodes[number + 1 :])
                proof = replace(MESSAGE.transaction, **{name: path})
                refused(replace(MESSAGE, transaction=proof), "transaction 0 of block 2")
