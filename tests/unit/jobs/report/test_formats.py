from decimal import Decimal

import pytest

from chainkit_jobs.report import formats


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (b"\xab" * 32, "0xabababab…ababab"), ("0x1234", "0x1234")],
)
def test_shorten__value__keeps_both_ends(value: bytes | str | None, shown: str) -> None:
    assert formats.shorten(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1234567, "1\u202f234\u202f567"), (Decimal("1234.500000"), "1\u202f234.500000"), (None, "–")],
)
def test_thousands__number__is_grouped_and_exact(value: int | Decimal | None, shown: str) -> None:
    assert formats.thousands(value) == shown


@pytest.mark.parametrize(
    ("first", "below", "shown"), [(0, 1, "0"), (1, 2, "1"), (256, 512, "256 to 511")]
)
def test_size_range__class__names_first_and_last_size(first: int, below: int, shown: str) -> None:
    assert formats.size_range({"size_from": first, "size_below": below}) == shown


@pytest.mark.parametrize(
    ("wei", "shown"),
    [
        (Decimal(10**38 - 1), "99" + 6 * "\u202f999" + "." + "9" * 18),
        (Decimal(5 * 10**17), "0.5"),
        (Decimal(0), "0"),
        (None, "–"),
    ],
)
def test_ether__wei__keeps_every_digit(wei: Decimal | None, shown: str) -> None:
    assert formats.ether(wei) == shown


def test_gwei__price_in_thousandths_of_a_wei__keeps_every_digit() -> None:
    assert formats.gwei(Decimal("123456789012345.678")) == "123\u202f456.789012345678"


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (Decimal("0.333333333333"), "33.3333333333\u202f%"),
        (Decimal("1.000000000000"), "100\u202f%"),
    ],
)
def test_percent__share__keeps_every_digit(share: Decimal, shown: str) -> None:
    assert formats.percent(share) == shown


@pytest.mark.parametrize(
    ("ratio", "shown"), [(Decimal("1926.807167"), "1\u202f926.81"), (None, "–")]
)
def test_hundredths__ratio__is_rounded_and_grouped(ratio: Decimal | None, shown: str) -> None:
    assert formats.hundredths(ratio) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u202eb\n\x1b[31m\ud800", "a\\u202eb\\u000a\\u001b[31m\\ud800"),
        ("\u202f – × ü 漢", "\u202f – × ü 漢"),
    ],
)
def test_visible__text__spells_out_only_what_does_not_show(text: str, shown: str) -> None:
    assert formats.visible(text) == shown


def test_blocks__one_or_more__names_both_ends() -> None:
    assert formats.blocks(7, 7) == "7"
    assert formats.blocks(1, 9600) == "1 to 9\u202f600"
