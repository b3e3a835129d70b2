"""Nodes whose tables have a wrong value beside their envelopes, and near misses, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import count
from typing import Any

from chainkit.protocol.proto import envelopes_pb2
from chainkit.signatures import SigningKey, keccak256
from chainkit.types import TopicKind
from support.audit.audit_exports import GROUP, Post, base_posts, hash_of
from support.audit.identities import NODE_REGISTRY
from support.audit.node_tables import Tables, envelope_row, journal_row, quarantine_row
from support.payloads import commit

Found = list[tuple[str, int | None]]
Change = Callable[[Tables, SigningKey], None]

COUNTER = 26
SHORT = b"\5" * 16
PADDED = SHORT.ljust(32, b"\0")
"""A group id of today's clients, and the contract's form of it."""
TWICE = keccak256(b"a transaction with the same payload twice")
BOTH = keccak256(b"a transaction with two payloads")


def chain_posts() -> list[Post]:
    """Those of base_posts in the blocks 10 to 17; two transactions with two payloads each; more
    malformed payloads; and posts to a group with a short id."""
    twice = Post(12, 19, commit(GROUP, seed=13), transaction=TWICE)
    return [
        *base_posts(),
        Post(9, 17, b"\xfe neither"),
        Post(10, 18, commit(GROUP, seed=10), transaction=BOTH),
        Post(11, 18, commit(GROUP, seed=11), transaction=BOTH),
        twice,
        replace(twice, sequence_id=13),
        *(Post(n, 19, b"\xff" + bytes([n])) for n in range(14, 21)),
        *(
            Post(21 + n, 19, payload, group=PADDED)
            for n, payload in enumerate(_to_a_short_group_id())
        ),
    ]


def _to_a_short_group_id() -> list[bytes]:
    """Payloads of the usual form and of others; the last is for another originator."""
    usual = commit(SHORT, seed=21)
    seen = envelopes_pb2.ClientEnvelope.FromString(commit(SHORT, size=20_000, seed=22))
    seen.aad.last_seen.node_id_to_sequence_id[0] = 21
    parts = envelopes_pb2.ClientEnvelope.FromString(usual)
    aad = envelopes_pb2.ClientEnvelope(aad=parts.aad).SerializeToString()
    parts.ClearField("aad")
    longer = envelopes_pb2.ClientEnvelope.FromString(usual)
    longer.aad.target_topic = TopicKind.GROUP_MESSAGE.topic(SHORT + b"\0")
    elsewhere = envelopes_pb2.ClientEnvelope.FromString(usual)
    elsewhere.aad.target_originator = 7
    return [
        usual,
        seen.SerializeToString(),
        parts.SerializeToString() + aad,
        commit(PADDED, seed=24),
        longer.SerializeToString(),
        elsewhere.SerializeToString(),
    ]


POSTS = {post.sequence_id: post for post in chain_posts()}
ELSEWHERE = Post(3, 9, commit(GROUP, seed=99), transaction=keccak256(b"gone"))
"""A post of a branch that is gone: no transaction of the chain."""


def at(sequence_id: int, post: Post) -> Post:
    """Return a post under its earlier sequence, before a reorg."""
    return replace(post, sequence_id=sequence_id, transaction=post.transaction_hash)


def change(table: str, sequence_id: int, /, **columns: Any) -> Change:
    def apply(tables: Tables, key: SigningKey) -> None:
        [row] = [row for row in tables[table] if row["sequence_id"] == sequence_id]
        row |= columns

    return apply


def drop(table: str, *sequences: int) -> Change:
    def apply(tables: Tables, key: SigningKey) -> None:
        tables[table] = [row for row in tables[table] if row["sequence_id"] not in sequences]

    return apply


def add(table: str, *rows: Callable[[SigningKey], Mapping[str, Any]]) -> Change:
    return lambda tables, key: tables[table].extend(dict(row(key)) for row in rows)


def journal(*rows: tuple[Post, str, int | None, int]) -> Change:
    return add(
        "journal", *(lambda key, row=row: journal_row(row[0], key, *row[1:]) for row in rows)
    )


def both(*changes: Change) -> Change:
    def apply(tables: Tables, key: SigningKey) -> None:
        for each in changes:
            each(tables, key)

    return apply


def proof_first(tables: Tables, key: SigningKey) -> None:
    """The same envelope with its outer fields in the other order."""
    row = tables["envelopes"][0]
    whole = envelopes_pb2.OriginatorEnvelope.FromString(row["envelope"])
    proof = envelopes_pb2.OriginatorEnvelope(blockchain_proof=whole.blockchain_proof)
    whole.ClearField("blockchain_proof")
    row["envelope"] = proof.SerializeToString() + whole.SerializeToString()


def exchange(tables: Tables, key: SigningKey) -> None:
    """Two rows whose envelopes were exchanged, under right columns."""
    first, second = (row for row in tables["envelopes"] if row["sequence_id"] in (12, 13))
    first["envelope"], second["envelope"] = second["envelope"], first["envelope"]


def served_from_journal(tables: Tables, key: SigningKey) -> None:
    """Other bytes than the chain's, as the node's journal holds them."""
    change("envelopes", 3, envelope=ELSEWHERE.envelope(key))(tables, key)
    journal((ELSEWHERE, "dropped", None, 1))(tables, key)


def other_history(tables: Tables, key: SigningKey) -> None:
    """The first update has another key, the last is missing, and there is one more."""
    rows = tables["registry_updates"]
    rows.pop()
    rows[0] |= {"signing_key": key.public_key[::-1]}
    rows.append(rows[1] | {"log_index": 999})


def follows(block: int) -> dict[str, Any]:
    """Return the fields of a manifest about a registry whose history ends at a block."""
    return {
        "chain_id": 31337,
        "address": "0x" + NODE_REGISTRY.hex(),
        "block_number": block,
        "block_hash": "0x" + hash_of(block).hex(),
    }


def codes(code: str, *sequences: int | None) -> Found:
    return [(code, each) for each in sequences]


@dataclass(frozen=True)
class Case:
    change: Change = lambda tables, key: None
    found: Found = field(default_factory=list)
    about: Mapping[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()


CASES = {
    "honest": Case(about={"final_block": 20}),
    "wrong columns": Case(
        both(
            change("envelopes", 1, sequence_id=Decimal(70)),
            change("envelopes", 2, originator_id=7),
            change("envelopes", 3, block_number=11),
            change("envelopes", 5, block_hash=b""),
            change("envelopes", 6, transaction_hash=bytes(32)),
            change("envelopes", 7, transaction_index=9),
            change("envelopes", 8, log_index=1),
            change("envelopes", 10, originator_ns=1),
            change("envelopes", 11, topic=b"\0" * 33),
            exchange,
        ),
        codes("ENVELOPE_COLUMNS_CONTRADICT", 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13),
    ),
    "wrong topics of a short group id": Case(
        both(
            *(
                change("envelopes", n, topic=TopicKind.GROUP_MESSAGE.topic(PADDED))
                for n in (21, 22, 23, 25)
            ),
            change("envelopes", 24, topic=TopicKind.GROUP_MESSAGE.topic(SHORT)),
        ),
        codes("ENVELOPE_COLUMNS_CONTRADICT", 21, 22, 23, 24, 25),
    ),
    "right columns of wrong envelopes": Case(
        both(
            lambda tables, key: tables["envelopes"].reverse(),
            proof_first,
            lambda tables, key: change("envelopes", 3, envelope=ELSEWHERE.envelope(key))(
                tables, key
            ),
            change("envelopes", 5, envelope=b"\xff", topic=b""),
            drop("envelopes", 6),
        )
    ),
    "wrong quarantine": Case(
        both(
            change("quarantine", 4, payload=b"\xff other"),
            change("quarantine", 9, identifier=bytes(32)),
            change("quarantine", 14, contract=bytes(20)),
            change("quarantine", 15, log_index=1),
            change("quarantine", 16, transaction_hash=bytes(32)),
            add("quarantine", lambda key: quarantine_row(POSTS[17])),
            drop("quarantine", 18),
            change("quarantine", 19, reason="no aad"),
            add("quarantine", lambda key: quarantine_row(POSTS[7])),
            drop("envelopes", 7),
            add(
                "quarantine",
                lambda key: quarantine_row(POSTS[8]) | {"payload": b"", "identifier": b""},
            ),
            drop("envelopes", 8),
            add("quarantine", lambda key: quarantine_row(replace(POSTS[4], sequence_id=99))),
        ),
        [
            *codes("QUARANTINE_CONTRADICTS", 4, 7, 8, 9, 14, 15, 16, 17, 99),
            *codes("QUARANTINE_MISSING", 18),
            *codes("QUARANTINE_REASON_DIFFERS", 19),
        ],
    ),
    "malformed payload served": Case(
        both(
            drop("quarantine", 4),
            add("envelopes", lambda key: envelope_row(POSTS[4], key) | {"topic": b""}),
        )
    ),
    "wrong journal": Case(
        journal(
            (POSTS[5], "dropped", None, 1),
            (POSTS[12], "kept", None, 1),
            (POSTS[13], "dropped", None, 1),
            (ELSEWHERE, "kept", None, 1),
            (at(30, ELSEWHERE), "moved", 5, 1),
            (at(31, POSTS[10]), "moved", 11, 1),
            (at(32, ELSEWHERE), "moved", COUNTER + 1, 1),
            (at(33, POSTS[4]), "moved", 5, 1),
            (POSTS[6], "lost", None, 1),
        ),
        codes("JOURNAL_CONTRADICTS", 3, 5, 6, 13, 30, 31, 32, 33),
    ),
    "true journal": Case(
        journal(
            (POSTS[3], "kept", None, 1),
            (at(30, POSTS[5]), "moved", 31, 1),
            (at(31, POSTS[5]), "moved", 5, 2),
            (at(32, POSTS[4]), "moved", 4, 1),
            (POSTS[9], "dropped", None, 1),
            (POSTS[12], "kept", None, 1),
            (POSTS[13], "kept", None, 1),
            (at(7, ELSEWHERE), "moved", 8, 1),
            (at(8, ELSEWHERE), "dropped", None, 2),
        )
    ),
    "behind": Case(
        both(
            drop("envelopes", *range(5, COUNTER + 1)),
            drop("quarantine", *range(4, COUNTER + 1)),
            journal((POSTS[10], "dropped", None, 1)),
        ),
        codes("NODE_BEHIND", None),
        {"to_block": 12},
    ),
    "bytes of the journal served": Case(served_from_journal, codes("ENVELOPE_RETRACTED", 3)),
    "other history": Case(other_history, codes("REGISTRY_HISTORY_CONTRADICTS", None, None, None)),
    "history that ends earlier": Case(
        lambda tables, key: tables["registry_updates"].clear(), about={"registry": follows(1)}
    ),
    "history of another registry": Case(
        lambda tables, key: tables["registry_updates"].clear(), about={"registry": None}
    ),
    "wrong cursor": Case(
        journal((POSTS[3], "kept", None, 2)),
        codes("NODE_CURSOR_CONTRADICTS", None, None),
        {"last_reorg": 1, "final_block": 21},
    ),
    "an older export": Case(without=("quarantine", "journal", "registry_updates")),
    "disabled": Case(found=codes("NODE_DISABLED", None)),
    "registered late": Case(found=codes("NODE_UNREGISTERED", None)),
}
IDS = dict(zip(CASES, count(100, 100), strict=False))
