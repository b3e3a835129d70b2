"""The file of desired nodes: what people and others may write into it."""

import os
import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from chainkit.council.registry_plan import DesiredNode, read_desired_nodes
from chainkit.documents.yaml_text import LARGEST_FILE_BYTES
from chainkit.errors import ConfigurationError
from support.council.fake_registry import HOLDER, node_key

KEYS = [node_key(number).public_key for number in (1, 2, 3)]


def entry(public_key: bytes = KEYS[0], **changes: str | None) -> str:
    fields: dict[str, str | None] = {
        "key": "0x" + public_key.hex(),
        "holder": HOLDER,
        "http_address": "https://node.example",
        "status": "enabled",
    }
    lines = [f"{name}: {value}" for name, value in (fields | changes).items() if value is not None]
    return "  - " + "\n    ".join(lines) + "\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "nodes.yaml"


def read(path: Path, text: str | bytes) -> tuple[DesiredNode, ...]:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_desired_nodes(path)


def refusal(path: Path, text: str | bytes) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        read(path, text)
    assert str(caught.value).isprintable()
    assert caught.value.subject == f"desired nodes {path}"
    return caught.value


def test_read__nodes_as_people_write_them__are_text_as_written(path: Path) -> None:
    text = "# the testnet\nnodes:\n" + entry() + entry(KEYS[1], status='"disabled"  # since May')

    assert read(path, text) == (
        DesiredNode(KEYS[0], HOLDER, "https://node.example", True, "nodes[0]"),
        DesiredNode(KEYS[1], HOLDER, "https://node.example", False, "nodes[1]"),
    )


def test_read__hex_that_yaml_takes_for_an_integer__is_the_text(path: Path) -> None:
    text = "nodes:\n" + entry()
    (plain,) = yaml.safe_load(text)["nodes"]
    assert isinstance(plain["key"], int) and isinstance(plain["holder"], int)

    (node,) = read(path, text)
    (quoted,) = read(path, "nodes:\n" + entry(holder=f'"{HOLDER}"'))

    assert (node.key, node.holder) == (KEYS[0], HOLDER)
    assert quoted == node


def test_read__no_nodes__is_empty(path: Path) -> None:
    assert read(path, "nodes: []\n") == ()


@pytest.mark.parametrize(
    ("changes", "place", "words"),
    [
        ({"key": "0x04abcd"}, "nodes[0].key", '0x and 130 hex digits, got "0x04abcd"'),
        ({"key": None}, "nodes[0].key", "got nothing"),
        ({"key": ""}, "nodes[0].key", "0x and 130 hex digits"),
        ({"key": "0x" + KEYS[0][:-1].hex() + "00"}, "nodes[0].key", "a point of secp256k1"),
        ({"key": "[]"}, "nodes[0].key", "expected a value, got a list"),
        ({"holder": HOLDER[:-1] + "9"}, "nodes[0].holder", "its own checksum"),
        ({"holder": "0x" + 40 * "0"}, "nodes[0].holder", "the zero address"),
        ({"holder": "node.eth"}, "nodes[0].holder", '0x and 40 hex digits, got "node.eth"'),
        ({"http_address": "node.example"}, "nodes[0].http_address", "http:// or https://"),
        ({"http_address": "https://a@b.example"}, "nodes[0].http_address", "a user before it"),
        ({"http_address": '"https://a.example/\\e[2J"'}, "nodes[0].http_address", "\\x1b[2J"),
        ({"http_address": "https://n\u043ede.example"}, "nodes[0].http_address", "\\u043ede"),
        ({"status": "true"}, "nodes[0].status", 'enabled or disabled, got "true"'),
        ({"status": "Enabled"}, "nodes[0].status", "enabled or disabled"),
        ({"status": None}, "nodes[0].status", "got nothing"),
        ({"node_id": "100"}, "nodes[0].node_id", "one of key, holder, http_address, status"),
        ({"st\u0430tus": "disabled"}, "nodes[0].st\\u0430tus", "an unknown field"),
        ({"<<": "{status: disabled}"}, "nodes[0].<<", "an unknown field"),
    ],
)
def test_read__field_that_cannot_be_used__is_named_by_its_path(
    path: Path, changes: dict[str, str | None], place: str, words: str
) -> None:
    error = refusal(path, "nodes:\n" + entry(KEYS[0], **changes))

    assert error.place == place
    assert words in str(error)


def test_read__several_faults__are_told_at_once(path: Path) -> None:
    bad = entry(status="on", holder="0x12") + entry(KEYS[1], http_address="ftp://a.example")

    error = refusal(path, "owner: me\nnodes:\n" + bad)

    places = ["owner", "nodes[0].holder", "nodes[0].status", "nodes[1].http_address"]
    assert error.place == ", ".join(places)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected a mapping with `nodes`, got nothing"),
        ("nodes:\n", "expected a list, got nothing (nodes)"),
        ("- key: 1\n", "got a list"),
        ("nodes: {}\n", "expected a list, got a mapping (nodes)"),
        ("nodes: [enabled]\n", 'got "enabled" (nodes[0])'),
        ("knots: []\nnodes: []\n", "an unknown field (knots)"),
        ("nodes: []\nnodes: []\n", "field nodes twice (line 2)"),
        ("nodes: [\n", "expected YAML, got"),
        ("nodes: []\n---\nnodes: []\n", "expected YAML, got"),
        ("? [a]\n: b\n", "a field whose name is no text"),
        (b"nodes: \xff\n", "expected UTF-8, got byte 7"),
        ("nodes: [\x1b]\n", "expected YAML, got"),
        ("nodes: *a\n", "an alias"),
        ("nodes: " + 5000 * "[", "expected YAML, got"),
        ('nodes: ["\\UFFFFFFFF"]\n', "expected YAML, got"),
        ('nodes: ["\\U00110000"]\n', "expected YAML, got"),
        ('nodes: ["\\uD800"]\n', 'got "\\ud800"'),
        ("nodes: &a [*a]\n", "an alias"),
        ("#" * (LARGEST_FILE_BYTES + 1), "at most 1048576 bytes"),
    ],
)
def test_read__no_such_file_of_nodes__is_one_sentence(
    path: Path, text: str | bytes, words: str
) -> None:
    assert words in str(refusal(path, text))


def test_read__field_twice_in_a_node__is_refused(path: Path) -> None:
    text = "nodes:\n" + entry() + "    holder: " + HOLDER + "\n"

    assert "field holder twice (line 6)" in str(refusal(path, text))


@pytest.mark.parametrize("digits", [KEYS[0].hex(), KEYS[0].hex().upper()], ids=["lower", "upper"])
def test_read__two_nodes_with_one_key__are_refused(path: Path, digits: str) -> None:
    error = refusal(path, "nodes:\n" + entry() + entry(KEYS[1]) + entry(key=f"0x{digits}"))

    assert error.place == "nodes[2].key"
    assert "the key of nodes[0]" in str(error)


def test_read__tag_that_would_make_an_object__makes_none(path: Path) -> None:
    assert read(path, "nodes: !!python/object/apply:os.abort []\n") == ()


def test_read__file_that_cannot_be_read__is_told(tmp_path: Path) -> None:
    for path, told in ((tmp_path / "missing.yaml", "does not exist"), (tmp_path, "got a folder")):
        with pytest.raises(ConfigurationError, match=told):
            read_desired_nodes(path)


def test_read__many_aliases__take_no_more_than_the_file(path: Path) -> None:
    lists = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 40))

    error = refusal(path, f"a0: &a0 [x]\n{lists}\nnodes: []\n")

    assert (error.got, error.place) == ("an alias, which no such file needs", "line 2")


def test_read__device_without_end_and_pipe_that_nobody_writes_to__are_refused(path: Path) -> None:
    os.mkfifo(path)

    for each in (path, Path("/dev/zero")):
        with pytest.raises(ConfigurationError, match="got a pipe or a device"):
            read_desired_nodes(each)


def test_read__thousands_of_faults__make_an_error_that_ends(path: Path) -> None:
    error = refusal(path, "nodes:\n" + 2000 * "  - {}\n")

    assert "nodes[0].key" in error.place
    assert error.place.endswith("and 7980 more")
    assert len(str(error)) < 10_000


def test_read__name_of_a_field_as_long_as_the_file__makes_a_short_error(path: Path) -> None:
    error = refusal(path, f"nodes:\n{entry()}    ? {300_000 * 'z'}\n    : x\n")

    assert "an unknown field" in str(error)
    assert len(str(error)) < 2000


@pytest.mark.parametrize("field", ["key", "holder", "http_address", "status"])
def test_read__long_value_of_a_field__makes_a_short_error(path: Path, field: str) -> None:
    error = refusal(path, "nodes:\n" + entry(**{field: 300_000 * "z"}))

    assert error.place == f"nodes[0].{field}"
    assert len(str(error)) < 2000


WORDS = (
    'nodes: key: status 0x04 : - ? &a *a [ ] { } !!binary | > " \\U FFFFFFFF # --- ... %YAML << ,'
)
PIECES = st.sampled_from([*WORDS.split(), "\n", "  ", "\t"])


@given(st.one_of(st.binary(max_size=200), st.lists(PIECES, max_size=40).map("".join)))
def test_read__any_bytes__are_nodes_or_a_printable_refusal(content: bytes | str) -> None:
    with tempfile.NamedTemporaryFile() as file:
        path = Path(file.name)
        try:
            assert read(path, content) == ()
        except ConfigurationError as error:
            assert str(error).isprintable()
