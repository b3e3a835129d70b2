"""The chain's logs by whole columns, held against those that are decoded one by one."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from chainkit.signatures import BLOCKCHAIN_LABEL, keccak256
from chainkit_jobs.reconcile.expected import decode_row
from chainkit_jobs.reconcile.screening.chain_rows import chain_rows, first_sequence
from chainkit_jobs.reconcile.screening.expected_bytes import slices
from support.audit.audit_exports import base_posts, payload_log, registered, time_of
from support.audit.identities import GROUP_MESSAGES
from support.audit.screening import CONTRACTS, batch, times

LOGS = [payload_log(post) for post in base_posts()]


def decoded(row):
    name = "GroupMessages" if row["address"] == GROUP_MESSAGES else "IdentityUpdates"
    return decode_row(row | {"contract": name, "block_timestamp": time_of(row["block_number"])})


def digests(found):
    unsigned = slices(
        found.expected.envelope, found.expected.unsigned_start, found.expected.unsigned_length
    )
    return [
        keccak256(BLOCKCHAIN_LABEL + each + bytes(found.transaction_hashes[row]))
        for row, each in enumerate(unsigned.to_pylist())
    ]


def agree(found, rows):
    """Each row is as it is decoded by itself, or is called odd and left to that."""
    expected = [decoded(row) for row in rows]
    held = digests(found)
    assert len(found) == len(rows)
    for number, row in enumerate(expected):
        if row.get("malformed") is not None:
            assert found.is_odd[number]
            continue
        assert int(found.sequence_ids[number]) == int(row["sequence_id"])
        assert found.payload_sizes[number] == row["payload_size"]
        assert found.is_valid[number] == (row["quarantine_reason"] is None)
        assert found.is_odd[number] or held[number] == row["digest"]
    malformed = [row for row in expected if row.get("malformed") is not None]
    assert len(found.malformed) == len(malformed)


def test_chain_rows__logs_of_a_chain__none_is_odd_and_all_agree():
    found = chain_rows(batch(LOGS), times(range(1, 21)), CONTRACTS)

    agree(found, LOGS)
    assert not found.is_odd.any()


def test_chain_rows__other_logs_between_them__are_left_out():
    strange = registered(100) | {"topics": []}
    rows = [registered(100), *LOGS[:2], strange, *LOGS[2:]]

    found = chain_rows(batch(rows), times(range(1, 21)), CONTRACTS)

    agree(found, LOGS)


def test_chain_rows__no_payload_at_all__has_no_rows():
    found = chain_rows(batch([registered(100)]), times(range(1, 21)), CONTRACTS)

    assert len(found) == 0


@given(st.data())
def test_chain_rows__any_bytes_changed__agree_or_are_odd(data):
    rows = []
    for log in LOGS:
        payload = bytearray(log["data"])
        for _ in range(data.draw(st.integers(0, 2))):
            place = data.draw(st.integers(0, len(payload) - 1) | st.integers(0, 127))
            payload[place] = data.draw(st.sampled_from([0, 1, 0xFF]))
        cut = data.draw(st.sampled_from([0, 0, 0, 1, 32, 10_000]))
        rows.append(log | {"data": bytes(payload[: max(0, len(payload) - cut)])})

    agree(chain_rows(batch(rows), times(range(1, 21)), CONTRACTS), rows)


def test_chain_rows__a_block_that_is_not_held_or_has_another_hash__is_malformed():
    fork = [log | {"block_hash": b"\x05" * 32} for log in LOGS[:1]]

    without = chain_rows(batch(LOGS), times(range(11, 21)), CONTRACTS)
    other = chain_rows(batch([*fork, *LOGS[1:]]), times(range(1, 21)), CONTRACTS)

    for found in (without, other):
        assert [row["block_number"] for row in found.malformed] == [10]


def test_chain_rows__hash_of_another_length_and_two_topics__are_odd():
    rows = [LOGS[0] | {"transaction_hash": b"short"}, LOGS[1] | {"topics": LOGS[1]["topics"] * 2}]

    found = chain_rows(batch(rows), times(range(1, 21)), CONTRACTS)

    assert found.is_odd.tolist() == [True, True]
    assert [row["log_index"] for row in found.malformed] == [rows[1]["log_index"]]


def test_first_sequence__after_other_logs__is_the_first_payload_s():
    posts = [replace(post, sequence_id=post.sequence_id + 500) for post in base_posts()]

    rows = [registered(100), *map(payload_log, posts)]

    assert first_sequence(batch(rows), CONTRACTS) == 501
    assert first_sequence(batch(rows[:1]), CONTRACTS) is None
