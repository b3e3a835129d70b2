"""A group whose messages one device has read and a node serves, and the person's second device."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from benchmarks.client.verifying import message
from benchmarks.network.nodes import PASSWORD, BenchmarkNode, Registry, new_registry
from benchmarks.network.rows import fill
from chainkit.protocol.originated_envelope import (
    OriginatedEnvelope,
    sign_originated,
    unsigned_originated,
)
from chainkit.protocol.payer_envelope import sign_payer_envelope
from chainkit.signatures import SigningKey
from chainkit.types import TopicKind
from chainkit_client.groups.plaintext import message_id
from chainkit_client.groups.transcript import Message, insert_message
from chainkit_client.storage import schema
from chainkit_client.storage.payloads import PayloadResult, move_cursor, write_result
from chainkit_client.storage.schema import DeliveryStatus, MessageKind, PayloadStatus
from chainkit_client.storage.store import Store
from chainkit_indexer.storage.envelopes import StoredEnvelope
from localnet.commands import run_json
from localnet.network import start_gateway
from localnet.storage import start_storage

TEXT_BYTES: Final = 64
_AT_ONCE: Final = 5_000
_APART_NS: Final = 100_000
_PAYER: Final = SigningKey(b"\x11" * 32)
_HIGHEST: Final = "SELECT coalesce(max(sequence_id), 0) FROM envelopes WHERE originator_id = ?"
_LETTERS: Final = b"abcdefghijklmnopqrstuvwxyz      "


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody's two devices: the first has read all, the second has asked it for that."""

    registry: Registry
    laptop: Path
    phone: Path
    request_id: str
    pin: str
    envelopes: Sequence[bytes]
    """Some of the messages' envelopes, as the node serves them."""

    def words(self, home: Path, *words: str) -> list[str]:
        """Return the words of a command of a device."""
        return ["client", "history", *words, "--home", str(home)]

    def files(self) -> list[Path]:
        """Return the files that the storage service keeps."""
        return list((self.registry.folder / "storage" / "granted").iterdir())


@contextmanager
def asking_person(folder: Path, count: int) -> Iterator[Person]:
    """Run a network of one node that has so many messages of a group; it ends with the block."""
    with ExitStack() as stack:
        registry = stack.enter_context(new_registry(folder / "network"))
        node = BenchmarkNode(stack, registry, "node")
        node.start()
        node.join()
        node.wait_for("own_log_known")
        settings, network = registry.settings, registry.folder
        storage = start_storage(stack, settings, network)
        gateway = start_gateway(stack, settings, network, PASSWORD, *storage.gateway_options)

        def client(*words: str | Path) -> Any:
            return run_json(settings, "client", *words)

        laptop, phone, other = (folder / name for name in ("laptop", "phone", "other"))
        init = ("init", "--gateway", gateway, "--home")
        client(*init, laptop, "--storage", storage.url)
        friend = client(*init, other)
        group = bytes.fromhex(client("group", "new", friend["address"], "--home", laptop)["group"])
        node.stop()
        envelopes = _write_past(node, laptop / "client.db", group, friend, count)
        node.start()
        node.wait_for("own_log_known")
        wallet = ("--wallet", laptop / "wallet.keystore")
        asked = client(*init, phone, *wallet, "--storage", storage.url)["history"]
        [request] = asked["requests"]
        yield Person(registry, laptop, phone, request["id"], asked["pin"], envelopes)


def _write_past(
    node: BenchmarkNode, database: Path, group: bytes, friend: dict[str, Any], count: int
) -> list[bytes]:
    """Have the friend write messages, which the node has signed and the device has read."""
    with closing(sqlite3.connect(node.database)) as connection:
        [highest] = connection.execute(_HIGHEST, (node.node_id,)).fetchone()
    rows = list(_envelopes(node, group, highest, count))
    fill(node.database, node.node_id, rows)
    store = Store.open(database, PASSWORD)
    chance, remaining = random.Random(7), iter(rows)
    while some := list(islice(remaining, _AT_ONCE)):
        with store.writing() as connection:
            for row in some:
                _read(store, connection, group, friend, row, chance)
    store.close()
    return [row.envelope for row in rows[: count // 3]]


def _envelopes(
    node: BenchmarkNode, group: bytes, highest: int, count: int
) -> Iterator[StoredEnvelope]:
    chance, key, node_id = random.Random(11), node.key, node.node_id
    topic = TopicKind.GROUP_MESSAGE.topic(group)
    first_ns, seen = time.time_ns() - count * _APART_NS, dict[int, int]()
    for place in range(count):
        number, time_ns = highest + 1 + place, first_ns + place * _APART_NS
        paid = sign_payer_envelope(message(chance, group, seen), node_id, _PAYER)
        unsigned = unsigned_originated(OriginatedEnvelope(node_id, number, time_ns, paid))
        envelope = sign_originated(unsigned, key)
        yield StoredEnvelope(node_id, number, time_ns, topic, None, envelope)
        seen = {node_id: number}


def _read(
    store: Store,
    connection: Any,
    group: bytes,
    friend: dict[str, Any],
    row: StoredEnvelope,
    chance: random.Random,
) -> None:
    """Store a message as the device that has read it."""
    text = bytes(chance.choices(_LETTERS, k=TEXT_BYTES))
    place = row.originator_id, row.sequence_id
    insert_message(
        connection,
        store.seal,
        Message(
            id=message_id(text, group, row.originator_ns),
            group_id=group,
            kind=MessageKind.APPLICATION,
            content=text,
            sent_at_ns=row.originator_ns,
            sender=bytes.fromhex(friend["installation"]),
            sender_account=friend["inbox_id"],
            delivery=DeliveryStatus.PUBLISHED,
            epoch=1,
            place=place,
            originator_ns=row.originator_ns,
        ),
    )
    kept = {"originator_id": place[0], "sequence_id": place[1], "topic": row.topic}
    connection.execute(schema.kept_envelopes.insert().values(**kept, envelope=row.envelope))
    status = PayloadStatus.SUCCEEDED
    write_result(
        connection, PayloadResult(row.topic, *place, row.originator_ns, b"\1" * 32, status)
    )
    move_cursor(connection, row.topic, *place, row.originator_ns)
