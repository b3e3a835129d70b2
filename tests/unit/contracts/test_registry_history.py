"""The registry's history, from an endpoint that may hide, move or invent events."""

from collections.abc import Sequence
from typing import Any

import pytest

from chainkit.chain import LogFilter
from chainkit.chain.log_ranges import logs_by_pieces
from chainkit.contracts.interface import shipped_interface
from chainkit.contracts.registry import RegistryEvent, read_history, telling
from chainkit.errors import EndpointUnavailable, InconsistentAnswer, MalformedLog
from chainkit.signatures import address_of, keccak256
from chainkit.types import Node
from support.council.fake_registry import (
    ADDRESS,
    HEAD,
    HOLDER,
    NOBODY,
    OWNER_ADDRESS,
    FakeRegistry,
    block,
    block_hash,
    entry,
    hexed,
    node_key,
)
from support.endpoints.fake_endpoint import FakeProvider, RpcError

CREATED = 3
SUCCESSOR = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"
NODE = Node(100, node_key(1).public_key, "https://1.example", True)


def word(kind: str, value: object) -> str:
    return hexed([kind], value)


def log(height: int, index: int, signature: str, topics: Sequence[str], data: str = "0x") -> Any:
    return {
        "address": "0x" + ADDRESS.hex(),
        "topics": ["0x" + keccak256(signature.encode()).hex(), *topics],
        "data": data,
        "blockNumber": hex(height),
        "blockHash": "0x" + block_hash(height).hex(),
        "transactionHash": "0x" + keccak256(b"transaction %d" % height).hex(),
        "transactionIndex": "0x0",
        "logIndex": hex(index),
        "removed": False,
    }


def updated(height: int, index: int, node: Node) -> Any:
    data = hexed(["uint256", "(bytes,bytes,bool)"], node.node_id, entry(node))
    return log(height, index, "NodeUpdated(uint256,(bytes,string,bool))", [], data)


def owned(height: int, earlier: str, owner: str) -> Any:
    topics = [word("address", earlier), word("address", owner)]
    return log(height, 0, "OwnershipTransferred(address,address)", topics)


def added(height: int, node: Node, holder: str = HOLDER) -> list[Any]:
    node_id, to = word("uint256", node.node_id), word("address", holder)
    actor = word("address", OWNER_ADDRESS)
    return [
        log(height, 0, "Transfer(address,address,uint256)", [word("address", NOBODY), to, node_id]),
        log(height, 1, "NodeAdded(address,uint256,address)", [actor, node_id, to]),
        updated(height, 2, node),
    ]


def disabled(height: int, node: Node) -> list[Any]:
    topics = [word("address", OWNER_ADDRESS), word("uint256", node.node_id)]
    data = word("bool", False)
    off = Node(node.node_id, node.signing_key, node.http_address, False)
    return [
        log(height, 0, "NodeHealthUpdated(address,uint256,bool)", topics, data),
        updated(height, 1, off),
    ]


STORY = [owned(3, NOBODY, OWNER_ADDRESS), *added(5, NODE), *disabled(9, NODE)]


class LoggedRegistry(FakeRegistry):
    """Gives the logs of its story that lie in the range asked for, and notes the ranges."""

    def __init__(self, story: Sequence[Any] = STORY, longest: int = 100, **fields: Any) -> None:
        off = Node(NODE.node_id, NODE.signing_key, NODE.http_address, False)
        super().__init__(**({"nodes": [off]} | fields))
        self.story = story
        self.longest = longest
        self.ranges: list[tuple[int, int]] = []

    def answers(self) -> dict[str, Any]:
        return super().answers() | {"eth_getLogs": self._logs}

    def _logs(self, query: dict[str, Any]) -> Any:
        first, last = int(query["fromBlock"], 16), int(query["toBlock"], 16)
        self.ranges.append((first, last))
        if last - first + 1 > self.longest:
            return RpcError(-32602, f"block range too large: {self.longest} blocks at most")
        return [each for each in self.story if first <= int(each["blockNumber"], 16) <= last]

    def history(self, first: int = CREATED, head: int = HEAD) -> tuple[RegistryEvent, ...]:
        return read_history(self.registry(), first, block(head), first == CREATED)


def test_history__whole__is_in_order_with_who_acted() -> None:
    events = LoggedRegistry().history()

    assert [(event.block.number, event.name, event.account) for event in events] == [
        (3, "OwnershipTransferred", None),
        (5, "Transfer", None),
        (5, "NodeAdded", OWNER_ADDRESS),
        (5, "NodeUpdated", None),
        (9, "NodeHealthUpdated", OWNER_ADDRESS),
        (9, "NodeUpdated", None),
    ]
    assert {event.block.hash for event in events} == {block_hash(n) for n in (3, 5, 9)}
    assert [event.node_id for event in events] == [None, 100, 100, 100, 100, 100]
    assert events[-1].timestamp == 1_700_000_009


def test_telling__events_that_repeat_another__are_left_out() -> None:
    told = telling(LoggedRegistry().history())

    assert [(event.name, event.words) for event in told] == [
        ("OwnershipTransferred", f"created, owned by {OWNER_ADDRESS}"),
        ("NodeAdded", f"added, held by {HOLDER}"),
        (
            "NodeUpdated",
            f"enabled, key of {address_of(NODE.signing_key)}, at https://1.example",
        ),
        ("NodeHealthUpdated", "disabled"),
    ]


@pytest.mark.parametrize("hidden", range(len(STORY)))
def test_history__one_event_hidden__is_inconsistent(hidden: int) -> None:
    story = [*STORY[:hidden], *STORY[hidden + 1 :]]

    with pytest.raises(InconsistentAnswer, match=r"history of|events of transaction"):
        LoggedRegistry(story).history()


def test_history__last_change_hidden__is_inconsistent() -> None:
    with pytest.raises(InconsistentAnswer, match="history of node 100: expected events that lead"):
        LoggedRegistry(STORY[:-2]).history()


@pytest.mark.parametrize(
    ("fields", "subject"),
    [
        ({"owner": SUCCESSOR}, "the owner"),
        ({"pending_owner": SUCCESSOR}, "the pending owner"),
        ({"is_open": True}, "operators' address updates"),
        ({"holders": {100: SUCCESSOR}}, "holder of 100"),
        ({"nodes": [NODE]}, "node 100"),
        ({"nodes": []}, "holder of 100"),
    ],
)
def test_history__registry_says_otherwise__is_inconsistent(
    fields: dict[str, Any], subject: str
) -> None:
    with pytest.raises(InconsistentAnswer, match=f"history of {subject}:"):
        LoggedRegistry(**fields).history()


def test_history__part_of_it__is_compared_as_far_as_it_goes() -> None:
    assert [event.block.number for event in LoggedRegistry().history(first=6)] == [9, 9]
    assert LoggedRegistry().history(first=12) == ()
    with pytest.raises(InconsistentAnswer, match="history of node 100"):
        LoggedRegistry(nodes=[NODE]).history(first=6)


def test_history__log_of_another_branch__is_inconsistent() -> None:
    moved = STORY[-1] | {"blockHash": "0x" + block_hash(8).hex()}

    with pytest.raises(InconsistentAnswer, match="block 9: expected 0x"):
        LoggedRegistry([*STORY[:-1], moved]).history()


def test_history__head_is_not_on_the_chain_any_more__is_inconsistent() -> None:
    registry = LoggedRegistry().registry()
    gone = block()

    with pytest.raises(InconsistentAnswer, match=f"block {HEAD}: expected 0x"):
        read_history(registry, CREATED, type(gone)(HEAD, block_hash(HEAD + 1)), True)


def test_history__event_of_no_registry__is_inconsistent() -> None:
    with pytest.raises(InconsistentAnswer, match="expected an event of NodeRegistry, got 0x"):
        LoggedRegistry([*STORY, log(10, 0, "NodeRemoved(uint256)", [])]).history()


def test_history__event_that_does_not_decode__is_malformed() -> None:
    cut = STORY[-1] | {"data": "0x00"}

    with pytest.raises(MalformedLog):
        LoggedRegistry([*STORY[:-1], cut]).history()


def test_history__endpoint_gives_few_blocks_at_once__is_the_same() -> None:
    narrow, seen = LoggedRegistry(longest=4), list[int]()

    found = read_history(narrow.registry(), CREATED, block(), True, seen.append)

    assert found == LoggedRegistry().history()
    assert sum(seen) == HEAD - CREATED + 1 and len(seen) > 3
    answered = [pair for pair in narrow.ranges if pair[1] - pair[0] < 4]
    assert [first for first, _ in answered[1:]] == [last + 1 for _, last in answered[:-1]]


def test_pieces__endpoint_refuses_even_one_block__is_unavailable() -> None:
    none = LoggedRegistry(longest=0)
    with pytest.raises(EndpointUnavailable, match="logs of blocks 5 to 5"):
        list(logs_by_pieces(none.endpoint(), 5, 9, LogFilter((ADDRESS,))))


def node_topics(actor: str, *others: tuple[str, object]) -> list[str]:
    return [word("address", actor), *(word(*each) for each in others)]


def event(log: Any) -> RegistryEvent:
    (parsed,) = FakeProvider({"eth_getLogs": [log]}).endpoint().logs(9, 9, [ADDRESS])
    decoded = shipped_interface("NodeRegistry").decode_event(parsed)
    assert decoded is not None
    return RegistryEvent(*decoded, block(9), 0, parsed.transaction_hash, 0)


@pytest.mark.parametrize(
    ("signature", "topics", "data", "account", "words"),
    [
        (
            "OwnershipTransferStarted(address,address)",
            node_topics(OWNER_ADDRESS, ("address", SUCCESSOR)),
            "0x",
            OWNER_ADDRESS,
            f"ownership was offered to {SUCCESSOR}",
        ),
        (
            "OwnershipTransferStarted(address,address)",
            node_topics(OWNER_ADDRESS, ("address", NOBODY)),
            "0x",
            OWNER_ADDRESS,
            "the offer of ownership was withdrawn",
        ),
        (
            "OwnershipTransferred(address,address)",
            node_topics(OWNER_ADDRESS, ("address", SUCCESSOR)),
            "0x",
            SUCCESSOR,
            f"owned by {SUCCESSOR} since then",
        ),
        (
            "HttpAddressUpdatesOpenChanged(address,bool)",
            node_topics(OWNER_ADDRESS),
            word("bool", False),
            OWNER_ADDRESS,
            "operators' address updates closed",
        ),
        (
            "NodeHttpAddressUpdated(address,uint256,string)",
            node_topics(HOLDER, ("uint256", 100)),
            hexed(["bytes"], b"https://a\x1b[2J\xff"),
            HOLDER,
            "HTTP address changed to https://a\\x1b[2J\\udcff",
        ),
        (
            "NodeTransferred(address,uint256,address)",
            node_topics(OWNER_ADDRESS, ("uint256", 100), ("address", HOLDER)),
            "0x",
            OWNER_ADDRESS,
            f"given to {HOLDER}",
        ),
        (
            "Transfer(address,address,uint256)",
            node_topics(SUCCESSOR, ("address", HOLDER), ("uint256", 100)),
            "0x",
            None,
            f"moved from {SUCCESSOR} to {HOLDER}",
        ),
    ],
)
def test_words__of_each_event__say_who_did_what(
    signature: str, topics: list[str], data: str, account: str | None, words: str
) -> None:
    found = event(log(9, 0, signature, topics, data))

    assert (found.account, found.words) == (account, words)
