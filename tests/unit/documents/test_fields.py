import json
import math
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.documents.fields import DEEPEST_JSON, MOST_FAULTS, Faults, Fields, read_json
from chainkit.errors import ConfigurationError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4)
    ),
    max_leaves=20,
)


def read(content: str | bytes) -> Any:
    with NamedTemporaryFile() as file:
        file.write(content if isinstance(content, bytes) else content.encode())
        file.flush()
        return read_json(Path(file.name), "file")


def refusal(content: str | bytes) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        read(content)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 2000
    return caught.value


@given(VALUES, st.sampled_from([None, 2]), st.booleans())
def test_read__any_json_that_a_program_writes__is_the_same(
    content: Any, indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(content, indent=indent, ensure_ascii=ascii_only)

    assert read(text.encode()) == content


@given(st.binary(max_size=200))
def test_read__any_bytes__are_json_or_a_printable_refusal(content: bytes) -> None:
    try:
        found = read(content)
    except ConfigurationError as error:
        assert str(error).isprintable()
    else:
        assert found == json.loads(content) or math.isnan(found)


@pytest.mark.parametrize(
    "text",
    [
        '{"account": 1, "account": 2}',
        '{"account": 1, "names": {}, "account": 1}',
        r'{"account": 1, "\u0061ccount": 2}',
        '{"names": {"account": 1, "account": 2}}',
        '[[{"a": 1}, {"account": {}, "account": []}]]',
    ],
    ids=["another value", "the same value", "another spelling", "within", "in a list"],
)
def test_read__field_of_an_object_twice__is_named(text: str) -> None:
    assert "fields that stand there once, got 'account' twice" in str(refusal(text))


def test_read__equal_fields_of_two_objects__are_read() -> None:
    assert read('[{"a": {"a": 1}}, {"a": 2}]') == [{"a": {"a": 1}}, {"a": 2}]


def test_read__long_name_with_escapes_twice__makes_a_short_error() -> None:
    name = json.dumps("\x1b[2J" + 100_000 * "x")

    refusal(f"{{{name}: 1, {name}: 2}}")


def test_read__deepest_that_is_read__is_read() -> None:
    assert read(DEEPEST_JSON * "[" + DEEPEST_JSON * "]") is not None


@pytest.mark.parametrize(
    "text",
    [
        (DEEPEST_JSON + 1) * "[" + (DEEPEST_JSON + 1) * "]",
        (DEEPEST_JSON + 1) * '{"a":' + "1" + (DEEPEST_JSON + 1) * "}",
        600 * "[" + 600 * "]",
        100_000 * "[",
        100_000 * '{"a":',
    ],
    ids=["a list more", "an object more", "hundreds", "without end", "objects without end"],
)
def test_read__lists_within_each_other_too_deep__say_so(text: str) -> None:
    assert "lists and objects within each other, got more" in str(refusal(text))


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"\xef\xbb\xbf{}", "{}".encode("utf-16")])
def test_read__no_json_in_utf_8__says_so(content: bytes) -> None:
    assert refusal(content).expected == "JSON"


def test_field__wrong_value_as_long_as_the_file__makes_a_short_error() -> None:
    fields = Fields({"account": 1_000_000 * "z", "format": [1_000_000 * "z"]}, "file")

    for read_field in (lambda: fields.bytes("account", 20), lambda: fields.integer("format")):
        with pytest.raises(ConfigurationError) as caught:
            read_field()
        assert len(str(caught.value)) < 400


def test_path__name_that_would_rewrite_the_screen__is_safe_to_print() -> None:
    with pytest.raises(ConfigurationError) as caught:
        Fields({"\x1b[2J\u202e": 1}, "file", "names").bytes("\x1b[2J\u202e", 20)

    assert caught.value.place == r"names.\x1b[2J\u202e"


def faults(count: int) -> ConfigurationError:
    found = Faults("file")
    for number in range(count):
        found.add(f"wanted {number}", f"found {number}", f"[{number}]")
    with pytest.raises(ConfigurationError) as caught:
        found.raise_all()
    return caught.value


def test_faults__one__is_told_as_it_was() -> None:
    assert str(faults(1)) == "file: expected wanted 0, got found 0 ([0])"


def test_faults__as_many_as_are_told__are_all_told() -> None:
    error = faults(MOST_FAULTS)

    assert f"[{MOST_FAULTS - 1}] wanted {MOST_FAULTS - 1}" in str(error.expected)
    assert error.place.endswith(f", [{MOST_FAULTS - 1}]")


def test_faults__thousands__are_the_first_and_a_number() -> None:
    error = faults(2000)

    assert error.place.endswith(f", [{MOST_FAULTS - 1}], and {2000 - MOST_FAULTS} more")
    assert f"[{MOST_FAULTS}]" not in str(error)
    assert len(str(error)) < 2000


def test_faults__of_long_words__make_a_short_error() -> None:
    found = Faults("file")
    found.read(None, Fields({"a": 1_000_000 * "z"}, "file").bytes, "a", 20)
    found.add("a value", 1_000_000 * "z", 1_000_000 * "p")

    with pytest.raises(ConfigurationError) as caught:
        found.raise_all()

    assert len(str(caught.value)) < 2000
