"""Requests count for a node by its token, for a stranger by the address, or for nobody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from chainkit.service import node_token
from chainkit.service.grpc_methods import Caller
from chainkit.service.node_token import (
    RefusedToken,
    SignedToken,
    TokenFault,
    read_token,
    write_token,
)
from chainkit.service.refusals import NotReady, Overloaded
from chainkit.signatures import SigningKey
from chainkit.types import BlockReference, Node
from chainkit_node.peers.directory import Listing
from chainkit_node.serving import callers
from chainkit_node.serving.callers import Callers, Peers
from chainkit_node.serving.limiter import CallerLimiter
from chainkit_node.settings import NodeLimits, StrangerLimits

OWN_ID, PEER_ID, OTHER_ID = 100, 200, 300
PEER, OTHER = SigningKey(b"\2" * 32), SigningKey(b"\3" * 32)
NOW = 1_800_000_000
BLOCK = BlockReference(1, bytes(32))
ADDRESS, OTHER_ADDRESS = "192.0.2.1", "192.0.2.2"
Metadata = Sequence[tuple[str, str]]


class Door:
    """Callers of a node, whose registry and clock the test moves; buckets never fill again."""

    def __init__(self, nodes: NodeLimits | None = None, strangers: StrangerLimits | None = None):
        self.now = float(NOW)
        self.faults: Counter[TokenFault] = Counter()
        listed = {
            OWN_ID: Node(OWN_ID, SigningKey(b"\1" * 32).public_key, "", True),
            PEER_ID: Node(PEER_ID, PEER.public_key, "", True),
            OTHER_ID: Node(OTHER_ID, OTHER.public_key, "", True),
        }
        self.listing = Listing(listed, OWN_ID, BLOCK)
        peers = Peers(lambda: self.listing, lambda: self.now, self._refused)
        self.nodes = CallerLimiter(nodes or NodeLimits(), "node", lambda: 0)
        self.strangers = CallerLimiter(strangers or StrangerLimits(), "address", lambda: 0)
        self.callers = Callers(peers, self.nodes, self.strangers)

    def admit(self, metadata: Metadata = (), address: str = ADDRESS) -> callers.Admitted:
        return self.callers.admit(Caller(f"ipv4:{address}:1", metadata=metadata))

    def change(self, node_id: int, **changes: object) -> None:
        node = replace(self.listing.nodes[node_id], **changes)  # type: ignore[arg-type]
        self.listing = replace(self.listing, nodes={**self.listing.nodes, node_id: node})

    def _refused(self, fault: TokenFault) -> None:
        self.faults[fault] += 1


def token(
    node_id: int = PEER_ID, key: SigningKey = PEER, server: int = OWN_ID, issued_at: int = NOW
) -> str:
    return write_token(key, node_id, server, issued_at, issued_at + 3600)


def shown(text: str, key: str = "node-authorization") -> Metadata:
    return [(key, text)]


def fault_of(admit: Callable[[], object]) -> TokenFault:
    with pytest.raises(RefusedToken) as caught:
        admit()
    return caught.value.fault


@pytest.mark.conforms("N35", "N42")
@pytest.mark.parametrize(
    "metadata",
    [
        shown(token()),
        shown(token(), "authorization"),
        shown(f"Bearer {token()}", "authorization"),
        [*shown(token()), *shown(f"Bearer {token()}", "authorization")],
    ],
    ids=["today", "XIP-49", "bearer", "both"],
)
def test_admit__token_of_a_node__counts_for_the_node(metadata: Metadata) -> None:
    door = Door()

    caller = door.admit(metadata)

    assert (caller.limiter, caller.name) == (door.nodes, "200")


@pytest.mark.parametrize("metadata", [(), [("user-agent", "a"), ("authorization", "")]])
def test_admit__no_token__counts_for_the_address(metadata: Metadata) -> None:
    door = Door()

    caller = door.admit(metadata)

    assert (caller.limiter, caller.name) == (door.strangers, ADDRESS)


def test_admit__two_tokens__are_refused_though_both_are_good() -> None:
    metadata = [*shown(token()), *shown(token(OTHER_ID, OTHER), "authorization")]

    assert fault_of(lambda: Door().admit(metadata)) is TokenFault.MALFORMED


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Basic YTpi", TokenFault.MALFORMED),
        (token(server=OTHER_ID), TokenFault.WRONG_AUDIENCE),
        (token(400), TokenFault.UNKNOWN_SUBJECT),
        (token(OTHER_ID, PEER), TokenFault.WRONG_KEY),
        (token(issued_at=NOW - 3601), TokenFault.TOO_OLD),
        (token(issued_at=NOW + 61), TokenFault.FROM_THE_FUTURE),
    ],
)
def test_admit__token_that_is_refused__makes_no_stranger_and_is_counted(
    text: str, fault: TokenFault
) -> None:
    door = Door()

    assert fault_of(lambda: door.admit(shown(text))) is fault
    assert door.faults == {fault: 1}


@pytest.mark.conforms("N37")
def test_admit__node_disabled_later__is_refused_at_once_and_its_streams_are_told() -> None:
    door = Door()
    caller = door.admit(shown(token()))
    caller.check()

    door.change(PEER_ID, is_enabled=False)

    assert fault_of(lambda: door.admit(shown(token()))) is TokenFault.DISABLED_SUBJECT
    assert fault_of(caller.check) is TokenFault.DISABLED_SUBJECT
    door.change(PEER_ID, is_enabled=True)
    caller.check()
    assert door.admit(shown(token())).name == "200"


@pytest.mark.conforms("N39", "2.2.1-15")
def test_admit__key_of_a_known_token_replaced__is_refused() -> None:
    door = Door()
    door.admit(shown(token()))

    door.change(PEER_ID, signing_key=OTHER.public_key)

    assert fault_of(lambda: door.admit(shown(token()))) is TokenFault.WRONG_KEY


@pytest.mark.conforms("N40")
def test_admit__known_token__grows_too_old() -> None:
    door = Door()
    text = token(issued_at=NOW)
    door.admit(shown(text))

    door.now += 3599
    door.admit(shown(text))
    door.now += 2

    assert fault_of(lambda: door.admit(shown(text))) is TokenFault.TOO_OLD


def test_admit__stream_of_an_old_token__goes_on() -> None:
    door = Door()
    caller = door.admit(shown(token()))

    door.now += 10**6

    caller.check()


def test_admit__registry_not_followed_yet__is_not_ready_and_strangers_are_served() -> None:
    door = Door()
    door.listing = Listing({}, None, None)

    with pytest.raises(NotReady, match="registry: expected its nodes at a block"):
        door.admit(shown(token()))
    assert door.admit().name == ADDRESS
    assert not door.faults


def test_admit__node_that_is_not_registered_itself__knows_no_audience() -> None:
    door = Door()
    door.listing = replace(door.listing, own_id=None)

    assert fault_of(lambda: door.admit(shown(token()))) is TokenFault.WRONG_AUDIENCE


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Tokens whose signature was looked at."""
    found: list[str] = []

    def read(text: str) -> SignedToken:
        found.append(text)
        return node_token.read_token(text)

    monkeypatch.setattr(callers, "read_token", read)
    return found


def test_admit__the_same_token_again__is_read_once(readings: list[str]) -> None:
    door = Door()
    for _ in range(3):
        door.admit(shown(token()))

    assert len(readings) == 1


def test_admit__many_tokens__are_forgotten_in_their_order_and_bad_ones_at_once(
    readings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callers, "_MOST_TOKENS", 2)
    door = Door()
    first, second, third = (token(issued_at=NOW - age) for age in range(3))
    bad = token(server=OTHER_ID)
    for text in (first, second):
        door.admit(shown(text))
    for _ in range(5):
        fault_of(lambda: door.admit(shown(bad)))
    readings.clear()

    for text in (first, third, first, second):
        door.admit(shown(text))

    assert readings == [third, second]


@pytest.mark.conforms("N42")
def test_admit__strangers_at_their_limit__leave_the_nodes_room_at_the_same_address() -> None:
    door = Door(strangers=StrangerLimits(requests_per_second=1, request_burst=1))
    door.admit()

    with pytest.raises(Overloaded, match="from one address"):
        door.admit()
    for _ in range(5):
        door.admit(shown(token()))


@pytest.mark.conforms("N42")
def test_admit__node_at_its_limit__leaves_room_for_others_and_for_strangers() -> None:
    door = Door(NodeLimits(requests_per_second=1, request_burst=1))
    door.admit(shown(token()))

    with pytest.raises(Overloaded, match="requests: expected at most 1 a second from one node"):
        # From elsewhere, and with another token.
        door.admit(shown(token(issued_at=NOW - 1)), OTHER_ADDRESS)
    door.admit(shown(token(OTHER_ID, OTHER)))
    door.admit()


@pytest.mark.conforms("N42")
def test_admit__refused_tokens__count_for_their_address() -> None:
    door = Door(strangers=StrangerLimits(requests_per_second=1, request_burst=2))
    for _ in range(2):
        fault_of(lambda: door.admit(shown(token(400))))

    with pytest.raises(Overloaded, match="from one address"):
        door.admit(shown(token(400)))
    assert fault_of(lambda: door.admit(shown(token(400)), OTHER_ADDRESS))


def test_admit__more_refused_tokens_than_the_rate__recovers_no_more_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    door = Door(strangers=StrangerLimits(requests_per_second=1, request_burst=3))
    read: list[str] = []
    monkeypatch.setattr(callers, "read_token", lambda text: read.append(text) or read_token(text))
    bad = [token(OTHER_ID, PEER, issued_at=NOW - each) for each in range(6)]

    for text in bad:
        with pytest.raises((RefusedToken, Overloaded)):
            door.admit(shown(text))

    assert read == bad[:3]
    # Strangers at a node's address take nothing from it that is its own, once it is known.
    assert door.admit(shown(token()), OTHER_ADDRESS).name == "200"
    assert door.admit(shown(token())).name == "200"
