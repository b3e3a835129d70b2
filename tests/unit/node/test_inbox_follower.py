"""Which inbox a wallet belongs to, as updates come, are refused, and are taken back by reorgs."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace

import pytest
from click.testing import CliRunner

from chainkit.identity.identifiers import MemberKind
from chainkit_indexer.storage import schema
from chainkit_node.cli import node as node_group
from chainkit_node.types import Selection
from support.identity import Wallet, add, create, update
from support.indexer.followed_inboxes import (
    ANN,
    BEN,
    BEN_ADDED,
    BEN_ADDED_TO_OTHER,
    BEN_REVOKED,
    CLEO,
    CREATED,
    INBOX,
    OTHER_CREATED,
    OTHER_INBOX,
    Node,
    UpdatePost,
)


@pytest.mark.conforms("N26", "I14")
def test_follow__associations_and_revocations__answers_the_highest_that_stands(node: Node) -> None:
    inbox, other = INBOX.hex(), OTHER_INBOX.hex()

    node.mine(CREATED, BEN_ADDED, OTHER_CREATED)
    assert node.inbox_of(ANN, BEN, CLEO, Wallet("nobody")) == [inbox, inbox, other, None]

    node.mine(BEN_ADDED_TO_OTHER)
    assert node.inbox_of(BEN) == [other]

    node.mine(BEN_REVOKED)
    assert node.inbox_of(ANN, BEN) == [inbox, other]
    assert node.refused() == []


def test_follow__reorg__takes_back_what_its_updates_made(node: Node) -> None:
    node.mine(CREATED, BEN_ADDED)
    node.mine(BEN_REVOKED, OTHER_CREATED)
    assert node.inbox_of(BEN, CLEO) == [None, OTHER_INBOX.hex()]

    node.chain.fork(1, [BEN_ADDED_TO_OTHER], [OTHER_CREATED])
    node.catch_up()

    # An addition to an inbox that is not created yet is refused, and the revocation is gone.
    assert node.inbox_of(ANN, BEN, CLEO) == [INBOX.hex(), INBOX.hex(), OTHER_INBOX.hex()]
    assert node.refused() == [(3, "inbox is not created yet")]

    node.chain.fork(2, [BEN_REVOKED])
    node.catch_up()
    assert node.inbox_of(ANN, BEN, CLEO) == [INBOX.hex(), None, None]
    assert node.refused() == []


def test_follow__refused_update__changes_nothing_now_or_after_a_restart(node: Node) -> None:
    stolen = UpdatePost("stolen", update=update(INBOX, add(CLEO, BEN)))
    node.mine(CREATED, stolen)
    assert node.inbox_of(CLEO) == [None]
    assert [sequence_id for sequence_id, _ in node.refused()] == [2]

    node.start()
    node.mine(BEN_ADDED)

    assert node.inbox_of(ANN, BEN) == [INBOX.hex(), INBOX.hex()]


def test_follow__bytes_that_libraries_read_differently__are_quarantined(node: Node) -> None:
    @dataclass(frozen=True)
    class Twice(UpdatePost):
        @property
        def payload(self) -> bytes:
            # Two aads: some libraries merge them, others take the last.
            return b"\x0a\0" + super().payload

    node.mine(Twice("twice", update=update(INBOX, create(ANN))))

    [row] = node.indexer.rows(schema.quarantine)
    reason = (
        "readers differ on these bytes: ClientEnvelope.aad has "
        "a second value of a field, or of a oneof, that has one"
    )
    assert reason in row
    assert node.inbox_of(ANN) == [None]


@pytest.mark.conforms("I16")
def test_page__refused_or_not_judged_updates__stand_in_the_order_and_not_on_the_topic(
    node: Node,
) -> None:
    stolen = [UpdatePost(f"stolen {n}", update=update(INBOX, add(CLEO, BEN))) for n in range(3)]
    topic = Selection(topics=frozenset([CREATED.kind.topic(INBOX)]))
    order = Selection(originator_ids=frozenset([0]))

    def ids(selection: Selection, limit: int = 100) -> list[int]:
        return [row.sequence_id for row in node.log.page(selection, limit, 1 << 30).rows]

    node.mine(*stolen[:2], CREATED, stolen[2], BEN_ADDED)
    assert ids(topic) == [3, 5]
    assert ids(topic, 1) == [3]
    assert ids(replace(topic, cursor={0: 3}), 1) == [5]
    assert ids(order) == [1, 2, 3, 4, 5]

    node.chain.mine([BEN_REVOKED])
    node.indexer.catch_up()
    assert ids(topic) == [3, 5]
    assert ids(order) == [1, 2, 3, 4, 5, 6]
    node.catch_up()
    assert ids(topic) == [3, 5, 6]


def test_refused__command__lists_the_newest_first_with_the_rule(node: Node) -> None:
    command = ["refused", "--database", str(node.indexer.path)]
    assert CliRunner().invoke(node_group, command).output == "nothing was refused\n"

    first, last = (UpdatePost(name, update=update(INBOX, add(CLEO, BEN))) for name in ("a", "b"))
    node.mine(first, CREATED, last)

    listed = CliRunner().invoke(node_group, command).output.splitlines()
    assert listed == [
        f"3 of originator 0, inbox {INBOX.hex()}: {node.refused()[1][1]}",
        f"1 of originator 0, inbox {INBOX.hex()}: inbox is not created yet",
    ]
    as_json = CliRunner().invoke(node_group, [*command, "--json", "--limit", "1"])
    assert json.loads(as_json.output)[0]["sequence_id"] == 3


@pytest.mark.parametrize("at_once", [True, False])
def test_follow__killed_between_any_two_updates__ends_the_same(node: Node, at_once: bool) -> None:
    posts = [CREATED, OTHER_CREATED, BEN_ADDED, BEN_REVOKED, BEN_ADDED_TO_OTHER]
    if at_once:
        # The indexer ran alone for a while, as before an upgrade.
        node.chain.mine(posts)
        node.indexer.catch_up()
    for post in [] if at_once else posts:
        node.start()
        node.mine(post)
    node.catch_up()

    assert node.inbox_of(ANN, BEN, CLEO) == [INBOX.hex(), OTHER_INBOX.hex(), OTHER_INBOX.hex()]
    assert node.indexer.rows(schema.inbox_cursors) == [(0, 5)]


def test_inbox_ids__upper_case_and_nonsense__are_found_or_nothing(node: Node) -> None:
    node.mine(CREATED)
    address = str(ANN.identifier)
    asked = [
        (address.upper().replace("0X", "0x"), MemberKind.ETHEREUM),
        ("0x12", MemberKind.PASSKEY),
    ]

    assert asyncio.run(node.log.inbox_ids(asked)) == [INBOX.hex(), None]
