"""A history file from one device to another: all of it or nothing, once, and marked."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from chainkit.errors import InvalidSignature, MalformedData
from chainkit.signatures import keccak256
from chainkit_client.groups.overview import read_groups, read_imported_groups
from chainkit_client.history.packing import pack, recipient_of
from chainkit_client.storage.imported_schema import Standing, imported_files, imported_messages
from chainkit_client.storage.own import read_installation
from chainkit_client.storage.schema import DeliveryStatus, MessageKind
from support.client.group_network import memory_folder
from support.client.history_devices import (
    BEGIN_NS,
    GROUP,
    INBOX,
    NODE,
    HistoryDevice,
    lines_of,
    signed_lines,
    text,
)

Make = Callable[..., HistoryDevice]
Change = Callable[[list[bytes]], list[bytes]]
SENDER_ACCOUNT = ("cd" * 32).encode()
HELLO, THERE = (
    text(words, (NODE, n), BEGIN_NS + n) for n, words in enumerate((b"hello", b"there"), 1)
)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder without a disk below it, which every transaction would wait for."""
    with memory_folder() as folder:
        yield Path(folder)


@dataclass
class Refusing:
    """A device that refuses whatever is made of another one's file."""

    laptop: HistoryDevice
    phone: HistoryDevice
    data: bytes
    key: str

    def load(self, change: Change) -> None:
        data = rewritten(self.data, self.key, change)
        self.phone.load(data, self.key, [self.laptop.key])


@pytest.fixture(scope="module")
def refusing() -> Iterator[Refusing]:
    with memory_folder() as folder:
        laptop, phone = (HistoryDevice(Path(folder), number) for number in (1, 2))
        laptop.join()
        laptop.read(HELLO, THERE)
        key = laptop.save(Path(folder, "file"))
        yield Refusing(laptop, phone, Path(folder, "file").read_bytes(), key)
        # Not one of the tests has left a row.
        assert is_empty(phone)
        for each in (laptop, phone):
            each.store.close()


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Callable[..., HistoryDevice]]:
    made: list[HistoryDevice] = []

    def make(inbox: bytes = INBOX) -> HistoryDevice:
        made.append(HistoryDevice(tmp_path, len(made) + 1, inbox))
        return made[-1]

    yield make
    for each in made:
        each.store.close()


def rewritten(data: bytes, key: str, change: Change) -> bytes:
    """A file whose lines somebody changed who has the key, but not the device."""
    file = io.BytesIO()
    pack(change(lines_of(data, key)), file, recipient_of(key))
    return file.getvalue()


def is_empty(device: HistoryDevice) -> bool:
    with device.store.reading() as connection:
        return not connection.execute(select(imported_files.c.id)).all() and not device.messages()


@pytest.mark.conforms("H7")
def test_load__file_of_another_device__shows_its_messages_marked_and_once(
    device: Make, tmp_path: Path
) -> None:
    laptop, phone = device(), device()
    laptop.join()
    laptop.read(HELLO, THERE, replace(text(b"draft", None), delivery=DeliveryStatus.UNPUBLISHED))
    key = laptop.save(tmp_path / "file")
    data = (tmp_path / "file").read_bytes()

    first = phone.load(data, key, [laptop.key])
    second = phone.load(data, key, [laptop.key])
    key = laptop.save(tmp_path / "file")
    third = phone.load((tmp_path / "file").read_bytes(), key, [laptop.key])

    assert (first.new, first.known, first.disputed) == (2, 0, 0)
    assert (second.new, second.known) == (third.new, third.known) == (0, 2)
    assert phone.words() == [b"hello", b"there"]
    [hello, _] = phone.messages()
    assert hello == replace(HELLO, imported_from=laptop.key, is_proved=False)
    with phone.store.reading() as connection:
        [group] = read_imported_groups(connection)
        assert (group.id, group.is_imported, read_groups(connection)) == (GROUP, True, [])
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600


def test_load__device_has_read_a_message_itself__its_own_row_stands(
    device: Make, tmp_path: Path
) -> None:
    laptop, phone = device(), device()
    for each in (laptop, phone):
        each.join()
        each.read(HELLO)
    laptop.read(THERE)
    key = laptop.save(tmp_path / "file")

    loaded = phone.load((tmp_path / "file").read_bytes(), key, [laptop.key])

    assert (loaded.new, loaded.known) == (1, 1)
    assert [each.imported_from for each in phone.messages()] == [b"", laptop.key]


def test_load__own_row_comes_after_the_file__stands_for_the_imported_one(
    device: Make, tmp_path: Path
) -> None:
    laptop, phone = device(), device()
    laptop.join()
    laptop.read(HELLO)
    key = laptop.save(tmp_path / "file")
    phone.load((tmp_path / "file").read_bytes(), key, [laptop.key])
    phone.join()
    phone.read(HELLO)

    assert [each.imported_from for each in phone.messages()] == [b""]


def test_load__over_several_devices__later_fields_and_places_are_kept(
    device: Make, tmp_path: Path
) -> None:
    laptop, phone, tablet = device(), device(), device()
    laptop.join()
    laptop.read(HELLO)
    laptop.skip((NODE, 9))
    key = laptop.save(tmp_path / "file")
    digest = json.loads(lines_of((tmp_path / "file").read_bytes(), key)[2])["digest"]

    def with_more(lines: list[bytes]) -> list[bytes]:
        header, group, message, _ = lines
        message = json.dumps(json.loads(message) | {"reaction": {"of": [1]}}).encode()
        return signed(laptop, [header, group, b'{"kind":"sticker"}', message])

    data = rewritten((tmp_path / "file").read_bytes(), key, with_more)
    phone.load(data, key, [laptop.key])
    again = phone.save(tmp_path / "again")
    lines = lines_of((tmp_path / "again").read_bytes(), again)
    tablet.load((tmp_path / "again").read_bytes(), again, [phone.key])

    header, group, message = map(json.loads, lines[:3])
    assert (header["format"], header["version"]) == ("chainkit-history", 1)
    assert (header["groups"], header["messages"], len(lines)) == (1, 1, 4)
    assert message["reaction"] == {"of": [1]}
    assert message["digest"] == digest
    assert (message["originator"], message["sequence_id"]) == (NODE, 1)
    assert (group["read"], group["skipped"]) == ({str(NODE): 9}, {str(NODE): [9]})
    assert tablet.messages() == [replace(HELLO, imported_from=phone.key, is_proved=False)]


def signed(device: HistoryDevice, lines: list[bytes]) -> list[bytes]:
    """Lines, and the signature of a device over them."""
    with device.store.reading() as connection:
        secret = read_installation(connection, device.store.seal).secret
    return signed_lines(secret, lines)


@pytest.mark.conforms("H12")
def test_save__since_a_time__leaves_out_what_is_older(device: Make, tmp_path: Path) -> None:
    laptop, phone = device(), device()
    laptop.join()
    laptop.read(HELLO, text(b"later", (NODE, 2), BEGIN_NS + 10))
    key = laptop.save(tmp_path / "file", BEGIN_NS + 5)
    phone.load((tmp_path / "file").read_bytes(), key, [laptop.key])

    assert phone.words() == [b"later"]


def edited(index: int, **changes: Any) -> Change:
    def change(lines: list[bytes]) -> list[bytes]:
        line = json.dumps(json.loads(lines[index]) | changes).encode()
        return [*lines[:index], line, *lines[index + 1 :]]

    return change


@pytest.mark.conforms("H29")
@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda lines: lines[:-1], MalformedData, "a signature as its last line"),
        (lambda lines: [*lines, lines[-1]], MalformedData, "nothing behind its signature"),
        (lambda lines: [lines[0], *lines[2:]], InvalidSignature, "signature"),
        (lambda lines: [*lines[:-2], lines[-1]], InvalidSignature, "signature"),
        (
            lambda lines: [lines[0], lines[1], lines[3], lines[2], lines[4]],
            InvalidSignature,
            "signature",
        ),
        (edited(2, account="ab" * 32), InvalidSignature, "signature"),
        (edited(2, originator_ns=1), InvalidSignature, "signature"),
        (edited(2, content="aGVsbG8h"), MalformedData, "under the hash of its words"),
        (edited(-1, signature="0x" + "00" * 64), InvalidSignature, "signature"),
    ],
)
def test_load__lines_that_the_device_did_not_sign__nothing_is_stored(
    refusing: Refusing, change: Change, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        refusing.load(change)
    assert is_empty(refusing.phone)


@pytest.mark.conforms("H29")
@pytest.mark.parametrize(
    ("index", "changes", "words"),
    [
        (0, {"version": 2}, "chainkit-history 1"),
        (0, {"format": "other"}, "chainkit-history 1"),
        (0, {"messages": 3}, "1 groups and 3 messages"),
        (0, {"groups": 0}, "0 groups and 2 messages"),
        (0, {"inbox": "0x" + "00" * 32}, "a file of inbox abab"),
        (0, {"installation": "0x" + "07" * 32}, "a device that is in the inbox now"),
        (1, {"read": {"-1": 1}}, "ids of originators"),
        (1, {"read": {"1": -1}}, "an integer from 0"),
        (1, {"skipped": {"1": ["1"]}}, "an integer from 0"),
        (1, {"skipped": {"1": [1] * 10_001}}, "at most 10000 places"),
        (1, {"group": "0x"}, "a group's id"),
        (2, {"id": "0x" + "00" * 32}, "under the hash of its words"),
        (2, {"content": "?"}, "base64"),
        (2, {"sender": "0x00"}, "a key of 32 bytes"),
        (2, {"sequence_id": None}, "an integer from 0"),
        (2, {"digest": None}, "64 hex digits"),
        (2, {"epoch": 2**63}, "an integer from 0"),
        (2, {"kind": "added"}, "a change of members"),
        (2, {"account": "a" * 1025}, "at most 1024 bytes"),
        (2, {"account": "\ud800"}, "UTF-8"),
        (2, {"warning": "a" * 1001}, "at most 1000 bytes"),
        (2, {"kind": 5}, "a text"),
    ],
)
def test_load__device_signed_what_breaks_a_rule__nothing_is_stored(
    refusing: Refusing, index: int, changes: dict[str, Any], words: str
) -> None:
    change = edited(index, **changes)
    with pytest.raises(MalformedData, match=words):
        refusing.load(lambda lines: signed(refusing.laptop, change(lines)[:-1]))
    assert is_empty(refusing.phone)


@pytest.mark.parametrize("line", [b"[]", b"not json", b"\xff", b'{"kind":"text","kind":"text"}'])
def test_load__line_is_no_object__nothing_is_stored(refusing: Refusing, line: bytes) -> None:
    with pytest.raises(MalformedData):
        refusing.load(lambda lines: signed(refusing.laptop, [lines[0], line]))
    assert is_empty(refusing.phone)


def test_load__another_devices_file_names_another_sender__the_message_is_disputed(
    device: Make, tmp_path: Path
) -> None:
    laptop, tablet, phone = device(), device(), device()
    for each, row in ((laptop, HELLO), (tablet, replace(HELLO, sender_account="ef" * 32))):
        each.join()
        each.read(row)
        key = each.save(tmp_path / "file")
        loaded = phone.load((tmp_path / "file").read_bytes(), key, [laptop.key, tablet.key])

    [message] = phone.messages()
    assert (loaded.new, loaded.known, loaded.disputed) == (0, 1, 1)
    assert (message.sender_account, message.standing) == ("cd" * 32, Standing.DISPUTED)


def test_load__rows_are_sealed__the_file_shows_no_words(device: Make, tmp_path: Path) -> None:
    laptop, phone = device(), device()
    laptop.join()
    laptop.read(text(b"WORDS THAT NOBODY READS", (NODE, 1)))
    key = laptop.save(tmp_path / "file")
    phone.load((tmp_path / "file").read_bytes(), key, [laptop.key])
    phone.store.close()

    for path in tmp_path.iterdir():
        assert b"WORDS THAT" not in path.read_bytes()
        assert key.encode() not in path.read_bytes()
        assert SENDER_ACCOUNT not in path.read_bytes()


def test_load__many_messages__pages_are_stored_in_one_transaction(
    device: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chainkit_client.history.loading._PAGE", 3)
    laptop, phone = device(), device()
    laptop.join()
    laptop.read(*(text(b"word %d" % n, (NODE, n), BEGIN_NS + n) for n in range(1, 11)))
    key = laptop.save(tmp_path / "file")
    data = (tmp_path / "file").read_bytes()
    with pytest.raises(InvalidSignature):
        phone.load(rewritten(data, key, edited(-2, originator_ns=1)), key, [laptop.key])
    assert is_empty(phone)

    assert phone.load(data, key, [laptop.key]).new == 10
    assert phone.words() == [b"word %d" % n for n in range(1, 11)]
    with phone.store.reading() as connection:
        digests = set(connection.scalars(select(imported_messages.c.digest)))
    assert len(digests) == 10 and all(len(each) == 32 for each in digests)


def test_load__kinds_of_rows__all_travel(device: Make, tmp_path: Path) -> None:
    laptop, phone = device(), device()
    laptop.join()
    content = bytes([MessageKind.MEMBER_ADDED]) + bytes(8) + b"\7" * 32 + b"somebody"
    rows = [
        replace(text(content, (0, 3)), kind=MessageKind.MEMBER_ADDED, originator_ns=None),
        replace(text(keccak256(b"x"), (NODE, 4)), kind=MessageKind.UNREADABLE, warning="lost"),
        replace(text(keccak256(b"y"), (0, 5)), kind=MessageKind.LEFT_BEHIND),
        replace(text(b"\xff\x00", None), sender=b""),
    ]
    laptop.read(*rows)
    key = laptop.save(tmp_path / "file")
    phone.load((tmp_path / "file").read_bytes(), key, [laptop.key])

    marked = [replace(each, imported_from=laptop.key) for each in laptop.messages()]
    assert phone.messages() == marked
