"""``chainkit node verify``: a sound database passes, and each kind of damage is named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import delete, insert, update

from chainkit_indexer.storage.schema import envelopes
from chainkit_node.cli import node as node_group
from chainkit_node.inspection import verify
from chainkit_node.storage import schema
from support.network.held_logs import (
    COUNT,
    PEER,
    change,
    hold_logs,
    place,
    signed_by_another,
    take,
)
from support.network.originator import BEGIN_NS, Originator
from support.reporting import ACCUSED, KEYS, Host


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with closing(hold_logs(tmp_path / "node.db")) as host:
        yield host


def command(host: Host, *words: str) -> Result:
    arguments = ["verify", "--database", host.store.name, *words]
    return CliRunner().invoke(node_group, arguments, standalone_mode=False)


def faults(host: Host) -> list[dict[str, Any]]:
    result = command(host, "--json")
    found: list[dict[str, Any]] = json.loads(result.output)["faults"]
    assert result.return_value == (1 if found else 0)
    return found


def test_verify__sound_database__counts_what_each_log_has(host: Host) -> None:
    result = command(host)

    assert result.return_value == 0, result.output
    assert result.output.splitlines() == [
        "originator 0: 2 envelopes up to id 2, 0 quarantined, 0 digests: all as signed",
        f"originator 200: 145 envelopes up to id {COUNT}, 5 missing, 2 digests: all as signed",
    ]


def test_verify__database_without_envelopes__says_so(tmp_path: Path) -> None:
    with closing(Host(tmp_path / "node.db")) as host:
        assert command(host).output == "no envelopes yet\n"


@pytest.mark.parametrize("page", [1, 7, 1000])
def test_verify__pages_of_any_size__find_the_same(
    host: Host, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(verify, "PAGE_ENVELOPES", page)
    with host.store.writing() as connection:
        connection.execute(delete(envelopes).where(place(ACCUSED, 20)))

    assert [each["subject"] for each in faults(host)] == ["ids 20 to 20", "digests of ids 1 to 64"]


def changed(
    host: Host, sequence_id: int, originator_id: int = ACCUSED, **values: object
) -> list[dict[str, Any]]:
    change(host, originator_id, sequence_id, **values)
    return faults(host)


@pytest.mark.parametrize(
    ("column", "value", "got"),
    [("originator_ns", 7, "7"), ("topic", b"\x01abc", "0x01616263"), ("expires_at", 9, "9")],
)
def test_verify__row_says_something_else__is_a_fault(
    host: Host, column: str, value: object, got: str
) -> None:
    [fault] = changed(host, 140, **{column: value})

    assert fault["originator_id"] == ACCUSED
    assert (fault["subject"], fault["got"]) == (f"{column} of envelope 140", got)


def test_verify__envelope_of_another_place_or_key__is_a_fault(host: Host) -> None:
    [other, _] = changed(host, 140, envelope=PEER.signed(141, 141.0))
    [foreign] = changed(host, 140, envelope=Originator(ACCUSED, KEYS[100]).signed(140, 140.0))

    assert (other["subject"], other["got"]) == ("sequence_id of envelope 140", "140")
    assert foreign["expected"] == f"the signature of node {ACCUSED}"


def test_verify__bytes_that_are_no_envelope__are_one_fault(host: Host) -> None:
    [fault] = changed(host, 140, envelope=b"\xff\xff")

    assert fault["subject"] == "envelope 140"


@pytest.mark.parametrize(
    ("column", "value", "got"),
    [("originator_ns", 5, "5"), ("topic", b"\x01abc", "0x01616263"), ("expires_at", 9, "9")],
)
def test_verify__row_of_the_chain_says_something_else__is_a_fault(
    host: Host, column: str, value: object, got: str
) -> None:
    [fault] = changed(host, 2, 0, **{column: value})

    assert fault["originator_id"] == 0
    assert (fault["subject"], fault["got"]) == (f"{column} of envelope 2", got)


def test_verify__chain_envelope_of_another_key__is_a_fault(host: Host) -> None:
    [fault] = changed(host, 2, 0, envelope=signed_by_another(host, 2))

    assert (fault["subject"], fault["expected"], fault["got"]) == (
        "envelope 2",
        "the signature of this node",
        "another's",
    )


def test_verify__digests_of_a_range_that_changed__are_a_fault(host: Host) -> None:
    with host.store.writing() as connection:
        rows = schema.range_digests
        connection.execute(update(rows).where(rows.c.number == 1).values(digests=b"\x00" * 64))

    [fault] = faults(host)

    assert fault["subject"] == "digests of ids 65 to 128"


def test_verify__id_far_ahead__is_compared_by_its_gap(host: Host) -> None:
    far = 10**6
    take(host, [PEER.signed(far, 200.0)])
    assert faults(host) == []

    with host.store.writing() as connection:
        connection.execute(delete(schema.gaps).where(schema.gaps.c.last_id == far - 1))

    [fault] = faults(host)
    assert fault["subject"] == f"ids {COUNT + 1} to {far - 1}"


def test_verify__many_faults__prints_the_first_and_counts_the_rest(host: Host) -> None:
    with host.store.writing() as connection:
        is_listed = envelopes.c.originator_id == ACCUSED, envelopes.c.sequence_id > 75
        connection.execute(update(envelopes).where(*is_listed).values(expires_at=1))

    result = command(host)

    assert result.return_value == 1
    lines = result.output.splitlines()
    assert lines[0].startswith("expires_at of envelope 76 of originator 200: expected ")
    assert lines[20] == "… and 55 more (--json lists the first 1000)"
    assert lines[-1].endswith("75 faults")


def test_verify__disputed_id__is_sound(host: Host) -> None:
    take(host, [PEER.signed(3, 3.5)])
    with host.store.reading() as connection:
        assert connection.execute(schema.disputed_envelopes.select()).first() is not None

    assert faults(host) == []


def test_verify__originator_that_the_registry_does_not_list__is_a_fault(host: Host) -> None:
    unlisted = Originator(900, KEYS[100])
    row = {
        "originator_id": 900,
        "sequence_id": 1,
        "originator_ns": BEGIN_NS,
        "topic": b"",
        "expires_at": None,
        "envelope": unlisted.signed(1, 0.0),
    }
    with host.store.writing() as connection:
        connection.execute(insert(envelopes).values(**row))

    [fault] = faults(host)

    assert (fault["expected"], fault["got"]) == ("a node of the registry", "none")
