from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import insert

from chainkit.errors import StoreUnavailable
from chainkit.service.log_lines import LogEvent
from chainkit.types import BlockHeader, BlockReference
from chainkit_indexer.monitoring.registration import RegistrationNarrator
from chainkit_indexer.registry.follower import RegistryAdvanced, RegistryIdle
from chainkit_indexer.storage import schema
from support.chains.fake_chain import FakeChain
from support.indexer.fake_node import KEY, FakeNode

HEAD = BlockHeader(12, b"\x02" * 32, b"\x01" * 32, 1_700_000_000)
IDLE = RegistryIdle(HEAD.reference, HEAD)
ADVANCED = RegistryAdvanced(1, HEAD.reference, HEAD, 1, True)
BEHIND = RegistryAdvanced(1, BlockReference(11, bytes(32)), HEAD, 1, True)
NOT_REGISTERED = (
    f"registry: this node's key 0x{KEY.public_key.hex()[:8]}… is not registered at block 12; "
    "have the council add what `chainkit key show` prints"
)


@pytest.fixture
def node(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[FakeNode]:
    caplog.set_level(logging.INFO, logger="chainkit")
    node = FakeNode(FakeChain(), tmp_path / "node.db")
    yield node
    node.store.close()


def follow_registry(node: FakeNode) -> None:
    place = {"address": bytes(20), "genesis_hash": bytes(32), "block_hash": HEAD.hash}
    row = {"id": 1, "chain_id": 1, "first_block": 2, "block_number": 12} | place
    with node.store.writing() as connection:
        connection.execute(insert(schema.registry_cursor).values(row))


def register(node: FakeNode, block_number: int, is_enabled: bool) -> None:
    place = {"block_hash": bytes(32), "transaction_hash": bytes(32), "timestamp": 0, "log_index": 0}
    row = {"block_number": block_number, "node_id": 100, "is_enabled": is_enabled}
    row |= {"signing_key": KEY.public_key, "http_address": b""} | place
    with node.store.writing() as connection:
        connection.execute(insert(schema.registry_updates).values(row))


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in caplog.records]


def test_look__key_is_not_registered__is_warned_of_once(
    node: FakeNode, caplog: pytest.LogCaptureFixture
) -> None:
    follow_registry(node)
    narrator = RegistrationNarrator(node.store)

    for result in (None, BEHIND, IDLE, None, IDLE, ADVANCED):
        narrator.look(result)

    assert said(caplog) == [("WARNING", NOT_REGISTERED)]
    event: LogEvent = caplog.records[0].__dict__["event"]
    assert event.name == "registry"
    assert event.fields == {"node_id": None, "status": "not registered", "block": 12}


def test_look__node_is_enabled_from_the_start__is_no_news_but_each_change_is(
    node: FakeNode, caplog: pytest.LogCaptureFixture
) -> None:
    follow_registry(node)
    register(node, 7, True)
    narrator = RegistrationNarrator(node.store)

    narrator.look(IDLE)
    at_first = said(caplog)
    register(node, 9, False)
    narrator.look(BEHIND)
    narrator.look(IDLE)
    register(node, 10, True)
    narrator.look(ADVANCED)

    assert at_first == []
    assert said(caplog) == [
        ("WARNING", "registry: this node is 100, disabled at block 12"),
        ("INFO", "registry: this node is 100, enabled at block 12"),
    ]


def test_look__nothing_committed_yet_or_no_database__looks_again(
    node: FakeNode, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrator = RegistrationNarrator(node.store)

    narrator.look(ADVANCED)
    follow_registry(node)
    with monkeypatch.context() as patched:
        patched.setattr(node.store, "reading", unavailable)
        narrator.look(IDLE)
    before = said(caplog)
    narrator.look(IDLE)

    assert before == []
    assert said(caplog) == [("WARNING", NOT_REGISTERED)]


def unavailable() -> None:
    raise StoreUnavailable("database", "an answer", "none")


def test_look__database_is_away_when_the_update_comes__is_told_when_it_is_back(
    node: FakeNode, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow_registry(node)
    register(node, 7, True)
    narrator = RegistrationNarrator(node.store)
    narrator.look(IDLE)
    register(node, 9, False)

    with monkeypatch.context() as away:
        away.setattr(node.store, "reading", unavailable)
        narrator.look(ADVANCED)
    narrator.look(IDLE)

    assert [level for level, _ in said(caplog)] == ["WARNING"]
