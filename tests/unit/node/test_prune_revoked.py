"""The newest key package stays as long as somebody may be invited by it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from chainkit.identity.writing import Step
from chainkit.types import TopicKind
from chainkit_indexer.types import Idle
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.inboxes.follower import InboxFollower
from support.identity import Installation, add, revoke, update
from support.indexer.followed_inboxes import (
    ANN,
    CLEO,
    CREATED,
    INBOX,
    OTHER_CREATED,
    OTHER_INBOX,
    UpdatePost,
)
from support.reporting import Host

from .test_pruner import NOW, attest, expiring, followed, held, prune, put, register

PHONE, LAPTOP = Installation("phone"), Installation("laptop")
PACKAGE = 7
"""The id of the phone's only key package."""


def posted(name: str, *steps: Step, inbox_id: bytes = INBOX) -> UpdatePost:
    return UpdatePost(name, inbox_id=inbox_id, update=update(inbox_id, *steps))


BOTH_ADDED = posted("add both", add(PHONE, ANN), add(LAPTOP, ANN))
REVOKED = posted("revoke the phone", revoke(PHONE, ANN))


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with closing(Host(tmp_path / "node.db")) as host:
        register(host)
        put(host, *(expiring(each) for each in range(1, 65) if each not in (PACKAGE, 8)))
        for each, device in ((PACKAGE, PHONE), (8, LAPTOP)):
            topic = TopicKind.KEY_PACKAGE.topic(device.identifier.value)
            put(host, expiring(each, topic))
        attest(host, 1, 64)
        yield host


def mine(host: Host, *posts: UpdatePost, empty: int = 0) -> None:
    """Mine a block with identity updates, and empty ones, and judge the updates."""
    host.chain.mine(list(posts), [])
    for _ in range(empty):
        host.chain.mine([], [])
    with closing(EnvelopeLog(host.store)) as log:
        follower = InboxFollower(host.store, log)
        while True:
            result = host.indexer.step()
            follower.succeeded(result, 0)
            if isinstance(result, Idle):
                break
    followed(host, NOW)


def test_prune__key_package_of_a_revoked_installation__goes_once_the_block_is_final(
    host: Host,
) -> None:
    mine(host, CREATED)
    mine(host, BOTH_ADDED, empty=3)
    prune(host)
    assert held(host) == {PACKAGE, 8, 64}

    mine(host, REVOKED)
    prune(host, NOW + 8 * 86_400)
    assert held(host) == {PACKAGE, 8, 64}, "a reorg may take the revocation back"

    mine(host, empty=3)
    followed(host, later := NOW + 30 * 86_400)
    assert prune(host, later)[200].kinds[TopicKind.KEY_PACKAGE].envelopes == 1
    assert held(host) == {8, 64}


def test_prune__installation_of_two_inboxes_revoked_from_one__keeps_its_key_package(
    host: Host,
) -> None:
    other_added = posted("add phone to other", add(PHONE, CLEO), inbox_id=OTHER_INBOX)
    mine(host, CREATED, OTHER_CREATED)
    mine(host, BOTH_ADDED, other_added)
    mine(host, REVOKED, empty=3)
    prune(host)

    assert held(host) == {PACKAGE, 8, 64}
