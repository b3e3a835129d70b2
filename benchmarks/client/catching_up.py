"""A group's messages: read, verified, ordered, decrypted and stored, beside MLS alone."""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chainkit.protocol.originated_envelope import (
    OriginatedEnvelope,
    sign_originated,
    unsigned_originated,
)
from chainkit.protocol.payer_envelope import sign_payer_envelope
from chainkit.protocol.proto import envelopes_pb2
from chainkit.signatures import SigningKey, keccak256
from chainkit.types import NANOSECONDS_PER_SECOND, TopicKind
from chainkit_client.groups.groups import Groups
from chainkit_client.groups.joining import WelcomePayload
from chainkit_client.groups.payload import Payload
from chainkit_client.groups.plaintext import Plaintext
from chainkit_client.groups.welcome import Welcome
from chainkit_client.mls.engine import Installation, KeyPackage
from chainkit_client.mls.node_engine import NodeEngine
from chainkit_client.reading.verified import Keys
from chainkit_client.storage.own import insert_installation, insert_key_package
from chainkit_client.storage.schema import PayloadStatus
from chainkit_client.storage.store import Store
from chainkit_client.topics.following import Topic

PAGE: Final = 500
NODE_ID: Final = 100
TEXT_BYTES: Final = 64
_GROUP_ID: Final = b"g" * 16
_TOPIC: Final = TopicKind.GROUP_MESSAGE.topic(_GROUP_ID)
_BEGIN_NS: Final = 1_700_000_000 * NANOSECONDS_PER_SECOND


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """The floor and the figure of one run, in messages a second."""

    engine_per_second: float
    """The engine alone decrypts them, one after the other."""
    per_second: float


@dataclass(frozen=True, slots=True)
class _Reader:
    """Somebody who was invited, and has read nothing yet."""

    installation: Installation
    key_package: KeyPackage
    welcome: bytes


def measure(count: int) -> CaughtUp:
    """Measure so many messages of one sender in one epoch."""
    node, payer = SigningKey(secrets.token_bytes(32)), SigningKey(secrets.token_bytes(32))
    with NodeEngine() as engine, tempfile.TemporaryDirectory() as folder:
        reader, sent = _group(engine, count)
        envelopes = [
            _originated(number, client, node, payer) for number, client in enumerate(sent, 1)
        ]
        began = time.perf_counter()
        _decrypt(engine, reader, sent)
        alone = time.perf_counter() - began
        store = Store.open(Path(folder) / "client.db", "password")
        groups = _joined(engine, store, reader)
        began = time.perf_counter()
        _catch_up(groups, envelopes, Keys({NODE_ID: node.public_key}))
        elapsed = time.perf_counter() - began
        store.close()
    return CaughtUp(count / alone, count / elapsed)


def _group(engine: NodeEngine, count: int) -> tuple[_Reader, Sequence[bytes]]:
    """Return one member of a group, and the ClientEnvelopes that the other one sent to it."""
    ann, ben = engine.new_installation(b"ann"), engine.new_installation(b"ben")
    offer = engine.new_key_package(ben)
    staged = engine.add(engine.create(ann, _GROUP_ID), [offer.public], bytes(32))
    assert staged.welcome is not None
    state, sent = staged.state, []
    view = engine.view(state)
    for number in range(count):
        client = envelopes_pb2.ClientEnvelope()
        client.aad.target_topic = _TOPIC
        client.aad.last_seen.node_id_to_sequence_id[NODE_ID] = number
        digest = keccak256(client.aad.SerializeToString())
        text = secrets.token_bytes(TEXT_BYTES)
        plaintext = Plaintext(_BEGIN_NS + number, view.epoch, (view.epoch_authenticator,), text)
        encrypted = engine.encrypt(state, plaintext.encoded(), digest)
        state = encrypted.state
        client.group_message.v1.data = encrypted.message
        sent.append(client.SerializeToString())
    return _Reader(ben, offer, staged.welcome), sent


def _originated(number: int, client: bytes, node: SigningKey, payer: SigningKey) -> bytes:
    paid = sign_payer_envelope(client, NODE_ID, payer)
    time_ns = _BEGIN_NS + number * NANOSECONDS_PER_SECOND
    stated = OriginatedEnvelope(NODE_ID, number, time_ns, paid)
    return sign_originated(unsigned_originated(stated), node)


def _decrypt(engine: NodeEngine, reader: _Reader, sent: Sequence[bytes]) -> None:
    state = engine.join(reader.installation, reader.key_package, reader.welcome)
    for each in sent:
        message = envelopes_pb2.ClientEnvelope.FromString(each).group_message.v1.data
        state = engine.receive(state, message).state


def _joined(engine: NodeEngine, store: Store, reader: _Reader) -> Groups:
    with store.writing() as connection:
        insert_installation(connection, store.seal, reader.installation)
        insert_key_package(connection, store.seal, reader.key_package, 1)
    groups = Groups(store, engine)
    welcome = Welcome(None, reader.welcome).encoded()
    assert groups.take_welcome(WelcomePayload(NODE_ID, 1, 1, welcome)) == _GROUP_ID
    return groups


def _catch_up(groups: Groups, envelopes: Sequence[bytes], keys: Keys) -> None:
    topic = Topic(_TOPIC)
    now_ns = _BEGIN_NS + len(envelopes) * NANOSECONDS_PER_SECOND
    for start in range(0, len(envelopes), PAGE):
        page = envelopes[start : start + PAGE]
        followed = topic.take(page, NODE_ID, keys, now_ns)
        outcomes = groups.apply(_GROUP_ID, [Payload.of(each.envelope) for each in followed.applied])
        assert all(each.status is PayloadStatus.SUCCEEDED for each in outcomes)
        assert len(outcomes) == len(page)
