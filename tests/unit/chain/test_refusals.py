from typing import Any

import pytest

from chainkit.chain.refusals import RefusalKind, read_rate_limit, read_refusal
from support import vectors

CASES = vectors.load("range_refusals")
TEXT = "maximum block range: 5000"


def name_of(case: dict[str, Any]) -> str:
    return f"{case['provider']}: {case['message'][:50]}"


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_read_refusal__known_wording__is_understood(case: dict[str, Any]) -> None:
    refusal = read_refusal(case["code"], case["message"], case.get("data"))

    assert refusal.kind == case["kind"]
    assert refusal.suggested_blocks == case["suggested_blocks"]
    assert refusal.retry_after == case.get("retry_after")


@pytest.mark.parametrize("kind", RefusalKind)
def test_read_refusal__any_kind__is_among_the_wordings(kind: RefusalKind) -> None:
    assert any(case["kind"] == kind for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_read_refusal__words_in_capitals__means_the_same(case: dict[str, Any]) -> None:
    other = read_refusal(case["code"], case["message"].upper(), case.get("data"))

    assert other == read_refusal(case["code"], case["message"], case.get("data"))


@pytest.mark.parametrize(
    "data",
    [
        None,
        7,
        1e300,
        True,
        [],
        ["x"],
        {},
        {"a": {"b": {"c": {"d": "too many requests"}}}},
        {"a": None},
    ],
    ids=repr,
)
def test_read_refusal__data_of_any_type__is_read_past(data: object) -> None:
    refusal = read_refusal(-32000, TEXT, data)

    assert (refusal.kind, refusal.suggested_blocks) == (RefusalKind.RANGE, 5000)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("max " * 10**6, RefusalKind.UNKNOWN),
        ("block range [0x" * 10**6, RefusalKind.RANGE),
        ("9" * 10**6 + " at most " + "9" * 10**6 + " blocks", RefusalKind.UNKNOWN),
        ("header" + " " * 10**6 + "not found", RefusalKind.UNKNOWN),
    ],
    ids=["words", "brackets", "digits", "spaces"],
)
def test_read_refusal__gigantic_message__is_read_as_far_as_a_sentence_goes(
    message: str, kind: RefusalKind
) -> None:
    refusal = read_refusal(-32000, message, {"more": message})

    assert (refusal.kind, refusal.suggested_blocks) == (kind, None)


@pytest.mark.parametrize(
    ("code", "message", "is_limit"),
    [
        (-32005, "refused", True),
        (429, "refused", True),
        (-32000, "Too many requests", True),
        (-32000, "execution reverted", False),
        (None, "", False),
    ],
)
def test_read_rate_limit__any_other_method__by_its_code_or_words(
    code: int | None, message: str, is_limit: bool
) -> None:
    assert (read_rate_limit(code, message) is not None) == is_limit
