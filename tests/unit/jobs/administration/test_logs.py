"""The registry's history, replayed from the few logs of an export that tell it."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chainkit.errors import StoreError
from chainkit.exports import tables
from chainkit.protocol.events import IDENTITY_UPDATE_CREATED_TOPIC, MESSAGE_SENT_TOPIC
from chainkit_jobs.administration.logs import read_administration
from chainkit_jobs.reconcile.nodes import Registry, registry_at
from chainkit_jobs.sources import Export, read_export
from support.audit.administration import CONTRACTS
from support.audit.audit_exports import Row, base_posts, payload_log, registered, write_chain


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "chain"


def export_of(folder: Path, rows: list[Row]) -> Export:
    """Write a chain export that holds just these logs."""
    chain = read_export(write_chain(folder, base_posts(), []), "chain")
    [path] = folder.glob("logs*")
    # Small groups: most hold no such event.
    pq.write_table(pa.Table.from_pylist(rows, schema=tables.LOGS), path, row_group_size=2)
    return chain


def registry(folder: Path, rows: list[Row]) -> Registry:
    chain = export_of(folder, rows)
    return registry_at(read_administration(chain, CONTRACTS), chain.manifest.to_block)


def test_read_registry__two_updates_in_one_block__the_later_log_holds(folder: Path) -> None:
    first = registered(100, block=9, log_index=2)
    second = registered(100, block=9, log_index=10, is_enabled=False)

    for number, rows in enumerate(([first, second], [second, first])):
        assert registry(folder / str(number), rows).by_id(100).is_enabled is False


def test_read_registry__update_in_a_later_block_with_a_lower_index__holds(folder: Path) -> None:
    rows = [
        registered(100, block=10, log_index=0, is_enabled=False),
        registered(100, block=9, log_index=5),
    ]

    assert not registry(folder, rows).by_id(100).is_enabled


def test_read_registry__updates_around_its_block__ends_with_that_block(folder: Path) -> None:
    rows = [
        registered(100, block=2),
        registered(100, block=20, is_enabled=False),
        registered(100, block=21),
        registered(200, block=21, log_index=1),
    ]

    found = registry(folder, rows)

    assert list(found.nodes) == [100]
    assert not found.by_id(100).is_enabled


def test_read_registry__other_contracts_and_events__are_passed_over(folder: Path) -> None:
    rows = [
        registered(100) | {"address": b"\x99" * 20},
        registered(200) | {"topics": [MESSAGE_SENT_TOPIC]},
        registered(300) | {"topics": []},
    ]

    assert registry(folder, rows).nodes == {}


def test_read_registry__nothing_but_payloads_in_a_file__reads_no_row_of_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = export_of(folder, [payload_log(post) for post in base_posts()])
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", None)

    assert read_administration(chain, CONTRACTS).registry.history == {}


def test_read_registry__a_payload_topic_second__does_not_hide_the_first(folder: Path) -> None:
    row = registered(100)
    row = row | {"topics": [*row["topics"], MESSAGE_SENT_TOPIC, IDENTITY_UPDATE_CREATED_TOPIC]}
    chain = export_of(folder, [payload_log(base_posts()[0]), row])

    [contradiction] = read_administration(chain, CONTRACTS).contradictions

    assert contradiction.log.address == row["address"]


def test_read_registry__file_that_breaks_off__is_named(folder: Path) -> None:
    chain = read_export(write_chain(folder, base_posts(), [registered(100)]), "chain")
    [path] = folder.glob("logs*")
    data = bytearray(path.read_bytes())
    data[4:200] = bytes(196)
    path.write_bytes(data)

    with pytest.raises(StoreError, match=r"logs.*expected logs in Parquet"):
        read_administration(chain, CONTRACTS)
