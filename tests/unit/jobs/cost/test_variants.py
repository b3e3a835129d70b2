from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.signatures import keccak256
from chainkit.types import identity_update_created, message_sent
from chainkit_jobs.cost.variants import (
    FRESH_SLOT,
    VARIANT_COLUMNS,
    VARIANTS,
    calldata_tokens,
    column,
    variant_gas,
)
from tools.gas_study import __main__ as study
from tools.gas_study.cases import GROUP_ID, SIZES, counting_payload, random_payload
from tools.gas_study.measuring_chain import call_data, calldata_gas
from tools.gas_study.rows import read_rows

ROWS = {row.key: row.gas for row in read_rows(study.SNAPSHOT) if row.table != "registry"}
RULES_OF = {"cancun": "cancun", "osaka": "prague"}

# Case of the study, variant here, sequence id of the message.
WHOLE = [
    ("complete-event", "complete-event", 1),
    ("complete-event-later", "complete-event", 2),
    ("complete", "complete", 1),
    ("stored-message", "stored-message", 2),
    ("stored-code", "stored-code", 2),
    ("add-message", "ours", 2),
    ("add-message-first", "ours", 1),
    ("add-identity-update", "ours", 2),
]
HASHED = [("hash", "hash", 1), ("hash-event", "hash-event", 1), ("stored-hash", "stored-hash", 2)]


def gas(variant: str, payload: bytes, rules: str, sequence_id: int, is_update: bool = False) -> int:
    event = (identity_update_created if is_update else message_sent)(GROUP_ID, payload, sequence_id)
    return variant_gas(event)[column(variant, rules)]


@pytest.mark.parametrize("hardfork", RULES_OF)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("case", "variant", "sequence_id"), WHOLE, ids=[c[0] for c in WHOLE])
def test_variant_gas__the_studys_payload__is_what_was_measured(
    case: str, variant: str, sequence_id: int, size: int, hardfork: str
) -> None:
    is_update = case == "add-identity-update"
    rules = RULES_OF[hardfork]
    assert (
        gas(variant, random_payload(size), rules, sequence_id, is_update)
        == (ROWS["messages", case, size, None, hardfork])
    )


@pytest.mark.parametrize("hardfork", RULES_OF)
@pytest.mark.parametrize(("case", "variant", "sequence_id"), HASHED, ids=[c[0] for c in HASHED])
def test_variant_gas__a_hash__differs_from_the_studys_by_its_zero_bytes(
    case: str, variant: str, sequence_id: int, hardfork: str
) -> None:
    # The study sends 32 bytes, none of them zero, in place of a hash; a zero byte is 12 gas less.
    for size in SIZES:
        payload = random_payload(size)
        saved = 12 * keccak256(payload).count(0)
        measured = ROWS["messages", case, size, None, hardfork]
        assert gas(variant, payload, RULES_OF[hardfork], sequence_id) == measured - saved


@pytest.mark.parametrize(
    ("case", "variant"), [("complete-event", "complete-event"), ("complete", "complete")]
)
@pytest.mark.parametrize("size", [2_048, 51_200])
def test_variant_gas__xip_49s_own_cell__is_6_gas_below_it(
    case: str, variant: str, size: int
) -> None:
    # Its contracts were compiled for Paris, which costs 6 gas in a call's dispatch.
    published = ROWS["published", case, size, None, "cancun"]
    assert gas(variant, counting_payload(size), "cancun", 1) == published - 6


@pytest.mark.parametrize(
    ("size", "words"), [(32, 1), (64, 2), (96, 2), (31, 0)], ids=lambda value: str(value)
)
def test_variant_gas__words_of_zeros_in_storage__each_is_19900_gas_cheaper(
    size: int, words: int
) -> None:
    # Measured on anvil: writing zero to a slot that was never used costs 2,200 gas, not 22,100.
    zeros = bytes(size) if size != 96 else bytes(64) + b"\x01" * 32
    ones = bytes(byte or 1 for byte in zeros)

    def execution(payload: bytes) -> int:
        calldata = calldata_gas(call_data("addMessage(bytes32,bytes)", GROUP_ID, payload))
        return gas("stored-message", payload, "cancun", 2) - calldata

    assert execution(ones) - execution(zeros) == 19_900 * words


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=200))
def test_calldata_tokens__any_call__are_those_of_the_encoded_bytes(
    identifier: bytes, payload: bytes
) -> None:
    data = call_data("addMessage(bytes32,bytes)", identifier, payload)
    assert 4 * calldata_tokens(data[:4], identifier, payload) == calldata_gas(data)


@given(st.binary(max_size=3000), st.integers(1, 2**64 - 1))
def test_variant_gas__any_message__names_every_column_and_prague_is_never_cheaper(
    payload: bytes, sequence_id: int
) -> None:
    costs = variant_gas(message_sent(GROUP_ID, payload, sequence_id))
    assert set(costs) == set(VARIANT_COLUMNS)
    assert all(costs[column(v, "prague")] >= costs[column(v, "cancun")] > 21_000 for v in VARIANTS)


@given(st.binary(max_size=300), st.integers(2, 2**64 - 1))
def test_variant_gas__sequence_1__pays_for_the_fresh_slot(payload: bytes, later: int) -> None:
    first = variant_gas(message_sent(GROUP_ID, payload, 1))
    other = variant_gas(message_sent(GROUP_ID, payload, later))
    for variant in VARIANTS:
        name = column(variant, "cancun")
        assert first[name] - other[name] == FRESH_SLOT


def test_variant_gas__100_kb_in_storage__needs_more_than_a_transaction_may_ask_for() -> None:
    costs = variant_gas(message_sent(GROUP_ID, random_payload(100_000), 2))
    capped = {variant for variant in VARIANTS if costs[column(variant, "capped")]}
    assert capped == {"stored-message", "stored-code"}
