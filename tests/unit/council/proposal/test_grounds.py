from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.council.calls import Call
from chainkit.council.proposal import Evidence, Grounds, split_trailer
from chainkit.council.proposal.grounds import LONGEST_REASON, TRAILER_LENGTH, check_reason
from chainkit.errors import MalformedData
from support.council.proposals import EXPIRES, RECORD, disable, grounds

PRINTABLE = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=80)
SPACED = PRINTABLE.map(lambda text: " ".join(text.split())).filter(bool)
FACTS = st.dictionaries(PRINTABLE, st.tuples(PRINTABLE, PRINTABLE), max_size=4)


@st.composite
def any_grounds(draw: st.DrawFn) -> Grounds:
    facts = draw(FACTS)
    return Grounds(
        reason=draw(SPACED),
        evidence=tuple(
            Evidence(draw(SPACED), draw(st.binary(min_size=32, max_size=32)).hex())
            for _ in range(draw(st.integers(0, 2)))
        ),
        before={name: before for name, (before, _) in facts.items()},
        after={name: after for name, (_, after) in facts.items()},
        runs=draw(st.dictionaries(PRINTABLE, PRINTABLE, max_size=2)),
        expires=draw(st.integers(0, 2**63 - 1)),
    )


@given(any_grounds())
def test_parse__content_of_any_grounds__gives_them_again(expected: Grounds) -> None:
    found = Grounds.parse(expected.content(), "grounds")

    assert found == expected
    assert found.digest == expected.digest


@pytest.mark.parametrize(
    "change",
    [
        {"reason": "node 300 is behind"},
        {"evidence": ()},
        {"evidence": (Evidence("node-300", "ac" * 32),)},
        {"evidence": (Evidence("node-301", "ab" * 32),)},
        {"before": {"node 300 status": "disabled"}},
        {"after": {"node 300 status": "gone"}},
        {"runs": {"GroupMessages": "0x00"}},
        {"expires": EXPIRES + 1},
    ],
)
def test_trailer__anything_changed__is_another(change: dict[str, object]) -> None:
    assert grounds(**change).trailer != grounds().trailer
    assert grounds(**change).digest != grounds().digest


@given(st.binary(max_size=200), any_grounds())
def test_split_trailer__data_with_one__gives_both_back(data: bytes, found: Grounds) -> None:
    rest, trailer = split_trailer(data + found.trailer)

    assert rest == data
    assert trailer is not None
    assert (trailer.expires, trailer.digest) == (found.expires, found.digest)


@pytest.mark.parametrize("length", [0, 1, TRAILER_LENGTH - 1, TRAILER_LENGTH, 200])
def test_split_trailer__data_without_one__is_left_as_it_is(length: int) -> None:
    assert split_trailer(bytes(length)) == (bytes(length), None)


def test_split_trailer__cut_by_a_byte__is_none_and_the_call_is_refused() -> None:
    cut = (disable().calldata + grounds().trailer)[:-1]

    data, trailer = split_trailer(cut)

    assert (data, trailer) == (cut, None)
    with pytest.raises(MalformedData, match="its arguments alone"):
        Call.read(RECORD, disable().target, data)


@pytest.mark.parametrize("reason", ["", "  ", "x" * (LONGEST_REASON + 1)])
def test_check_reason__none_or_too_long__says_how_long_it_may_be(reason: str) -> None:
    with pytest.raises(MalformedData, match=f"1 to {LONGEST_REASON} characters"):
        check_reason(reason)


@pytest.mark.parametrize("reason", ["two\nlines", "\x1b[2Jclean", "nоde", "right\u202eleft"])
def test_check_reason__letters_that_deceive__is_refused(reason: str) -> None:
    with pytest.raises(MalformedData, match="printable ASCII"):
        check_reason(reason)


def test_check_reason__letter_that_is_no_ascii__says_which_and_where() -> None:
    with pytest.raises(MalformedData, match=r"got \\u2019 as character 6"):
        check_reason("bob\u0027s\u2019 node")


@pytest.mark.parametrize("reason", ["a  b", " a", "a ", "a" + 80 * " " + "SafeTx hash 0x11"])
def test_check_reason__blanks_that_move_text__is_refused(reason: str) -> None:
    with pytest.raises(MalformedData, match="reason: expected single blanks"):
        check_reason(reason)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("evidence", [{"name": "a  b", "sha256": "ab" * 32}], "name: expected single blanks"),
        ("evidence", [{"name": " a", "sha256": "ab" * 32}], "name: expected single blanks"),
        ("reason", "two\nlines", "printable text"),
        ("expires", -1, "an integer"),
        ("expires", "soon", "an integer"),
        ("before", [], "an object"),
        ("before", {"node 300 status": 1}, "printable text"),
        ("before", {"\x1b[2J": "x"}, "printable text"),
        ("before", {"node 300 status": "x" * 4097}, "at most 4096 characters"),
        ("after", {}, "the names in before"),
        ("evidence", [{"name": "a"}], "the fields name, sha256"),
        ("evidence", [{"name": "a", "sha256": "AB" * 32}], "64 hex digits"),
        ("evidence", [{"name": "a" * 101, "sha256": "ab" * 32}], "1 to 100 printable characters"),
        ("evidence", [{"name": "a", "sha256": "ab" * 32}] * 21, "at most 20, got 21"),
        ("runs", None, "an object"),
    ],
)
def test_parse__field_that_is_wrong__is_named(field: str, value: object, words: str) -> None:
    with pytest.raises(MalformedData, match=words):
        Grounds.parse(grounds().content() | {field: value}, "grounds")


def test_difference__facts_that_stay__are_left_out() -> None:
    found = replace(grounds(), before={"a": "1", "b": "2"}, after={"a": "1", "b": "3"})

    assert found.difference == ("b: 2 -> 3",)
