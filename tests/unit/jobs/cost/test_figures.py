from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.contracts.interface import shipped_interface
from chainkit.errors import StoreError
from chainkit_jobs.cost import figures
from chainkit_jobs.cost.functions import selectors
from chainkit_jobs.cost.headroom import BlockTotals, MessageTotals, headroom
from chainkit_jobs.cost.ratios import ratio
from chainkit_jobs.cost.schema import RATIOS, SORTED_BY, TABLES
from chainkit_jobs.cost.terminal import cost_lines, decimal_text
from chainkit_jobs.cost.totals import variant_totals
from chainkit_jobs.cost.writing import complete_row, json_text

whole = st.integers(0, 10**38 - 1)

BLOCKS = BlockTotals(
    blocks=101, first_timestamp=1000, last_timestamp=1200, gas_limit=101 * 30_000_000, gas_used=101
)
MESSAGES = MessageTotals(messages=50, gas=2_100_000, message_gas=2_000_000, gas_p95=60_000)


@given(whole, st.integers(1, 2**63 - 1), st.integers(0, 6))
def test_ratio__any_integers__is_within_half_a_digit(above: int, below: int, digits: int) -> None:
    if above // below >= 10 ** (38 - digits) - 1:
        return
    result = ratio(above, below, digits)
    assert result is not None
    error = Fraction(result) - Fraction(above, below)
    assert Fraction(-1, 2) < error * 10**digits <= Fraction(1, 2)


@pytest.mark.parametrize(
    ("above", "below", "digits", "expected"),
    [
        (1, 2, 0, "1"),
        (2, 3, 6, "0.666667"),
        (0, 7, 2, "0.00"),
        (10**38 - 1, 2**62, 3, "21684043449710088680.149"),
    ],
)
def test_ratio__known_quotients__every_digit_is_right(
    above: int, below: int, digits: int, expected: str
) -> None:
    result = ratio(above, below, digits)
    assert result is not None
    assert format(result, "f") == expected


def test_ratio__nothing_below__is_unknown() -> None:
    assert ratio(5, 0, 3) is None


def test_ratio__more_than_38_digits__is_refused() -> None:
    with pytest.raises(StoreError, match="at most 35 digits"):
        ratio(10**38 - 1, 1, 3)


def test_headroom__2_seconds_a_block__messages_are_gas_over_gas_and_time() -> None:
    told = headroom(BLOCKS, MESSAGES)

    assert told["block_seconds"]["mean"] == Decimal("2.000")
    assert told["mean_gas"] == Decimal("40000.000")
    seconds = told["messages_per"]["second"]
    assert seconds["limit_at_mean"] == Decimal("375.000")
    assert seconds["limit_at_p95"] == Decimal("250.000")
    assert seconds["observed"] == Decimal("0.248")
    assert told["messages_per"]["hour"]["limit_at_mean"] == Decimal("1350000.000")
    assert told["messages_per"]["day"]["limit_at_p95"] == Decimal("21600000.000")
    assert told["own_share"] == Decimal("0.000693069307")
    assert told["used_share"] == Decimal("0.000000033333")


def test_headroom__gas_that_others_used__is_not_to_be_had() -> None:
    half = BlockTotals(101, 1000, 1200, 101 * 30_000_000, 101 * 15_000_000)
    assert headroom(half, MESSAGES)["messages_per"]["second"]["unused_at_mean"] == Decimal("187.5")


@pytest.mark.parametrize(
    ("blocks", "messages"),
    [
        (BlockTotals(1, 1000, 1000, 30_000_000, 0), MESSAGES),
        (BLOCKS, MessageTotals(0, 0, 0, None)),
    ],
    ids=["one block", "no message"],
)
def test_headroom__nothing_to_divide_by__rates_are_unknown(
    blocks: BlockTotals, messages: MessageTotals
) -> None:
    told = headroom(blocks, messages)
    assert told["messages_per"]["second"]["limit_at_mean"] is None
    assert told["messages_per"]["day"]["unused_at_p95"] is None


@pytest.mark.parametrize(
    ("contract", "function"),
    [
        ("GroupMessages", "addMessage(bytes32,bytes)"),
        ("IdentityUpdates", "addIdentityUpdate(bytes32,bytes)"),
        ("NodeRegistry", "addNode(address,bytes,string)"),
    ],
)
def test_selectors__a_function_of_ours__is_named_with_its_types(
    contract: str, function: str
) -> None:
    name = function.partition("(")[0]
    arguments: dict[str, tuple[Any, ...]] = {
        "addNode": ("0x" + "11" * 20, b"", ""),
    }
    data = shipped_interface(contract).encode(name, *arguments.get(name, (bytes(32), b"")))
    assert selectors(contract)[data[:4]] == function


def test_selectors__overloads__are_both_there() -> None:
    names = list(selectors("NodeRegistry").values())
    assert sum(name.startswith("safeTransferFrom(") for name in names) == 2


def test_selectors__a_contract_without_a_shipped_abi__are_none() -> None:
    assert selectors("Stranger") == {}


@pytest.mark.parametrize("name", TABLES)
def test_tables__every_one__says_its_version_and_is_sorted_by_its_own_columns(name: str) -> None:
    schema = TABLES[name]
    assert schema.metadata[b"chainkit.schema_version"] == b"1"
    assert schema.metadata[b"chainkit.table"] == f"cost/{name}".encode()
    assert set(SORTED_BY[name]) <= set(schema.names)
    for column in set(RATIOS) & set(schema.names):
        assert {RATIOS[column][0], RATIOS[column][1]} <= set(schema.names)


def test_complete_row__ratios__are_made_of_the_rows_integers() -> None:
    row = {name: 0 for name in TABLES["blocks"].names} | {"gas": 1, "gas_limit": 3}
    done = complete_row(TABLES["blocks"], row)
    assert done["limit_share"] == Decimal("0.333333333333")
    assert list(done) == TABLES["blocks"].names


def test_json_text__bytes_and_decimals__are_exact_text() -> None:
    text = json_text({"wei": Decimal(10**38 - 1), "hash": b"\x0f", "share": Decimal("0E-12")})
    assert text == '{"hash": "0x0f", "share": "0.000000000000", "wei": "' + "9" * 38 + '"}'


def test_tables__every_column__is_no_float() -> None:
    assert not any(
        "float" in str(field.type) or "double" in str(field.type)
        for schema in TABLES.values()
        for field in schema
    )


def test_decimal_text__beyond_a_double__keeps_every_digit() -> None:
    assert decimal_text(10**30 + 1, 18) == "1000000000000.000000000000000001"
    assert decimal_text(5 * 10**18, 18) == "5"


def variant_row(size: int | None, **changes: Any) -> dict[str, Any]:
    row = {"variant": "ours", "rules": "cancun", "size_from": size, "messages": 2}
    amounts = {"payload_bytes": 8, "gas": 30, "capped": 1, "observed_gas": 40}
    return row | amounts | {"wei": Decimal(10**37), "observed_wei": Decimal(7)} | changes


def test_variant_totals__two_size_classes__add_up_exactly() -> None:
    [total] = variant_totals([variant_row(0), variant_row(None, gas=11, wei=Decimal(1))])
    assert (total["gas"], total["observed_gas"], total["messages"]) == (41, 80, 4)
    assert total["wei"] == Decimal(10**37 + 1)
    assert total["gas_ratio"] == Decimal("0.512500")


def summary(**changes: Any) -> dict[str, Any]:
    total: dict[str, Any] = {name: 10**18 for name in TABLES["total"].names}
    total |= {"paid_wei": Decimal(10**38 - 1), "price": Decimal("123456789012345.678")}
    total |= {"wei_p99": Decimal(10**19), "l1_share": None, "gas_per_byte": Decimal("1.5")}
    variants = [
        variant_row(0, rules=rules, gas_ratio=Decimal("0.5")) for rules in ("cancun", "prague")
    ]
    busy = {"messages": 5, "gas": 7}
    return {
        "chain": {"from_block": 10**9, "to_block": 2 * 10**9},
        "total": total,
        "variants": variants,
        "headroom": headroom(BLOCKS, MESSAGES),
        "busiest": {"block": busy | {"number": 5}, "hour": busy | {"hour": 7200}, "day": None},
    } | changes


def test_cost_lines__large_numbers__fit_100_columns_with_all_digits() -> None:
    lines = list(cost_lines(summary()))

    assert max(map(len, lines)) <= 100
    text = "\n".join(lines)
    assert "99999999999999999999.999999999999999999" in text
    assert "123456.789012345678" in text
    assert "busiest hour: 1970-01-01 02:00 UTC, 5 messages, 7 gas" in lines


def hour_row(hour: int, **changes: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"hour": hour, "gas": 100, "failed_gas": 30}
    return row | {"price": Decimal("2000000000.5"), "limit_share": Decimal("0.25")} | changes


def test_gas_over_time__an_hour_with_failures__stands_on_top_of_the_rest() -> None:
    [axes] = figures.gas_over_time([hour_row(3600)], "hour").axes
    kept, wasted = (container.patches[0] for container in axes.containers)
    assert (kept.get_height(), wasted.get_y(), wasted.get_height()) == (70, 70, 30)
    assert kept.get_x() == pytest.approx(1 / 24)


def levels(axes: Any) -> list[Any]:
    """Begin, end (in days) and height of each level."""
    segments = axes.collections[0].get_segments()
    return [[begin[0], end[0], begin[1]] for begin, end in (part.tolist() for part in segments)]


def test_price_over_time__an_hour_without_gas__is_left_out() -> None:
    [axes] = figures.price_over_time([hour_row(0), hour_row(3600, price=None)], "hour").axes
    assert levels(axes) == [pytest.approx([0, 1 / 24, 2.0000000005])]


def test_limit_over_time__a_quarter__is_25_percent() -> None:
    [axes] = figures.limit_over_time([hour_row(0)], "hour").axes
    assert levels(axes) == [pytest.approx([0, 1 / 24, 25])]


@pytest.mark.parametrize("key", ["hour", "day"])
def test_over_time__one_bar__fills_the_time_that_is_shown(key: str) -> None:
    row = hour_row(86_400 * 19_000) | {"day": 86_400 * 19_000}
    for draw in (figures.gas_over_time, figures.price_over_time, figures.limit_over_time):
        [axes] = draw([row], key).axes
        first, last = axes.get_xlim()
        assert last - first == pytest.approx(1.04 * (1 / 24 if key == "hour" else 1))


def test_price_over_time__a_price_of_nothing__still_has_a_scale() -> None:
    [axes] = figures.price_over_time([hour_row(0, price=Decimal(0))], "hour").axes
    assert axes.get_ylim() == (0, 1)


def test_size_against_gas__an_empty_payload__is_drawn_at_one_byte() -> None:
    rows = [{"contract": "GroupMessages", "payload_bytes": size, "gas": 9} for size in (0, 64)]
    [axes] = figures.size_against_gas(rows).axes
    assert axes.collections[0].get_offsets()[:, 0].tolist() == [1, 64]


def test_variants_beside_paid__two_hardforks__are_bars_of_their_ratios() -> None:
    rows = [
        {"variant": "hash", "rules": rules, "gas_ratio": Decimal(ratio_)}
        for rules, ratio_ in (("cancun", "0.5"), ("prague", "0.75"))
    ]
    [axes] = figures.variants_beside_paid(rows).axes
    widths = [container.patches[0].get_width() for container in axes.containers]
    assert widths == [0.5, 0.75]
