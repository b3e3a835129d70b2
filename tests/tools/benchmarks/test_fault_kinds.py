"""Each kind of fault by itself: a reference of a few lines must find in it what the kind says."""

from collections import Counter
from collections.abc import Iterator

import pytest

from benchmarks.audit.exports.batch import Batch, make_batch
from benchmarks.audit.exports.shape import Blocks, Shape, is_quarantined, key_of
from benchmarks.audit.faults.chain import CHAIN_KINDS
from benchmarks.audit.faults.inject import payload_of
from benchmarks.audit.faults.kind import Found, Kind, Place, Served, Window
from benchmarks.audit.faults.kinds import KINDS
from benchmarks.audit.faults.plan import window_of
from benchmarks.audit.faults.wire import envelope, signed, unsigned
from chainkit.errors import InvalidSignature, MalformedEnvelope
from chainkit.protocol.envelope import parse_originator_envelope, recover_node_key
from chainkit_jobs.findings import Code

SHAPE = Shape(rows=120, nodes=2, rows_per_block=20, range_blocks=10)
NODE = SHAPE.node_ids[0]


def batch() -> Batch:
    first = SHAPE.first_payload_block
    return make_batch(SHAPE, Blocks(first, SHAPE.last_block))


BATCH = batch()


def window_for(kind: Kind) -> Window:
    malformed = next(n for n in range(1, SHAPE.rows) if is_quarantined(n))
    first = {Place.FIRST: 1, Place.LAST: SHAPE.rows, Place.QUARANTINED: malformed}.get(
        kind.place, 60
    )
    places = range(first - 1, first - 1 + kind.width)
    return window_of(SHAPE, NODE, [payload_of(BATCH, place) for place in places])


def judged(window: Window, rows: list[Served]) -> Iterator[Found]:
    """Findings that an audit must give of rows, key by key, as its codes are documented."""
    demanded = {payload.sequence_id: payload for payload in window.payloads}
    keys = {(0, sequence_id): [0, 0] for sequence_id in demanded}
    for row in dict.fromkeys(rows):
        times = rows.count(row)
        try:
            served = parse_originator_envelope(row.envelope)
        except MalformedEnvelope:
            yield Found(Code.ENVELOPE_UNREADABLE, 0, row.claimed_sequence_id)
            keys.setdefault((0, row.claimed_sequence_id), [0, 0])[1] += times
            continue
        key = served.originator_id, served.sequence_id
        keys.setdefault(key, [0, 0])[0] += times
        try:
            is_signed = recover_node_key(served) == window.key.public_key
        except InvalidSignature:
            is_signed = False
        if not is_signed:
            yield Found(Code.SIGNATURE_INVALID, *key)
        payload = demanded.get(key[1]) if key[0] == 0 else None
        if payload is None:
            assert key[0] or key[1] == 0 or key[1] > window.counter
            yield Found(Code.ENVELOPE_INVENTED, *key)
        elif (unsigned(payload), payload.transaction_hash) != (
            served.unsigned_originator_envelope,
            served.transaction_hash,
        ):
            yield Found(Code.ENVELOPE_ALTERED, *key)
        elif is_quarantined(key[1]):
            yield Found(Code.QUARANTINED_SERVED, *key)
        elif len(signature := served.node_signature) == 65 and row.envelope != envelope(
            unsigned(payload), payload.transaction_hash, signature
        ):
            yield Found(Code.ENVELOPE_FORM_DIFFERS, *key)
    for (originator_id, sequence_id), (readable, unreadable) in keys.items():
        if readable > 1:
            yield Found(Code.ENVELOPE_DUPLICATED, originator_id, sequence_id)
        is_required = originator_id == 0 and sequence_id in demanded
        if is_required and not readable + unreadable and not is_quarantined(sequence_id):
            yield Found(Code.ENVELOPE_MISSING, originator_id, sequence_id)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_serve__any_kind__gives_what_it_says_and_nothing_else(kind: Kind) -> None:
    window = window_for(kind)

    found = Counter(judged(window, kind.serve(window)))

    assert found == Counter(kind.findings(window))


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_serve__any_kind__is_not_what_an_honest_node_serves(kind: Kind) -> None:
    window = window_for(kind)
    indexes = range(kind.width) if kind.place is not Place.QUARANTINED else ()

    assert kind.serve(window) != [window.honest(index) for index in indexes]


def test_kinds__all__are_many_and_reach_every_code_about_a_node() -> None:
    guilty = [kind for kind in KINDS.values() if kind.expected]
    codes = {code for kind in guilty for code, _ in kind.expected}

    assert len(guilty) >= 25
    assert len(KINDS) > len(guilty)
    assert codes == {
        Code.ENVELOPE_ALTERED,
        Code.ENVELOPE_INVENTED,
        Code.ENVELOPE_MISSING,
        Code.ENVELOPE_DUPLICATED,
        Code.ENVELOPE_UNREADABLE,
        Code.SIGNATURE_INVALID,
        Code.QUARANTINED_SERVED,
        Code.ENVELOPE_FORM_DIFFERS,
    }
    assert {kind.code for kind in CHAIN_KINDS.values()} == {
        Code.CHAIN_SEQUENCE_GAP,
        Code.CHAIN_SEQUENCE_REPEATED,
        Code.CHAIN_SEQUENCE_ORDER,
    }


def test_honest__any_payload__is_what_protobuf_and_the_library_write() -> None:
    payload = payload_of(BATCH, 7)
    key = key_of(NODE)

    served = parse_originator_envelope(signed(key, unsigned(payload), payload.transaction_hash))

    assert served.sequence_id == payload.sequence_id == 8
    assert served.client_envelope == payload.client_envelope
    assert served.originator_ns == payload.originator_ns
    assert recover_node_key(served) == key.public_key
