import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import MalformedData
from chainkit.text.ether import ether_text, ether_words, parse_ether


@pytest.mark.parametrize(
    ("text", "wei"),
    [
        ("0", 0),
        ("0.1", 10**17),
        ("0.10", 10**17),
        ("1", 10**18),
        ("12.000000000000000001", 12 * 10**18 + 1),
        # A float would round it away.
        ("900000000000000000.000000000000000001", 9 * 10**35 + 1),
    ],
)
def test_parse__decimal_number__is_exact(text: str, wei: int) -> None:
    assert parse_ether(text) == wei


@pytest.mark.parametrize(
    "text",
    [
        *["", ".1", "1.", "-1", "+1", "1e2", "1_0", "1,5", "0x1", "nan", "inf", " 1", "1\n", "٣"],
        "0." + "0" * 19,
        "1" * 19,
    ],
)
def test_parse__anything_else__is_refused(text: str) -> None:
    with pytest.raises(MalformedData, match=r"ether: expected a decimal number such as 0\.1"):
        parse_ether(text)


@pytest.mark.parametrize(
    ("wei", "words"),
    [
        (0, "0 ether (0 wei)"),
        (1, "0.000000000000000001 ether (1 wei)"),
        (15 * 10**14, "0.0015 ether (1,500,000,000,000,000 wei)"),
        (10**18, "1 ether (1,000,000,000,000,000,000 wei)"),
        (2_000 * 10**18, "2000 ether (2,000,000,000,000,000,000,000 wei)"),
    ],
)
def test_words__wei__are_exact(wei: int, words: str) -> None:
    assert ether_words(wei) == words


@given(st.integers(min_value=0, max_value=10**36 - 1))
def test_text__any_wei__reads_back(wei: int) -> None:
    assert parse_ether(ether_text(wei)) == wei
