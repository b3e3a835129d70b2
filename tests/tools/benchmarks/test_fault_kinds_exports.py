"""Generated exports: the bytes that the library itself would write, cut and planned as they say."""

from collections import Counter
from decimal import Decimal

import numpy as np
import pytest

from benchmarks.audit.exports.administration import administration_logs
from benchmarks.audit.exports.batch import Batch, heads, log_data, make_batch
from benchmarks.audit.exports.chain_tables import chain_tables
from benchmarks.audit.exports.columns import decimals, varint, varint_width, words
from benchmarks.audit.exports.generate import CHAIN, Tables, node_folder
from benchmarks.audit.exports.node_tables import envelope_table, without_malformed
from benchmarks.audit.exports.shape import (
    PAYLOAD_BYTES,
    Blocks,
    Shape,
    is_quarantined,
    key_of,
    time_of,
)
from benchmarks.audit.faults.inject import Injection
from benchmarks.audit.faults.kind import Place
from benchmarks.audit.faults.kinds import KINDS
from benchmarks.audit.faults.plan import Fault, Plan, plan_once, plan_together
from chainkit.errors import ConfigurationError
from chainkit.exports import tables
from chainkit.protocol.envelope import (
    quarantine_reason,
    sign_originator_envelope,
    unsigned_originator_envelope,
)
from chainkit.protocol.events import decode_payload_event
from chainkit_jobs.administration.replay import replay
from chainkit_jobs.sources import log_from_row
from support.chain_times import chain_ns

SHAPE = Shape(rows=300, nodes=3, rows_per_block=20, range_blocks=5, is_signed=True)
LARGE = Shape(rows=4000, nodes=3, rows_per_block=20, range_blocks=50)


def batch_of(shape: Shape) -> Batch:
    return make_batch(shape, Blocks(shape.first_payload_block, shape.last_block))


def tables_of(shape: Shape, batch: Batch) -> Tables:
    parts = list(heads(batch))
    found = {(CHAIN, name): table for name, table in chain_tables(shape, batch).items()}
    for node_id in shape.node_ids:
        served = envelope_table(shape, batch, parts, node_id)
        found[node_folder(node_id), "envelopes"] = without_malformed(served, batch)
    return found


def test_generate__a_batch__is_what_the_library_demands_of_its_logs() -> None:
    batch = batch_of(SHAPE)
    made = tables_of(SHAPE, batch)
    node_id = SHAPE.node_ids[1]
    key = key_of(node_id)
    served = {
        row["sequence_id"]: row for row in made[node_folder(node_id), "envelopes"].to_pylist()
    }

    for row in made[CHAIN, "logs"].to_pylist():
        event = decode_payload_event(log_from_row(row))
        assert len(event.payload) == PAYLOAD_BYTES
        assert (quarantine_reason(event) is not None) == is_quarantined(event.sequence_id)
        if is_quarantined(event.sequence_id):
            assert event.sequence_id not in served
            continue
        found = served.pop(Decimal(event.sequence_id))
        unsigned = unsigned_originator_envelope(event, time_of(row["block_number"]))
        assert found["envelope"] == sign_originator_envelope(unsigned, row["transaction_hash"], key)
        assert found["topic"] == event.kind.topic(event.identifier)
        assert found["originator_ns"] == chain_ns(time_of(row["block_number"]), event.sequence_id)
    assert not served


def test_generate__twice__is_the_same_and_another_seed_is_not() -> None:
    other = Shape(rows=300, rows_per_block=20, range_blocks=5, seed=50)

    assert (log_data(batch_of(SHAPE)) == log_data(batch_of(SHAPE))).all()
    assert (log_data(batch_of(SHAPE)) != log_data(batch_of(other))).any()


def test_generate__few_random_bytes__the_rest_repeats() -> None:
    shape = Shape(rows=2000, rows_per_block=20, range_blocks=500, random_bytes=4)
    payloads = batch_of(shape).content.payloads

    assert len(np.unique(payloads, axis=0)) == 2000
    assert len(np.unique(payloads[:, :100], axis=0)) <= 2 * 256


def test_generate__sequences_that_take_more_bytes__each_run_has_one_width() -> None:
    batch = batch_of(Shape(rows=20_000, rows_per_block=100, range_blocks=300, random_bytes=0))

    widths = [(part.rows.start, part.rows.stop, part.bytes.shape[1]) for part in heads(batch)]

    assert [(start, stop) for start, stop, _ in widths] == [(0, 127), (127, 16383), (16383, 20_000)]
    assert np.diff([width for *_, width in widths]).tolist() == [1, 1]


def test_register__any_nodes__the_audit_finds_their_keys_and_no_contradiction() -> None:
    logs = [log_from_row(row) for row in administration_logs(SHAPE)]
    contracts = {"NodeRegistry": b"\x33" * 20} | {
        "GroupMessages": b"\x11" * 20,
        "IdentityUpdates": b"\x22" * 20,
    }

    found = replay(logs, contracts)

    assert found.contradictions == ()
    keys = {node: entries[-1][1].signing_key for node, entries in found.registry.history.items()}
    assert keys == {node_id: key_of(node_id).public_key for node_id in SHAPE.node_ids}


@pytest.mark.parametrize("rows", [1, 19, 20, 21, 300])
def test_cut__any_rows__files_and_batches_hold_each_sequence_once(rows: int) -> None:
    shape = Shape(rows=rows, rows_per_block=20, range_blocks=5)
    files = list(shape.ranges())
    batches = [batch for file in files for batch in shape.batches(file)]

    for cut in (files, batches):
        assert [each.first for each in cut] == [1, *(each.last + 1 for each in cut[:-1])]
        assert [n for each in cut for n in shape.sequences_of(each)] == list(range(1, rows + 1))
    assert files[-1].last == shape.last_block == shape.block_of(rows)


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**35, 2**64 - 1])
def test_write_numbers__any__read_back(value: int) -> None:
    written = varint(value)

    assert len(written) == varint_width(value)
    assert sum((byte & 0x7F) << 7 * index for index, byte in enumerate(written)) == value
    assert int.from_bytes(words(np.array([value], np.uint64)).tobytes(), "big") == value
    assert decimals(np.array([value], np.uint64), tables.UINT64).to_pylist() == [Decimal(value)]


def test_plan__all_kinds_at_all_nodes__no_two_share_a_sequence() -> None:
    plan = plan_together(LARGE, 330, 8)
    together = [
        sequence_id
        for fault in plan.faults
        if fault.node_id is None or KINDS[fault.kind].place is Place.ANYWHERE
        for sequence_id in range(fault.first, fault.first + fault.width)
    ]

    assert len(plan.faults) == 338
    assert len(set(together)) == len(together)
    assert not any(map(is_quarantined, together))
    assert Counter(fault.node_id for fault in plan.faults if fault.node_id) == dict.fromkeys(
        LARGE.node_ids, 110
    )
    assert {fault.kind for fault in plan.faults if fault.node_id} == set(KINDS)
    assert plan == plan_together(LARGE, 330, 8)


def test_plan__kinds_that_would_meet__stand_once_at_each_node() -> None:
    plan = plan_together(LARGE, 330)
    alone = {name for name, kind in KINDS.items() if kind.is_alone}
    alone |= {name for name, kind in KINDS.items() if kind.place in (Place.FIRST, Place.LAST)}

    assert Counter(fault.kind for fault in plan.faults if fault.kind in alone) == dict.fromkeys(
        alone, 3
    )


def test_plan__no_room__says_so() -> None:
    with pytest.raises(ConfigurationError, match="300 payloads: expected room for all faults"):
        plan_together(SHAPE, 200)


def test_plan__without_signatures__names_none_of_their_findings() -> None:
    plan = plan_once(LARGE, LARGE.node_ids)

    with_signatures, without = plan.findings(), plan.findings(checks_signatures=False)

    assert {each.code for each in with_signatures} - {each.code for each in without} == {
        "SIGNATURE_INVALID"
    }


def test_inject__faults_of_node_and_chain__change_their_rows_and_no_others() -> None:
    node_id = SHAPE.node_ids[0]
    faults = (
        Fault("omitted_run", 11, node_id),
        Fault("twice", 31, node_id),
        Fault("quarantined_served", 50, node_id),
        Fault("payload_byte", 71, node_id),
        Fault("log_left_out", 91, None),
    )
    batch = batch_of(SHAPE)
    made = tables_of(SHAPE, batch)

    changed = Injection(Plan(SHAPE, faults))(SHAPE, batch, made)

    place = node_folder(node_id), "envelopes"
    honest, served = made[place].to_pylist(), changed[place].to_pylist()
    held = [int(row["sequence_id"]) for row in served]
    expected = sorted([*range(1, 301), 31])
    assert held == [n for n in expected if n not in (11, 12, 13, 14, 15, 151, 252)]
    by_sequence = {row["sequence_id"]: row for row in honest}
    differing = [n for n, row in zip(held, served, strict=True) if by_sequence.get(n) != row]
    assert differing == [50, 71]
    assert len(changed[CHAIN, "logs"]) == len(made[CHAIN, "logs"]) - 1
    others = made.keys() - {place, (CHAIN, "logs")}
    assert all(changed[other].equals(made[other]) for other in others)
