"""Expected bytes by whole columns, held against those that are built one by one."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from chainkit.protocol.chain_time import MAXIMUM_BLOCK_TIMESTAMP
from chainkit.protocol.envelope import originator_envelope, unsigned_originator_envelope
from chainkit.types import message_sent
from chainkit_jobs.reconcile.screening.expected_bytes import expected_bytes, matrix, pieces, slices

IDENTIFIER = b"\x01" * 32

edges = st.sampled_from([1, 127, 128, 2**14 - 1, 2**14, 2**35, 2**63, 2**64 - 1])
posts = st.lists(
    st.tuples(
        edges | st.integers(1, 2**64 - 1),
        st.integers(1, MAXIMUM_BLOCK_TIMESTAMP),
        st.binary(min_size=1, max_size=300) | st.sampled_from([b"x" * 16_384, b"y" * 130]),
        st.binary(min_size=32, max_size=32),
    ),
    min_size=1,
    max_size=6,
)


@given(posts)
def test_expected_bytes__any_payloads__are_the_envelopes_but_for_their_signatures(rows):
    sequences, times, payloads, hashes = zip(*rows, strict=True)

    found = expected_bytes(
        np.array(sequences, dtype=np.uint64),
        np.array(times, dtype=np.int64),
        pa.array(payloads, pa.binary()),
        np.frombuffer(b"".join(hashes), dtype=np.uint8).reshape(-1, 32),
    )

    unsigned = [
        unsigned_originator_envelope(message_sent(IDENTIFIER, payload, sequence), time)
        for sequence, time, payload, _ in rows
    ]
    whole = [
        originator_envelope(each, transaction, b"\x07" * 65)
        for each, transaction in zip(unsigned, hashes, strict=True)
    ]
    assert found.envelope.to_pylist() == [each[:-65] for each in whole]
    parts = slices(found.envelope, found.unsigned_start, found.unsigned_length)
    assert parts.to_pylist() == unsigned


@given(st.data(), st.lists(st.binary(max_size=40), max_size=8), st.integers(0, 3))
def test_slices_and_pieces__any_values_at_any_offset__are_python_s(data, values, skipped):
    array = pa.array([b"before"] * skipped + values, pa.binary()).slice(skipped)
    starts = [data.draw(st.integers(0, len(value))) for value in values]
    lengths = [
        data.draw(st.integers(0, len(value) - start))
        for value, start in zip(values, starts, strict=True)
    ]

    cut = slices(array, np.array(starts, np.int64), np.array(lengths, np.int64))

    assert cut.to_pylist() == [
        value[start : start + length]
        for value, start, length in zip(values, starts, lengths, strict=True)
    ]
    assert list(pieces(array)) == values


def test_matrix__values_of_one_length_behind_an_offset__one_row_each():
    array = pa.array([b"no", b"ab", b"cd"], pa.binary()).slice(1)

    assert matrix(array, 2).tolist() == [[97, 98], [99, 100]]
