"""The stream of the Node SDK while the chain is reorganised: it goes on, no message is lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import pytest

from chainkit.contracts.deployment import read_deployment_record
from chainkit.protocol.envelope import stated_place
from chainkit.signatures import keccak256
from chainkit.text.hexadecimal import parse_bytes
from chainkit.types import TopicKind
from localnet.anvil import Anvil
from localnet.commands import Settings
from localnet.network import Network
from support import mls
from support.chains.chain import LocalChain
from support.network.api import Api
from support.network.node_sdk import NodeSdkClient
from support.network.people import new_person

SECONDS = 30.0
"""Half of what the SDK waits before it opens a stream again that has ended."""


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@dataclass(frozen=True)
class Talk:
    """Two people in a group, each with an open stream, and two who are away."""

    chain: LocalChain
    node: Api
    node_id: int
    ann: NodeSdkClient
    ben: NodeSdkClient
    cleo: NodeSdkClient
    dan: NodeSdkClient
    group_id: bytes

    def shown(self) -> tuple[list[str], ...]:
        """Return what the streams of both have shown so far."""
        return self.ann.streamed(self.group_id), self.ben.streamed(self.group_id)

    def says(self, text: str) -> None:
        """Let ann send a text, and wait until both streams have shown it."""
        self.ann.send(self.group_id, text)
        until(lambda: all(text in each for each in self.shown()))

    def renames(self, name: str) -> bytes:
        """Let ann rename the group; return the commit's transaction, once both have shown it."""
        self.begin_second()
        self.ann.rename(self.group_id, name)
        until(lambda: all(renamed(name) in each for each in self.shown()))
        head = self.chain.head().number
        [commit] = self.chain.endpoint.full_blocks([head])[0]["transactions"]
        return self.chain.raw_transaction(parse_bytes(commit["hash"]))

    def stranger_publishes(self) -> bytes:
        """Let another sender publish to another group; return the transaction, signed."""
        other = time.time_ns().to_bytes(16, "big")
        payload = mls.private_message(other, mls.COMMIT, 1)
        return self.chain.raw_transaction(self.chain.publish_message(other + bytes(16), payload))

    def begin_second(self) -> None:
        """Wait until the next block is dated later than any before: streams find commits by it."""
        arguments = ("eth_getBlockByNumber", "pending", False)
        begun = max(int(time.time()), self.chain.head().timestamp)
        until(lambda: int(self.chain.anvil.request(*arguments)["timestamp"], 16) > begun)

    def reorganise(self, replaced: Sequence[bytes], *order: bytes) -> None:
        """Replace the blocks of some transactions, and all later ones, by others with ``order``.

        Whatever else these blocks have, such as a commit of a client's own accord, comes behind.
        Waits until the node has followed.
        """
        before, request = self.commits(), self.chain.anvil.request
        heights = self.heights_from(min(map(self.height_of, replaced)))
        blocks = self.chain.endpoint.full_blocks(list(heights))
        hashes = [parse_bytes(each["hash"]) for block in blocks for each in block["transactions"]]
        found = map(self.chain.raw_transaction, hashes)
        others = [(raw, len(heights) - 1) for raw in found if raw not in replaced]
        self.begin_second()
        # Dated as the block below, a second that no message of the group has.
        request("anvil_setBlockTimestampInterval", 0)
        moved = [(raw, block) for block, raw in enumerate(order)]
        self.chain.reorg(len(heights), [*moved, *others])
        request("anvil_removeBlockTimestampInterval")
        # Another file's test may have set the chain's clock ahead: no block precedes its parent.
        request("anvil_setTime", max(int(time.time()), self.chain.head().timestamp))
        # The gateway may have published a commit again by then.
        until(lambda: len(self.commits()) >= len(before) and self.commits() != before)

    def heights_from(self, first: int) -> range:
        return range(first, self.chain.head().number + 1)

    def height_of(self, raw: bytes) -> int:
        receipt = self.chain.endpoint.receipt(keccak256(raw))
        assert receipt is not None
        return int(receipt["blockNumber"], 16)

    def commits(self) -> list[int]:
        """Return the sequence ids of the group's commits, as the node serves them now."""
        topic = TopicKind.GROUP_MESSAGE.topic(self.group_id)
        found = self.node.query(topics=[topic], cursor={self.node_id: 2**63})
        return [sequence_id for _, sequence_id in map(stated_place, found)]


def renamed(name: str) -> str:
    return f"group_name: {name}"


@pytest.fixture(scope="module")
def talk(
    network: Network, chain: Anvil, settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Talk]:
    folder = tmp_path_factory.mktemp("talk")
    record = read_deployment_record(settings.record_path)
    local = LocalChain(chain, record, settings.record_path)
    with (
        closing(NodeSdkClient.register(network.gateway_url, folder / "ann", new_person())) as ann,
        closing(NodeSdkClient.register(network.gateway_url, folder / "ben", new_person())) as ben,
        closing(NodeSdkClient.register(network.gateway_url, folder / "cleo", new_person())) as cleo,
        closing(NodeSdkClient.register(network.gateway_url, folder / "dan", new_person())) as dan,
        closing(Api(network.node_url)) as node,
    ):
        others = (ben, cleo, dan)
        group_id = ann.create_group([each.account for each in others])
        until(lambda: all(group_id in each.join() for each in others))
        ann.stream()
        ben.stream()
        yield Talk(local, node, network.node_id, ann, *others, group_id)


@pytest.mark.parametrize("now", ["later", "earlier", "dropped and sent again"])
def test_stream__reorg_gives_a_commit_another_id__shows_what_follows_and_lists_nothing_twice(
    talk: Talk, now: str
) -> None:
    talk.says(f"before it is {now}")
    talk.begin_second()
    talk.chain.mine()
    if now == "earlier":
        strange = talk.stranger_publishes()
        rename = talk.renames(now)
        talk.says("it names the id that the commit had before")
        talk.reorganise([strange, rename], rename, strange)
    else:
        rename = talk.renames(now)
        strange = talk.stranger_publishes()
        talk.reorganise([rename, strange], strange, *([rename] if now == "later" else []))
    # A text that names a higher id than the commit has now is refused, until the gateway has
    # published the commit again.
    talk.says(f"after it was {now}")
    assert sorted(talk.cleo.list(talk.group_id)) == sorted(talk.ann.list(talk.group_id))
    talk.renames(f"{now} and on")
    talk.says(f"all read that it was {now}")

    ann_lists, ben_lists = talk.ann.list(talk.group_id), talk.ben.list(talk.group_id)
    assert ann_lists == ben_lists
    assert len(set(ann_lists)) == len(ann_lists)
    assert [set(each) for each in talk.shown()] == [set(ann_lists)] * 2


def test_list__commit_that_a_text_names_is_away_after_a_reorg__has_both_once_it_is_mined_again(
    talk: Talk,
) -> None:
    talk.says("before it is away")
    talk.cleo.list(talk.group_id)
    rename = talk.renames("away")
    talk.says("it names the commit")
    served = talk.commits()

    talk.chain.pause_mining()
    talk.chain.reorg(len(talk.heights_from(talk.height_of(rename))))
    until(lambda: talk.commits() == served[:-1])
    # Without end for who gets the text alone: today's clients then ask behind the commit.
    assert not {renamed("away"), "it names the commit"} & {*talk.cleo.list(talk.group_id)}
    talk.chain.resume_mining()
    talk.chain.mine()

    until(lambda: "it names the commit" in talk.cleo.list(talk.group_id))
    assert renamed("away") in talk.cleo.list(talk.group_id)
    assert sorted(talk.cleo.list(talk.group_id)) == sorted(talk.ann.list(talk.group_id))


def test_list__reorg_dates_a_commit_behind_texts_that_name_it_and_not__loses_none(
    talk: Talk,
) -> None:
    talk.says("before it is dated later")
    # A member's first text is behind a commit for new keys of its own.
    talk.cleo.send(talk.group_id, "cleo is here")
    talk.says("all have read who is here")
    for each in (talk.cleo, talk.dan):
        each.list(talk.group_id)
    rename = talk.renames("later dated")
    talk.says("it names the commit")
    talk.cleo.send(talk.group_id, "it does not name the commit")
    served = talk.commits()

    talk.chain.pause_mining()
    talk.chain.reorg(len(talk.heights_from(talk.height_of(rename))))
    until(lambda: talk.commits() != served)
    talk.begin_second()
    talk.chain.resume_mining()
    talk.chain.mine()
    until(lambda: talk.commits() == served)

    # Today's clients order a page by time, and drop what lies below what they have read.
    wanted = {renamed("later dated"), "it names the commit", "it does not name the commit"}
    until(lambda: wanted <= set(talk.dan.list(talk.group_id)))
    assert sorted(talk.dan.list(talk.group_id)) == sorted(talk.ann.list(talk.group_id))


def test_send__member_is_three_commits_behind__is_listed_and_streamed_once(talk: Talk) -> None:
    talk.cleo.send(talk.group_id, "cleo has a key of her own")
    for name in ("one", "two", "three"):
        talk.ann.rename(talk.group_id, name)
    talk.cleo.send(talk.group_id, "three behind")

    talk.cleo.send(talk.group_id, "none behind")

    # Today's clients send a text again that they read three commits late (docs/gateway.md).
    until(lambda: all("none behind" in each for each in talk.shown()))
    assert {each.count("three behind") for each in talk.shown()} == {1}
    assert talk.ann.list(talk.group_id).count("three behind") == 1


def test_list__reorg_dates_a_commit_before_one_that_was_read__has_each_once_and_the_last_name(
    talk: Talk,
) -> None:
    talk.says("before both are dated earlier")
    talk.begin_second()
    talk.chain.mine()
    first = talk.renames("first")
    talk.cleo.list(talk.group_id)
    second = talk.renames("second")
    strange = talk.stranger_publishes()
    talk.reorganise([first, second, strange], strange, first, second)
    talk.says("after both were dated earlier")

    names = [renamed("first"), renamed("second")]
    shown = [
        [each for each in person.list(talk.group_id) if each in names]
        for person in (talk.ann, talk.ben, talk.cleo)
    ]
    # Today's clients keep the time at which they first read a commit, and list by it.
    assert shown == [names, names, names[::-1]]
    assert talk.cleo.name(talk.group_id) == "second"


def test_list__more_than_a_page_of_texts_and_then_commits__has_all(talk: Talk) -> None:
    talk.dan.list(talk.group_id)
    texts = [f"text {number}" for number in range(110)]
    for text in texts:
        talk.ann.send(talk.group_id, text)
    for number in range(5):
        talk.ann.rename(talk.group_id, f"name {number}")

    # A page has 100: nobody can read a text of an epoch that lies more than three commits back.
    until(lambda: set(texts) <= set(talk.dan.list(talk.group_id)))
