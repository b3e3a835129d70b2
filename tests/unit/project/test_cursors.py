"""Each question of ours for envelopes has a cursor: one module writes them all.

XIP-49 does not say what a subscription without a cursor gets. Some nodes answer it with news alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from chainkit.protocol.envelope_queries import envelopes_behind, topics_behind
from chainkit.protocol.proto import message_api_pb2
from support.project import ROOT

ROOMS = ("src", "indexer", "node", "gateway", "client", "jobs", "scripts", "localnet", "demo")
WRITER = ROOT / "src/chainkit/protocol/envelope_queries.py"
QUESTIONS = {"EnvelopesQuery", "SubscribeTopicsRequest", "TopicFilter"}
REQUESTS = {"QueryEnvelopesRequest", "SubscribeEnvelopesRequest"}
CHANGES = {"append", "extend", "add", "update", "CopyFrom", "MergeFrom", "SetInParent"}


def programs() -> Iterator[Path]:
    for room in ROOMS:
        yield from (path for path in (ROOT / room).rglob("*.py") if "_pb2" not in path.name)


def faults(source: str) -> list[str]:
    """Return what a module writes that may be a question without a cursor."""
    found = []
    for call in ast.walk(ast.parse(source)):
        if not isinstance(call, ast.Call):
            continue
        called = ast.unparse(call.func).split(".")
        is_whole = any(each.arg == "query" for each in call.keywords)
        if called[-1] in QUESTIONS:
            found.append(f"line {call.lineno}: {called[-1]} outside of {WRITER.name}")
        elif called[-1] in REQUESTS and not is_whole:
            found.append(f"line {call.lineno}: {called[-1]} without its query")
        elif called[-1] in CHANGES and "query" in called[:-1]:
            found.append(f"line {call.lineno}: a query is changed")
    return found


def test_programs__questions_for_envelopes__are_written_in_one_module() -> None:
    found = {path.name: faults(path.read_text()) for path in programs() if path != WRITER}

    assert len(found) > 100
    assert {name: each for name, each in found.items() if each} == {}
    assert faults(WRITER.read_text())


@pytest.mark.parametrize(
    ("source", "number"),
    [
        ("message_api_pb2.EnvelopesQuery(topics=[b'x'])", 1),
        ("SubscribeTopicsRequest(filters=[SubscribeTopicsRequest.TopicFilter(topic=b'x')])", 2),
        ("message_api_pb2.QueryEnvelopesRequest(limit=1)", 1),
        ("request.query.topics.extend(topics)", 1),
        ("message_api_pb2.SubscribeEnvelopesRequest(query=topics_behind([b'x'], {}))", 0),
        ("peers.update(query)", 0),
    ],
)
def test_faults__of_a_source__are_found(source: str, number: int) -> None:
    assert len(faults(source)) == number


@pytest.mark.parametrize(
    ("query", "cursor"),
    [
        (envelopes_behind(100, 0), {100: 0}),
        (envelopes_behind(0, 7), {0: 7}),
        (topics_behind([b"topic"], {100: 3}), {100: 3}),
        (topics_behind([b"topic"], {}), {}),
    ],
)
def test_query__from_the_start_or_behind_an_id__has_a_cursor_on_the_wire(
    query: message_api_pb2.EnvelopesQuery, cursor: dict[int, int]
) -> None:
    read = message_api_pb2.EnvelopesQuery.FromString(query.SerializeToString())

    assert read.HasField("last_seen")
    assert dict(read.last_seen.node_id_to_sequence_id) == cursor
