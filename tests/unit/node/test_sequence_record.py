"""A sequencer whose database is older than what it has signed, by the record beside its key."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import grpc
import pytest

from chainkit.errors import ConfigurationError, StoreError, StoreInUse, StoreUnavailable
from chainkit.misbehavior.received_batch import MOST_IDS_AHEAD
from chainkit.protocol.originated_envelope import parse_originated
from chainkit.service.refusals import NotReady
from chainkit.signatures import SigningKey
from chainkit_indexer.storage.envelopes import StoredEnvelope, read_by_originators
from chainkit_indexer.storage.identity import Identity
from chainkit_node.cli.options import RecordOptions
from chainkit_node.originating import sequence_record
from chainkit_node.originating.sequence_record import DatabaseOlder, SequenceRecord
from chainkit_node.originating.sequencer import Sequencer
from chainkit_node.types import NewEnvelope
from support.chains.fake_chain import FakeChain
from support.indexer.fake_node import open_store

KEY = SigningKey(b"\3" * 32)
NODE_ID = 100
IDENTITY = Identity.of(FakeChain().deployment, KEY.public_key)


class Node:
    """A sequencer with a database and a record, and what it published."""

    def __init__(self, folder: Path) -> None:
        self.database = folder / "node.db"
        self.record_path = folder / "sequence-record"
        self.published: list[int] = []
        self.recorded_when_published: list[bytes] = []
        self.start()

    def start(self, resume_after: int = 0) -> None:
        self.store = open_store(self.database, IDENTITY)
        self.record = SequenceRecord(self.record_path, resume_after)
        self.sequencer = Sequencer(
            self.store, lambda: NODE_ID, KEY, lambda: 1, self._take, self.record
        )

    def stop(self) -> None:
        self.sequencer.close()
        self.record.close()
        self.store.close()

    def publish(self, count: int) -> list[int]:
        payloads = [NewEnvelope(b"\1", b"a", None)] * count
        answered = self.sequencer.submit(payloads).result(60)
        return [parse_originated(each).envelope.sequence_id for each in answered]

    def stored(self) -> list[int]:
        with self.store.reading() as connection:
            rows = read_by_originators(connection, [NODE_ID], {}, 100, 0)
        return [row.sequence_id for row in rows]

    def _take(self, rows: Sequence[StoredEnvelope]) -> None:
        self.published += [row.sequence_id for row in rows]
        self.recorded_when_published.append(self.record_path.read_bytes())


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    made.stop()


def restore_after(node: Node, kept: int, lost: int) -> None:
    """Publish, copy the database, publish more, and have the copy in its place."""
    copy = node.database.with_name("copy.db")
    if kept:
        node.publish(kept)
    node.stop()
    shutil.copy(node.database, copy)
    node.start()
    node.publish(lost)
    node.stop()
    shutil.copy(copy, node.database)


@pytest.mark.conforms("N7")
@pytest.mark.parametrize("kept", [0, 3])
def test_submit__database_restored_from_an_older_copy__gives_no_id_again(
    node: Node, kept: int
) -> None:
    restore_after(node, kept=kept, lost=2)
    node.start()

    for _ in range(2):
        with pytest.raises(DatabaseOlder) as error:
            node.publish(1)
        assert error.value.code is grpc.StatusCode.UNAVAILABLE
        words = f"expected envelopes up to sequence id {kept + 2}, which it has signed, got up to"
        assert f"node 100: {words} {kept}" in str(error.value)
    assert node.stored() == list(range(1, kept + 1))


def test_submit__told_to_resume_after_what_was_lost__goes_on_there(node: Node) -> None:
    restore_after(node, kept=3, lost=2)
    node.start(resume_after=4)
    with pytest.raises(DatabaseOlder):
        node.publish(1)
    node.stop()

    node.start(resume_after=5)
    assert node.publish(2) == [6, 7]
    assert node.publish(1) == [8]
    node.stop()
    node.start()
    assert node.publish(1) == [9]
    assert node.stored() == [1, 2, 3, 6, 7, 8, 9]


def test_submit__told_to_resume_far_behind_what_is_known__signs_nothing(node: Node) -> None:
    """A digit too many: others do not believe such an id, and it cannot be taken back."""
    restore_after(node, kept=3, lost=2)
    node.start(resume_after=5 + MOST_IDS_AHEAD + 1)

    with pytest.raises(NotReady) as error:
        node.publish(1)

    words = "--resume-after: expected at most 1000005, a million beyond the last known id, got"
    assert f"{words} 1000006" in str(error.value)
    assert node.stored() == [1, 2, 3]


@pytest.mark.conforms("N7")
def test_submit__payloads__are_recorded_before_anybody_gets_them(node: Node) -> None:
    node.publish(2)
    node.publish(1)

    assert node.recorded_when_published == [
        b"node        100 last                    2\n",
        b"node        100 last                    3\n",
    ]


def test_submit__record_behind_the_database__goes_on_from_the_database(node: Node) -> None:
    node.publish(3)
    node.stop()
    node.record_path.unlink()
    node.start()
    assert node.publish(1) == [4]


def test_submit__record_cannot_be_written__stores_nothing_more_until_it_can(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise StoreUnavailable("sequence record", "a file that can be written", "a full disk")

    node.publish(1)
    with monkeypatch.context() as patch:
        patch.setattr(SequenceRecord, "advance", fails)
        for _ in range(3):
            with pytest.raises(NotReady, match="a database that stores it"):
                node.publish(1)
        # The first of them had been committed before it was to be recorded.
        assert node.stored() == [1, 2]

    assert node.publish(1) == [3]
    assert node.published == node.stored() == [1, 2, 3]


def fill(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (fill(b"7\n"), "expected a line `node ID last SEQUENCE_ID`, got another content"),
        (fill(b"node 1 last 2\n" * 9), "got another content"),
        (fill(b"node 1 last -2\n"), "got another content"),
        (Path.mkdir, "expected a file to write, got Is a directory"),
        (lambda path: path.symlink_to("elsewhere"), "expected a file to write, got Too many"),
    ],
)
def test_open__no_record__is_refused(
    tmp_path: Path, prepare: Callable[[Path], object], words: str
) -> None:
    path = tmp_path / "record"
    prepare(path)
    with pytest.raises(StoreError, match=words):
        SequenceRecord(path)


def test_open__another_process_has_it__is_refused_until_that_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sequence_record, "PATIENCE_SECONDS", 0.1)
    first = SequenceRecord(tmp_path / "record")
    with pytest.raises(StoreInUse, match="expected no other node, got one"):
        SequenceRecord(tmp_path / "record")
    first.close()
    SequenceRecord(tmp_path / "record").close()


def test_last_id__record_of_another_node__is_refused(tmp_path: Path) -> None:
    record = SequenceRecord(tmp_path / "record")
    record.advance(200, 5)
    with pytest.raises(StoreError, match="expected node 100, got node 200"):
        record.last_id(NODE_ID, 9)
    record.close()


def test_options__record__is_open_while_the_node_runs(tmp_path: Path) -> None:
    with RecordOptions(tmp_path / "record", 0).opened(None) as record:
        assert record is not None
        record.advance(NODE_ID, 7)
    with RecordOptions(tmp_path / "record", 0).opened(None) as record:
        assert record is not None
        with pytest.raises(DatabaseOlder):
            record.last_id(NODE_ID, 6)
    with RecordOptions(None, 0).opened(None) as record:
        assert record is None


def test_options__no_record_is_named__is_beside_the_file_of_sqlite(tmp_path: Path) -> None:
    file = tmp_path / "node.db"

    with RecordOptions(None, 7).opened(file) as record:
        assert record is not None

    assert file.with_name("node.db.sequence-record").exists()
    named = tmp_path / "elsewhere"
    assert RecordOptions(named, 0).place(file) == named


def test_options__envelopes_given_up_without_a_record__is_refused() -> None:
    words = "--resume-after: expected a --sequence-record beside it, got none"
    with pytest.raises(ConfigurationError, match=words), RecordOptions(None, 7).opened(None):
        pass
