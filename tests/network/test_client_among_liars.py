"""A client among nodes that lie to it together: what it believes, and what it keeps as evidence.

One network of three nodes and a gateway, each behind a proxy, serves all tests.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from sqlalchemy import update

from chainkit.identity import identifiers
from chainkit.identity.actions import RevokeAssociation
from chainkit.identity.writing import WalletSigner, written_update
from chainkit.misbehavior.evidence import Weight, judge_safety
from chainkit.misbehavior.report import parse_unsigned
from chainkit.protocol.methods import PUBLISH_CLIENT_ENVELOPES
from chainkit.signatures import SigningKey
from chainkit.types import NANOSECONDS_PER_SECOND, TopicKind
from chainkit_client.groups.publishing import advance
from chainkit_client.messenger import Messenger
from chainkit_client.network.group_network import LOST_SECONDS
from chainkit_client.network.payloads import identity_payload
from chainkit_client.storage.evidence import count_unknown
from chainkit_client.storage.schema import attempts, group_intents
from support.chains.chain import Deployment
from support.network.among_liars import AmongLiars, among_liars
from support.network.grpc_proxy import Ask, Dropped
from support.network.people import People, new_person, texts


@pytest.fixture(scope="module")
def liars(
    local_deployment: Deployment, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AmongLiars]:
    with among_liars(local_deployment, tmp_path_factory.mktemp("liars")) as running:
        yield running


def proved(liars: AmongLiars, client: Messenger) -> set[int]:
    """The nodes that the client's reports prove to have lied; each report must."""
    keys, now_ns = liars.network.keys(), time.time_ns()
    for each in client.breaches():
        assert each.report is not None, each.reason
        judgement = judge_safety(parse_unsigned(each.report), keys, now_ns)
        assert judgement.weight is Weight.PROVED, judgement.reason
    return {each.node_id for each in client.breaches()}


async def swallow(liars: AmongLiars, client: Messenger, group_id: bytes, words: str) -> int:
    """Have a node sign a message and store nothing; return the node's id."""
    topic = TopicKind.GROUP_MESSAGE.topic(group_id)
    with liars.swallowing(topic) as places:
        client.send(group_id, words)
        await advance(client._opened, client._network, group_id, time.time_ns())
    [place] = places
    liars.outgrow(place)
    return place[0]


def sent_before(client: Messenger, seconds: int) -> None:
    """Let a client have sent so much earlier whatever it has sent and not read back."""
    earlier_ns = seconds * NANOSECONDS_PER_SECOND
    with client._store.writing() as connection:
        for time_of in (group_intents.c.sent_at_ns, attempts.c.built_at_ns):
            connection.execute(update(time_of.table).values({time_of: time_of - earlier_ns}))


def test_client__answers_of_the_gateway_are_lost__message_arrives_once_and_nobody_is_accused(
    liars: AmongLiars,
) -> None:
    async def play(people: People) -> None:
        ann, ben, group_id = await people.two_in_a_group()

        def lost(request: bytes, ask: Ask) -> bytes:
            ask(request)
            raise Dropped

        liars.gateway.answers[PUBLISH_CLIENT_ENVELOPES] = lost
        ann.send(group_id, "hello")
        await ann.settle()
        await ben.sync()

        assert texts(ann, group_id) == texts(ben, group_id) == ["hello"]
        assert ann.breaches() == ben.breaches() == []

    liars.play(play)


def test_client__node_signs_a_message_and_stores_nothing__keeps_its_signature_and_proves_it(
    liars: AmongLiars,
) -> None:
    async def play(people: People) -> None:
        ann, ben, group_id = await people.two_in_a_group()
        await ben.sync()
        liar_id = await swallow(liars, ann, group_id, "swallowed")

        # Another process of the same client reads the head that denies it.
        again = await people.open("ann")
        await again.sync()

        assert proved(liars, again) == {liar_id}

    liars.play(play)


def test_client__node_signs_a_message_and_stores_nothing__message_arrives_all_the_same(
    liars: AmongLiars,
) -> None:
    async def play(people: People) -> None:
        ann, ben, group_id = await people.two_in_a_group()
        await ben.sync()
        await swallow(liars, ann, group_id, "swallowed")
        for _ in range(2):
            # The gateway answers the same bytes with the envelope that nobody has.
            sent_before(ann, LOST_SECONDS)
            await ann.sync()
        await ann.settle(20)
        await ben.sync()

        assert texts(ann, group_id) == texts(ben, group_id) == ["swallowed"]

    liars.play(play)


def test_client__node_signs_a_welcome_and_stores_nothing__keeps_its_signature_and_proves_it(
    liars: AmongLiars,
) -> None:
    async def play(people: People) -> None:
        ann, _ = await people.register("ann")
        ben, ben_address = await people.register("ben")
        await ann.create_group([ben_address])
        topic = TopicKind.WELCOME.topic(ben.installation.public_key)
        with liars.swallowing(topic) as places:
            await ann.settle()
        [place] = places
        liars.outgrow(place)

        await ann.sync()

        assert proved(liars, ann) == {place[0]}

    liars.play(play)


def test_client__one_of_two_colluders_is_proved_false__another_node_is_asked_in_its_place(
    liars: AmongLiars,
) -> None:
    async def play(people: People) -> None:
        ann, ben, group_id = await people.two_in_a_group()
        await ben.sync()
        ben.accept(group_id)
        topic = TopicKind.GROUP_MESSAGE.topic(group_id)
        liar_id = await swallow(liars, ben, group_id, "swallowed")
        await ben.sync()

        ann.update_keys(group_id)
        await ann.settle()
        hidden = liars.of_chain(topic, 1)
        others = [each for each in liars.preferred(topic) if each.node_id != liar_id]
        for node_id in (liar_id, others[0].node_id):
            liars.hide(node_id, hidden)
        await ben.sync()

        assert proved(liars, ben) == {liar_id}
        assert [each.groups()[-1].epoch for each in (ann, ben)] == [2, 2]

    liars.play(play)


async def revoke_the_first_of_two(people: People, name: str) -> tuple[str, list[Messenger]]:
    """Register two installations of a wallet, and revoke the first; return the address, too."""
    account = new_person()
    wallet = SigningKey(bytes(account.key))
    both = [await people.open(f"{name} {number}") for number in (1, 2)]
    for each in both:
        inbox = await each.register(wallet)
    revoked = identifiers.installation(both[0].installation.public_key)
    steps = [(RevokeAssociation(revoked), [WalletSigner(wallet)])]
    now_ns = time.time_ns()
    payload = identity_payload(inbox.id, written_update(inbox.id, now_ns, steps), None)
    await both[1].session.publisher.publish(payload, now_ns)
    return account.address, both


def test_client__nodes_leave_a_revocation_out_or_make_another_up__revoked_is_not_added(
    liars: AmongLiars,
) -> None:
    async def play(people: People) -> None:
        ann, _ = await people.register("ann")
        address, (_, kept) = await revoke_the_first_of_two(people, "ben")
        topic = TopicKind.IDENTITY_UPDATE.topic(kept.inbox_id)
        revocation = liars.of_chain(topic, 3)[-1]
        first, *others = liars.preferred(topic)
        liars.make_up(first, revocation)
        for node in others:
            liars.hide(node.node_id, {revocation})

        group_id = await ann.create_group([address])
        await ann.settle()

        members = {each.public_key for each in ann.members(group_id)}
        assert members == {ann.installation.public_key, kept.installation.public_key}
        assert await ann.impostors(group_id) == []
        # It is no proof: a reorg may have taken back what an honest node served.
        assert ann.breaches() == []
        with ann._store.reading() as connection:
            unknown = count_unknown(connection)
        assert list(unknown) == [first.node_id] and unknown[first.node_id] > 1

    liars.play(play)


def test_client__two_asked_nodes_differ__asks_all(liars: AmongLiars) -> None:
    async def play(people: People) -> None:
        ann, ben, group_id = await people.two_in_a_group()
        await ben.sync()
        topic = TopicKind.GROUP_MESSAGE.topic(group_id)
        first, second, _ = liars.preferred(topic)
        for _ in range(2):
            ann.update_keys(group_id)
            await ann.settle()
        two, three = liars.of_chain(topic, 2)
        liars.hide(first.node_id, {two, three})
        liars.hide(second.node_id, {three})
        await ben.sync()

        assert [each.groups()[-1].epoch for each in (ann, ben)] == [3, 3]
        assert ann.breaches() == ben.breaches() == []

    liars.play(play)
