"""JSON of one block from which an endpoint leaves something out: the same rows, or which field."""

import pytest

from chainkit.errors import Unconfirmed
from support.endpoints.transaction_answers import (
    DYNAMIC_FEE,
    LEGACY,
    OPTIMISM_DEPOSIT,
    Answer,
)

from .test_rows import CHAIN_ID, OTHER, body, parse_changed, transaction_row


@pytest.mark.parametrize(
    ("field", "place"),
    [
        *(("hash", "header"), ("gasUsed", "header"), ("input", "transaction 0")),
        *(("nonce", "transaction 0"), ("from", "transaction 0"), ("status", "receipt 0")),
        *(("effectiveGasPrice", "receipt 0"), ("address", "log 0")),
    ],
)
def test_parse__field_left_out_that_nothing_else_tells__asks_for_another_endpoint(
    field: str, place: str
) -> None:
    with pytest.raises(Unconfirmed, match=f"block 5: expected {field}: .*got nothing") as caught:
        parse_changed(field, None, place)

    assert caught.value.place == place


def without(transaction: Answer, *names: str) -> Answer:
    return {name: value for name, value in transaction.items() if name not in names}


@pytest.mark.parametrize(
    "told",
    [
        without(DYNAMIC_FEE, "v"),
        without(DYNAMIC_FEE, "yParity"),
        without(DYNAMIC_FEE, "chainId", "accessList"),
        without(DYNAMIC_FEE, "input") | {"data": "0x"},
        DYNAMIC_FEE | {"v": "0x1c"},
        without(DYNAMIC_FEE, "yParity") | {"v": "0x1c"},
        without(DYNAMIC_FEE, "yParity") | {"v": hex(35 + 2 * CHAIN_ID + 1)},
    ],
)
def test_parse_body__fields_left_out__is_the_same_row(told: Answer) -> None:
    assert transaction_row(told) == transaction_row(DYNAMIC_FEE)


def test_parse_body__legacy_without_v_or_chain__is_the_same_row() -> None:
    parity = hex(1 - int(LEGACY["v"], 16) % 2)

    assert transaction_row(without(LEGACY, "v") | {"yParity": parity}) == transaction_row(LEGACY)
    assert transaction_row(without(LEGACY, "chainId")) == transaction_row(LEGACY)


def test_parse_body__left_out_and_not_what_is_assumed__names_the_field() -> None:
    minted = without(OPTIMISM_DEPOSIT, "isSystemTx") | {"hash": OTHER}

    with pytest.raises(Unconfirmed, match="isSystemTx: what the hash is made of, got nothing"):
        body(minted)
