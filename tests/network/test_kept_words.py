"""What was sent arrives with all, and no honest node is accused: a client in hostile company.

One network, and one group of two people, serve all tests.
"""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, closing
from dataclasses import dataclass

import pytest

from chainkit.chain import Endpoint
from chainkit.contracts.deployment import read_deployment_record
from chainkit.protocol.envelope import stated_place
from chainkit.protocol.payer_envelope import sign_payer_envelope
from chainkit_client.messenger import Messenger
from chainkit_client.mls.node_engine import NodeEngine
from chainkit_client.network.chain import Chain
from chainkit_client.topics.following import PATIENCE_SECONDS
from localnet.commands import Settings
from localnet.network import Network, publish_welcome
from support import publishes
from support.network.api import Api
from support.network.originator import SECOND_NS
from support.network.people import People

SECONDS = 120
OTHERS = 20


@dataclass
class Company:
    """Ann and ben in a group, and the event loop of their clients."""

    people: People
    ann: Messenger
    ben: Messenger
    group_id: bytes
    runner: asyncio.Runner


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
            ann, ben, group_id = await people.two_in_a_group()
            await ben.sync()
            ben.accept(group_id)
            return Company(people, ann, ben, group_id, runner)

        yield runner.run(meet())
        runner.run(opened.aclose())


class Clock:
    """The time of now, and later where a test says so."""

    def __init__(self) -> None:
        self.ahead_ns = 0

    def __call__(self) -> int:
        return time.time_ns() + self.ahead_ns


def test_client__strangers_name_old_ids_of_another_topic__accuses_nobody(
    company: Company, network: Network
) -> None:
    with closing(Api(network.node_url)) as api:
        welcomes = [
            publish_welcome(network.node_url, network.node_id, bytes([number]) * 32)
            for number in range(1, OTHERS + 1)
        ]
        for welcome in welcomes:
            _, sequence_id = stated_place(welcome)
            seen = {network.node_id: sequence_id}
            message = publishes.group_message(identifier=company.group_id, seen=seen)
            api.publish(sign_payer_envelope(message, network.node_id, publishes.PAYER))

    async def play() -> None:
        async with asyncio.timeout(SECONDS):
            ben = await company.people.open("ben")
            ben._session.now_ns = clock = Clock()
            await ben.sync()
            clock.ahead_ns = int((PATIENCE_SECONDS + 1) * SECOND_NS)
            await ben.sync()

            assert ben.breaches() == []

    company.runner.run(play())


def test_client__somebody_has_the_file_without_its_password__guesses_no_short_message(
    company: Company,
) -> None:
    async def play() -> None:
        async with asyncio.timeout(SECONDS):
            company.ann.send(company.group_id, "yes")
            company.ann.update_keys(company.group_id)
            await company.ann.settle()
            await company.ben.sync()

    company.runner.run(play())
    said = company.ann.messages(company.group_id)[-1]
    hidden = {said.id, said.sent_at_ns, said.sender, said.sender_account, said.content}
    assert (
        said.id
        == hashlib.sha256(b"yes" + company.group_id + said.sent_at_ns.to_bytes(8, "big")).digest()
    )

    for name in ("ann", "ben"):
        with closing(sqlite3.connect(company.people.database(name))) as connection:
            shown: set[object] = set()
            for table in ("group_messages", "group_intents", "payload_results"):
                for row in connection.execute(f"SELECT * FROM {table}"):
                    shown.update(row)
        assert shown & hidden == set()
