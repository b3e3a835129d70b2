"""Tokens for peers, the newest listing, and what shows of both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from chainkit.errors import ConfigurationError, StoreUnavailable
from chainkit.service.node_token import MOST_AGE_SECONDS, read_token, token_in
from chainkit.service.refusals import NotReady
from chainkit.signatures import SigningKey
from chainkit.types import BlockReference, Node
from chainkit_node.peers.connections import PeerConnection
from chainkit_node.peers.directory import Listing
from chainkit_node.peers.newest import NewestListing
from chainkit_node.peers.tokens import RENEW_SECONDS, PeerTokens

OWN_ID, PEER_ID, OTHER_ID = 100, 200, 300
KEY = SigningKey(b"\1" * 32)
NOW = 1_800_000_000
SECONDS = 10.0


class Own:
    """This node's id and clock."""

    def __init__(self) -> None:
        self.node_id: int | None = OWN_ID
        self.now = float(NOW)
        self.tokens = PeerTokens(lambda: self.node_id, KEY, lambda: self.now)


@pytest.mark.conforms("N41")
def test_token__for_a_peer__is_good_there_for_an_hour() -> None:
    signed = read_token(Own().tokens.token(PEER_ID))

    signed.check_issued(PEER_ID, NOW)
    signed.check_registered({OWN_ID: Node(OWN_ID, KEY.public_key, "", True)})
    assert (signed.issued_at, signed.expires_at) == (NOW, NOW + MOST_AGE_SECONDS)


@pytest.mark.conforms("N41")
def test_token__asked_for_again_and_again__is_never_too_old() -> None:
    own = Own()
    tokens = []
    for _ in range(100):
        tokens.append(own.tokens.token(PEER_ID))
        # Ahead by as much as a peer's clock may be.
        read_token(tokens[-1]).check_issued(PEER_ID, own.now + RENEW_SECONDS)
        own.now += RENEW_SECONDS / 10

    assert len(set(tokens)) == 10


@pytest.mark.conforms("N41")
def test_token__of_each_peer__is_for_that_peer() -> None:
    tokens = Own().tokens

    audiences = [read_token(tokens.token(each)).audience for each in (PEER_ID, OTHER_ID, PEER_ID)]

    assert audiences == [{"200"}, {"300"}, {"200"}]


def test_token__clock_set_back__is_not_from_the_future() -> None:
    own = Own()
    own.tokens.token(PEER_ID)
    own.now -= 500

    read_token(own.tokens.token(PEER_ID)).check_issued(PEER_ID, own.now)


def test_token__node_registered_under_another_id__names_that() -> None:
    own = Own()
    own.tokens.token(PEER_ID)
    own.node_id = OTHER_ID

    assert read_token(own.tokens.token(PEER_ID)).subject == OTHER_ID


def test_token__node_that_is_not_registered__has_none() -> None:
    own = Own()
    own.node_id = None

    with pytest.raises(NotReady, match="token: expected a node that is registered"):
        own.tokens.token(PEER_ID)


@pytest.mark.conforms("N35")
def test_metadata__of_a_call__is_as_xip_49_and_as_todays_nodes_have_it() -> None:
    tokens = Own().tokens

    metadata = dict(tokens.metadata(PEER_ID))

    assert set(metadata) == {"node-authorization", "authorization"}
    assert {token_in(value) for value in metadata.values()} == {tokens.token(PEER_ID)}


def test_metadata__of_a_node_that_is_not_enabled__shows_no_token() -> None:
    own = Own()
    own.node_id = None

    # It asks as any stranger: a token would be refused.
    assert own.tokens.metadata(PEER_ID) == ()


def test_repr__of_tokens_and_connections__shows_no_token() -> None:
    async def story() -> None:
        tokens = Own().tokens
        connection = PeerConnection(Node(PEER_ID, b"", "http://127.0.0.1:1", True), tokens)
        text = tokens.token(PEER_ID)
        assert not any(part in repr([tokens, connection]) for part in text.split("."))
        await connection.close()

    asyncio.run(story())


def test_connection__to_a_url_of_another_form__names_the_node() -> None:
    with pytest.raises(ConfigurationError, match="URL of node 200"):
        PeerConnection(Node(PEER_ID, b"", "ftp://example.org", True), Own().tokens)


class Directory:
    """Numbers its listings; fails where it is told to."""

    def __init__(self) -> None:
        self.reads = 0
        self.error: Exception | None = None

    def listing(self) -> Listing:
        self.reads += 1
        if self.error is not None:
            raise self.error
        return listed(self.reads)


def listed(number: int, is_enabled: bool = True) -> Listing:
    own = Node(OWN_ID, b"", "http://127.0.0.1:1", is_enabled)
    return Listing({OWN_ID: own}, OWN_ID, BlockReference(number, bytes(32)))


def looking(story: Callable[[Directory, NewestListing], Coroutine[Any, Any, None]]) -> None:
    """Run a story with a newest listing that is read all the time."""

    async def run() -> None:
        directory = Directory()
        newest = NewestListing(directory.listing, lambda: None, turn_seconds=0)
        assert newest.listing() == Listing({}, None, None)
        await newest.start()
        try:
            async with asyncio.timeout(SECONDS):
                await story(directory, newest)
        finally:
            await newest.finish()

    asyncio.run(run())


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0)


def test_newest_listing__started__is_known_and_read_again() -> None:
    async def story(directory: Directory, newest: NewestListing) -> None:
        assert newest.listing() == listed(1)
        assert newest.enabled_id() == OWN_ID
        await until(lambda: newest.listing() == listed(3))

    looking(story)


def test_newest_listing__database_away__stays_and_is_read_when_it_is_back() -> None:
    async def story(directory: Directory, newest: NewestListing) -> None:
        directory.error = StoreUnavailable("database", "an answer", "none")
        reads = directory.reads
        await until(lambda: directory.reads > reads + 3)
        assert newest.enabled_id() == OWN_ID
        directory.error = None
        reads = directory.reads
        await until(lambda: newest.listing() in (listed(reads + 1), listed(reads + 2)))

    looking(story)


def test_newest_listing__fault__is_told_and_raised_at_the_end() -> None:
    told: list[str] = []

    async def run() -> None:
        directory = Directory()
        newest = NewestListing(directory.listing, lambda: told.append("ended"), turn_seconds=0)
        await newest.start()
        directory.error = ZeroDivisionError()
        async with asyncio.timeout(SECONDS):
            await until(lambda: bool(told))
        await newest.finish()

    with pytest.raises(ZeroDivisionError):
        asyncio.run(run())


def test_newest_listing__this_node_is_disabled__it_has_no_enabled_id() -> None:
    async def run() -> None:
        newest = NewestListing(lambda: listed(1, is_enabled=False), lambda: None)
        assert newest.enabled_id() is None
        await newest.start()
        assert newest.enabled_id() is None
        await newest.finish()

    asyncio.run(run())
