"""Which payloads may be served, by whole columns: held against the answer for each by itself."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.protocol.envelope import quarantine_reason
from chainkit.protocol.proto import envelopes_pb2
from chainkit.types import PayloadEvent, TopicKind
from chainkit_jobs.reconcile.screening import servable
from chainkit_jobs.reconcile.screening.servable import are_servable
from support.payloads import commit, identity_update

IDENTIFIER = b"\x01" * 32
SHORT = b"\x01" * 16
PADDED = SHORT.ljust(32, b"\0")
KINDS = (TopicKind.GROUP_MESSAGE, TopicKind.IDENTITY_UPDATE)


def posted(
    rows: Sequence[tuple[bytes, TopicKind]], identifier: bytes = IDENTIFIER
) -> tuple[pa.BinaryArray, np.ndarray]:
    topics = b"".join(kind.topic(identifier) for _, kind in rows)
    payloads = pa.array([b"before", *(payload for payload, _ in rows)], pa.binary()).slice(1)
    return payloads, np.frombuffer(topics, np.uint8).reshape(len(rows), 33)


def last_seen(payload: bytes, node_ids: Sequence[int]) -> bytes:
    envelope = envelopes_pb2.ClientEnvelope.FromString(payload)
    for node_id in node_ids:
        envelope.aad.last_seen.node_id_to_sequence_id[node_id] = node_id
    return envelope.SerializeToString()


payloads = st.one_of(
    st.binary(max_size=80),
    st.builds(
        commit,
        st.sampled_from([IDENTIFIER, b"\x02" * 32, PADDED, SHORT, SHORT + b"\0", b"\0" * 16, b""]),
        st.integers(0, 20),
    ),
    st.builds(identity_update, st.sampled_from([IDENTIFIER, PADDED, SHORT]), st.integers(0, 20)),
    st.builds(last_seen, st.just(commit(SHORT)), st.lists(st.integers(0, 300), max_size=40)),
    st.builds(last_seen, st.just(commit(IDENTIFIER)), st.lists(st.integers(0, 300), max_size=40)),
    # Fields that stand twice: the last one of a kind counts.
    st.builds(bytes.__add__, st.just(commit(IDENTIFIER)), st.just(identity_update(IDENTIFIER))),
    st.just(commit(IDENTIFIER) + commit(b"\x02" * 32)),
)


@st.composite
def changed(draw: st.DrawFn) -> bytes:
    payload = bytearray(draw(payloads))
    for _ in range(draw(st.integers(0, 2)) if payload else 0):
        payload[draw(st.integers(0, len(payload) - 1))] = draw(st.integers(0, 255))
    return bytes(payload[: len(payload) - draw(st.integers(0, 2))])


@given(
    st.lists(st.tuples(changed(), st.sampled_from(KINDS)), max_size=6),
    st.sampled_from([IDENTIFIER, PADDED, bytes(32)]),
)
def test_are_servable__any_payloads__those_without_a_reason_for_quarantine(
    rows, identifier
) -> None:
    events = [PayloadEvent(kind, identifier, payload, 1, 0) for payload, kind in rows]

    found = are_servable(*posted(rows, identifier))

    assert found.tolist() == [quarantine_reason(event) is None for event in events]


@pytest.mark.parametrize("payload", [b"", commit(b"\x02" * 32), identity_update(IDENTIFIER)])
def test_are_servable__after_a_valid_one__is_judged_by_itself(payload: bytes) -> None:
    rows = [(commit(IDENTIFIER), TopicKind.GROUP_MESSAGE), (payload, TopicKind.GROUP_MESSAGE)]

    assert are_servable(*posted(rows)).tolist() == [True, False]


def test_are_servable__one_that_breaks_off_within__takes_no_other_with_it() -> None:
    whole = commit(IDENTIFIER, 3)
    broken = bytearray(whole)
    # The lengths around it are right; what they hold is no message.
    broken[whole.rindex(b"\x0a") :] = b"\x0f" * (len(whole) - whole.rindex(b"\x0a"))
    rows = [(bytes(each), TopicKind.GROUP_MESSAGE) for each in (whole, broken, whole)]

    assert are_servable(*posted(rows)).tolist() == [True, False, True]


def test_are_servable__of_the_usual_form__are_not_looked_at_one_by_one(monkeypatch) -> None:
    seen = []
    monkeypatch.setattr(
        servable.envelope, "are_servable", lambda payloads, topics: [*map(seen.append, payloads)]
    )
    seen_before = last_seen(commit(IDENTIFIER), [100, 200])
    rows = [
        (commit(IDENTIFIER), TopicKind.GROUP_MESSAGE),
        (seen_before, TopicKind.GROUP_MESSAGE),
        (identity_update(IDENTIFIER), TopicKind.IDENTITY_UPDATE),
    ]

    assert are_servable(*posted(rows)).all()
    short = [(commit(SHORT), TopicKind.GROUP_MESSAGE), (commit(PADDED), TopicKind.GROUP_MESSAGE)]
    assert are_servable(*posted(short, PADDED)).all()
    assert seen == []
