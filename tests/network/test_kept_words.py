"""All words that were sent arrive, and no honest node is accused: a client in hostile company.

One network, and one group of two people, serve all tests.
"""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from chainkit.chain import Endpoint
from chainkit.contracts.deployment import read_deployment_record
from chainkit.contracts.followed import read_followed_deployment
from chainkit.contracts.posting import posting_calldata
from chainkit.protocol.envelope import stated_place
from chainkit.protocol.payer_envelope import sign_payer_envelope
from chainkit.text.hexadecimal import hex0x
from chainkit.types import TopicKind
from chainkit_client.cli.pages import members_lines, message_line
from chainkit_client.groups.publishing import advance
from chainkit_client.groups.transcript import Message
from chainkit_client.groups.welcome import Welcome
from chainkit_client.messenger import UNHEARD_SECONDS, Messenger
from chainkit_client.mls.node_engine import NodeEngine
from chainkit_client.network.chain import Chain
from chainkit_client.storage.schema import MessageKind, PayloadStatus
from chainkit_client.topics.following import PATIENCE_SECONDS
from localnet.accounts import development_account
from localnet.anvil import Anvil
from localnet.commands import Settings
from localnet.network import Network, publish_welcome
from support import mls, publishes
from support.network.api import Api
from support.network.originator import SECOND_NS
from support.network.people import People, texts
from support.network.real_nodes import until
from support.network.two_histories import with_changed_end

SECONDS = 120
OTHERS = 20
IN_2100_NS = 4_102_444_800 * SECOND_NS


@dataclass
class Company:
    """Ann and ben in a group, and the event loop of their clients."""

    people: People
    ann: Messenger
    ben: Messenger
    ben_address: str
    runner: asyncio.Runner

    async def new_group(self) -> bytes:
        """A group of ann's that ben has accepted."""
        group_id = await self.ann.create_group([self.ben_address])
        await self.ann.settle()
        await self.ben.sync()
        self.ben.accept(group_id)
        return group_id

    async def answer(self, group_id: bytes, words: str) -> None:
        """Bring what ann has sent to ben, and ben's answer to ann."""
        await self.ann.settle()
        await self.ben.sync()
        self.ben.send(group_id, words)
        await self.ben.settle()
        await self.ann.sync()

    def play(self, play: Callable[[bytes], Awaitable[None]]) -> None:
        """Play in a new group, on the clients' event loop."""

        async def run() -> None:
            async with asyncio.timeout(SECONDS):
                await play(await self.new_group())

        self.runner.run(run())


@pytest.fixture(scope="module")
def company(
    settings: Settings, network: Network, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Company]:
    record = read_deployment_record(settings.record_path)
    with ExitStack() as stack, asyncio.Runner() as runner:
        engine = stack.enter_context(NodeEngine())
        endpoint = Endpoint.connect(settings.rpc_url)
        opened = AsyncExitStack()
        folder = tmp_path_factory.mktemp("company")
        chain = Chain(endpoint, record, frozenset({0}))
        people = People(opened, chain, network, engine, folder)

        async def meet() -> Company:
            ann, _ = await people.register("ann")
            ben, ben_address = await people.register("ben")
            return Company(people, ann, ben, ben_address, runner)

        yield runner.run(meet())
        runner.run(opened.aclose())


class Clock:
    """The time of now, and later where a test says so."""

    def __init__(self) -> None:
        self.ahead_ns = 0

    def __call__(self) -> int:
        return time.time_ns() + self.ahead_ns


def stranger_says(network: Network, group_id: bytes, sequence_id: int) -> None:
    """Publish a message of a group that names an id of the node."""
    seen = {network.node_id: sequence_id}
    message = publishes.group_message(identifier=group_id, seen=seen)
    with closing(Api(network.node_url)) as api:
        api.publish(sign_payer_envelope(message, network.node_id, publishes.PAYER))


def stranger_posts(
    chain: Anvil, settings: Settings, network: Network, group_id: bytes, message: bytes
) -> None:
    """Post bytes on a group's topic on the chain, which no gateway takes; the node serves them."""
    deployment = read_followed_deployment(settings.record_path)
    contract = next(one for one in deployment.contracts if one.kind is TopicKind.GROUP_MESSAGE)
    payload = publishes.group_message(message, identifier=group_id)
    call = {
        "from": development_account(7).address,
        "to": hex0x(contract.address),
        "data": hex0x(posting_calldata(contract, group_id, payload)),
    }
    chain.request("eth_sendTransaction", call)
    topic = TopicKind.GROUP_MESSAGE.topic(group_id)
    with closing(Api(network.node_url)) as api:
        until(lambda: any(message in each for each in api.query(topics=[topic])))


def test_client__stranger_posts_what_is_no_mls_on_the_chain__people_talk_on(
    company: Company, chain: Anvil, settings: Settings, network: Network
) -> None:
    async def play(group_id: bytes) -> None:
        await asyncio.to_thread(stranger_posts, chain, settings, network, group_id, b"no MLS")
        company.ann.send(group_id, "still here")
        await company.answer(group_id, "so am I")

        for each in (company.ann, company.ben):
            assert texts(each, group_id) == ["still here", "so am I"]
            assert each.breaches() == []

    company.play(play)


def test_client__strangers_name_old_ids_of_another_topic__accuses_nobody(
    company: Company, network: Network
) -> None:
    async def play(group_id: bytes) -> None:
        welcomes = [
            publish_welcome(network.node_url, network.node_id, bytes([number]) * 32)
            for number in range(1, OTHERS + 1)
        ]
        for welcome in welcomes:
            stranger_says(network, group_id, stated_place(welcome)[1])
        ben = await company.people.open("ben")
        ben.session.now_ns = clock = Clock()
        await ben.sync()
        clock.ahead_ns = int((PATIENCE_SECONDS + 1) * SECOND_NS)
        await ben.sync()

        assert ben.breaches() == []

    company.play(play)


def test_client__somebody_has_the_file_without_its_password__guesses_no_short_message(
    company: Company,
) -> None:
    async def play(group_id: bytes) -> None:
        company.ann.send(group_id, "yes")
        company.ann.update_keys(group_id)
        await company.ann.settle()
        await company.ben.sync()

        said = company.ann.messages(group_id)[-1]
        hidden = {said.id, said.sent_at_ns, said.sender, said.sender_account, said.content}
        words = b"yes" + group_id + said.sent_at_ns.to_bytes(8, "big")
        assert said.id == hashlib.sha256(words).digest()
        for name in ("ann", "ben"):
            assert stored_values(company.people.database(name)) & hidden == set()

    company.play(play)


def test_client__messages_dated_2100__hide_no_later_message_and_are_marked(
    company: Company,
) -> None:
    async def play(group_id: bytes) -> None:
        company.ann._opened.send(group_id, b"from 2100", IN_2100_NS)
        await company.answer(group_id, "later")

        for each in (company.ann, company.ben):
            assert texts(each, group_id) == ["from 2100", "later"]
            dated, later = each.messages(group_id)[-2:]
            assert (dated.is_dated_apart, later.is_dated_apart) == (True, False)
            assert abs(dated.time_ns - time.time_ns()) < SECONDS * SECOND_NS
        line = message_line(dated, "", time.time_ns())
        assert line.endswith("from 2100  (its sender says 2100-01-01 00:00:00)")

    company.play(play)


def stored_values(database: Path) -> set[object]:
    """All values of the tables that tell of messages, as anybody reads them from the file."""
    with closing(sqlite3.connect(database)) as connection:
        return {
            value
            for table in ("group_messages", "group_intents", "payload_results")
            for row in connection.execute(f"SELECT * FROM {table}")
            for value in row
        }


def publish_changed(network: Network, database: Path, message: Message) -> None:
    """Publish a message of a database again, with another last byte."""
    with closing(sqlite3.connect(database)) as connection:
        query = "SELECT envelope FROM kept_envelopes WHERE (originator_id, sequence_id) = (?, ?)"
        [envelope] = connection.execute(query, message.place).fetchone()
    with closing(Api(network.node_url)) as api:
        api.publish(with_changed_end(envelope, network.node_id))


def copy_database(company: Company, name: str, copy: str) -> None:
    """Copy a client's database, as a backup does."""
    path, other = company.people.database(name), company.people.database(copy)
    with closing(sqlite3.connect(path)) as one, closing(sqlite3.connect(other)) as another:
        one.backup(another)


def test_client__home_is_restored_from_a_copy__loses_no_word_and_says_so(
    company: Company,
) -> None:
    async def play(group_id: bytes) -> None:
        copy_database(company, "ann", "restored")
        for words in ("one", "two"):
            company.ann.send(group_id, words)
        await company.ann.settle()

        restored = await company.people.open("restored")
        restored.send(group_id, "three")
        await restored.settle()
        await company.ben.sync()
        await company.ann.sync()

        assert texts(company.ben, group_id) == ["one", "two", "three"]
        assert sorted(texts(restored, group_id)) == ["one", "three", "two"]
        [copied] = [each for each in restored.groups() if each.id == group_id]
        assert copied.copied_at_epoch == 1
        # The first home is the copy that cannot follow.
        [behind] = [each for each in company.ann.groups() if each.id == group_id]
        assert (behind.is_member, behind.epoch) == (False, 2)
        # It need not be the last: the chain's clock lags behind the node's after a test's reorg.
        kinds = [each.kind for each in company.ann.messages(group_id)]
        assert kinds.count(MessageKind.LEFT_BEHIND) == 1

    company.play(play)


def test_client__two_copies_of_a_home_use_one_key__others_read_that_a_message_is_lost(
    company: Company, network: Network
) -> None:
    async def play(group_id: bytes) -> None:
        copy_database(company, "ann", "twin")
        company.ann.send(group_id, "one")
        await company.ann.settle()
        twin = await company.people.open("twin")
        # It sends before it reads.
        await twin.session.refresh()
        twin.send(group_id, "lost")
        await advance(twin._opened, twin._network, group_id, time.time_ns())
        await company.ben.sync()
        # A stranger changes the end of a message that was read: of this there is no row.
        said, lost = company.ben.messages(group_id)[-2:]
        publish_changed(network, company.people.database("ben"), said)
        await company.ben.sync()

        assert texts(company.ben, group_id) == ["one"]
        assert company.ben.messages(group_id)[-2:] == [said, lost]
        assert (lost.kind, lost.sender) == (
            MessageKind.UNREADABLE,
            company.ann.installation.public_key,
        )
        assert "its key was used before" in lost.warning
        assert company.ben._opened.results(group_id)[-1].status is PayloadStatus.FAILED

    company.play(play)


def test_client__a_key_package_was_used__offers_another_one_for_the_next_group(
    company: Company,
) -> None:
    async def play(group_id: bytes) -> None:
        ben = company.ben.installation.public_key
        first = await company.ann._network.fetch_key_packages([ben])
        other_id = await company.new_group()
        second = await company.ann._network.fetch_key_packages([ben])
        company.ann.send(other_id, "by the next one")
        await company.answer(other_id, "yes")

        assert first.keys() == second.keys() == {ben}
        assert first[ben] != second[ben]
        assert texts(company.ann, other_id) == ["by the next one", "yes"]

    company.play(play)


def test_client__strangers_send_welcomes_that_open_nothing__tells_of_that_to_its_key_package(
    company: Company, network: Network
) -> None:
    async def play(group_id: bytes) -> None:
        ben = company.ben.installation.public_key
        offers = await company.ann._network.fetch_key_packages([ben])
        named = hashlib.sha256(
            mls.vector(b"MLS 1.0 KeyPackage Reference") + mls.vector(offers[ben][4:])
        ).digest()
        for reference in (bytes(32), named):
            secrets = mls.vector(reference) + 2 * mls.vector(b"junk")
            junk = b"\0\1\0\3\0\3" + mls.vector(secrets) + mls.vector(b"junk")
            welcome = publishes.welcome(ben, data=Welcome(None, junk).encoded())
            with closing(Api(network.node_url)) as api:
                api.publish(sign_payer_envelope(welcome, network.node_id, publishes.PAYER))
        await company.ben.sync()
        other_id = await company.new_group()

        [told] = company.ben.unopened_welcomes()
        assert "MLS" in told.reason
        assert other_id in [each.id for each in company.ben.groups()]

    company.play(play)


def test_client__the_invited_says_nothing__tells_that_it_may_not_have_joined(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(group_id: bytes) -> None:
        ben = company.ben.installation.public_key
        clock = Clock()
        monkeypatch.setattr(company.ann.session, "now_ns", clock)

        assert company.ann.unheard(group_id) == {}
        clock.ahead_ns = (UNHEARD_SECONDS + SECONDS) * SECOND_NS
        assert company.ann.unheard(group_id).keys() == {ben}
        assert "may not have joined, added" in "".join(
            members_lines(company.ann.members(group_id), [], company.ann.unheard(group_id), "")
        )
        clock.ahead_ns = 0
        await company.answer(group_id, "I am here")
        clock.ahead_ns = (UNHEARD_SECONDS + SECONDS) * SECOND_NS
        assert company.ann.unheard(group_id) == {}

    company.play(play)
