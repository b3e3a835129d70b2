import copy
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chainkit.contracts.deployment import (
    DeployedContract,
    RecordedParameters,
    parse_deployment_record,
    read_deployment_record,
    replace_implementation,
)
from chainkit.contracts.parameters import Parameters, PayloadBounds
from chainkit.errors import ConfigurationError

CONTRACTS = ["GroupMessages", "IdentityUpdates", "NodeRegistry", "OriginatorSequence"]
PROXIES = CONTRACTS[:2]


def contract(number: int) -> dict[str, Any]:
    return {
        "address": "0x" + f"{number:02x}" * 20,
        "block": 10 - number,
        "transaction": "0x" + f"a{number}" * 32,
    }


RECORD: dict[str, Any] = {
    "format": 1,
    "chain_id": 31337,
    "genesis_hash": "0x" + "9e" * 32,
    "deployer": "0x" + "dE" * 20,
    "contracts": {name: contract(number) for number, name in enumerate(CONTRACTS, start=1)},
}
for number, name in enumerate(PROXIES, start=5):
    RECORD["contracts"][name]["implementation"] = contract(number)


def paths_of(content: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(content, dict):
        for name, value in content.items():
            yield (*path, name)
            yield from paths_of(value, (*path, name))


PATHS = list(paths_of(RECORD))
OBJECTS = ("contracts", "implementation", *CONTRACTS)
LEAVES = [path for path in PATHS if path[-1] not in OBJECTS]
BYTES = [
    path for path in LEAVES if path[-1] in ("genesis_hash", "deployer", "address", "transaction")
]
INTEGERS = [path for path in LEAVES if path[-1] in ("format", "chain_id", "block")]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)


def changed(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    record = copy.deepcopy(RECORD)
    parent = record
    for name in path[:-1]:
        parent = parent[name]
    parent[path[-1]] = value
    return record


def value_at(path: tuple[str, ...]) -> Any:
    value: Any = RECORD
    for name in path:
        value = value[name]
    return value


def refusal_of(record: Any) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        parse_deployment_record(record, "deployment record")
    return caught.value


def dotted(path: tuple[str, ...]) -> str:
    return ".".join(path)


def test_read__complete_record__gives_every_field(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_text(json.dumps(RECORD))

    record = read_deployment_record(path)

    assert (record.chain_id, record.genesis_hash) == (31337, b"\x9e" * 32)
    assert record.deployer == b"\xde" * 20
    assert [each.name for each in record.contracts] == CONTRACTS
    assert record.node_registry.name == "NodeRegistry"
    assert record.node_registry.address == b"\3" * 20
    assert record.node_registry.block == 7
    assert record.node_registry.transaction == b"\xa3" * 32
    assert record.payload_addresses == (b"\1" * 20, b"\2" * 20)
    assert [each.implementation for each in record.contracts] == [
        DeployedContract("implementation", b"\5" * 20, 5, b"\xa5" * 32),
        DeployedContract("implementation", b"\6" * 20, 4, b"\xa6" * 32),
        None,
        None,
    ]


def test_first_block__contracts_deployed_in_any_order__is_the_lowest() -> None:
    record = parse_deployment_record(RECORD, "deployment record")

    assert record.first_block == 6


def test_parse__field_of_a_newer_writer__is_ignored() -> None:
    record = parse_deployment_record(
        RECORD | {"council": "somebody"} | {"contracts": RECORD["contracts"] | {"Extra": 5}},
        "deployment record",
    )

    assert record == parse_deployment_record(RECORD, "deployment record")


@pytest.mark.parametrize("path", PATHS, ids=dotted)
def test_parse__field_missing__names_it(path: tuple[str, ...]) -> None:
    record = copy.deepcopy(RECORD)
    parent = record
    for name in path[:-1]:
        parent = parent[name]
    del parent[path[-1]]

    refusal = refusal_of(record)

    assert refusal.got == "nothing"
    assert refusal.place == dotted(path)
    assert str(refusal).endswith(f"got nothing ({dotted(path)})")


@pytest.mark.parametrize("path", BYTES, ids=dotted)
@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-2],
        lambda text: text[:-1],
        lambda text: text + "00",
        lambda text: text[:-1] + "g",
        lambda text: text.removeprefix("0x"),
        lambda text: "0x" + text,
        lambda text: text[:4] + " " + text[4:],
        lambda text: "",
        lambda text: int(text, 16),
        lambda text: None,
        lambda text: [text],
    ],
    ids=[
        "a byte short",
        "a digit short",
        "a byte more",
        "no hex",
        "no 0x",
        "0x twice",
        "a space",
        "empty",
        "an integer",
        "null",
        "a list",
    ],
)
def test_parse__bytes_that_are_none__names_the_field(path: tuple[str, ...], damage: Any) -> None:
    value = damage(value_at(path))

    refusal = refusal_of(changed(path, value))

    length = len(value_at(path)) - 2
    assert refusal.expected == f"0x and {length} hex digits"
    assert refusal.got == repr(value)
    assert refusal.place == dotted(path)


@pytest.mark.parametrize("path", INTEGERS, ids=dotted)
@pytest.mark.parametrize("value", [-1, True, 1.0, "1", None, [1], {}])
def test_parse__integer_that_is_none__names_the_field(path: tuple[str, ...], value: Any) -> None:
    refusal = refusal_of(changed(path, value))

    assert str(refusal) == (
        f"deployment record: expected an integer from 0, got {value!r} ({dotted(path)})"
    )


@pytest.mark.parametrize("path", [path for path in PATHS if path not in LEAVES], ids=dotted)
@pytest.mark.parametrize("value", [[], "text", None, 7])
def test_parse__object_that_is_none__names_the_field(path: tuple[str, ...], value: Any) -> None:
    refusal = refusal_of(changed(path, value))

    assert (refusal.expected, refusal.got) == ("an object", type(value).__name__)
    assert refusal.place == dotted(path)


@given(st.sampled_from(PATHS), json_values)
def test_parse__any_field_replaced__names_it_or_what_it_lacks(
    path: tuple[str, ...], value: Any
) -> None:
    is_valid_integer = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    assume(not (path in INTEGERS and is_valid_integer))

    refusal = refusal_of(changed(path, value))

    assert refusal.place.startswith(dotted(path))


@given(json_values)
def test_parse__any_json__is_refused(content: Any) -> None:
    assert refusal_of(content).subject == "deployment record"


@pytest.mark.parametrize("version", [0, 2])
def test_parse__record_of_another_format__says_both(version: int) -> None:
    assert str(refusal_of(changed(("format",), version))) == (
        f"deployment record: expected format 1, got {version}"
    )


def test_read__no_file__says_so(tmp_path: Path) -> None:
    path = tmp_path / "record.json"

    with pytest.raises(ConfigurationError) as caught:
        read_deployment_record(path)

    assert str(caught.value) == (f"deployment record {path} does not exist")


def test_read__folder__says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="expected a readable file, got a folder"):
        read_deployment_record(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"1" * 5000])
def test_read__file_that_is_no_json__names_it(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(content)

    with pytest.raises(ConfigurationError) as caught:
        read_deployment_record(path)

    assert caught.value.subject == f"deployment record {path}"
    assert caught.value.expected == "JSON"


PARAMETERS = Parameters(
    chain_id=31337,
    message_admin=b"\x0a" * 20,
    registry_owner=b"\x0b" * 20,
    payload_bounds={"GroupMessages": PayloadBounds(1, 9), "IdentityUpdates": PayloadBounds(0, 8)},
    message_admin_is_contract=True,
    registry_owner_is_contract=False,
)


def test_parse__record_without_parameters__has_none() -> None:
    assert parse_deployment_record(RECORD, "record").parameters is None


def test_parse__parameters_as_they_are_written__are_read_back() -> None:
    recorded = RecordedParameters.of(PARAMETERS)
    content = json.loads(json.dumps(RECORD | {"parameters": recorded.content()}))

    assert parse_deployment_record(content, "record").parameters == recorded


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("message_admin",), "0x12"),
        (("registry_owner",), None),
        (("payload_bounds", "GroupMessages"), 3),
        (("payload_bounds", "IdentityUpdates", "maximum"), -1),
    ],
)
def test_parse__parameters_with_a_bad_field__names_it(path: tuple[str, ...], value: Any) -> None:
    content = RecordedParameters.of(PARAMETERS).content()
    parent = content
    for name in path[:-1]:
        parent = parent[name]
    parent[path[-1]] = value

    assert refusal_of(RECORD | {"parameters": content}).place == ".".join(("parameters", *path))


def test_replace_implementation__of_one_proxy__leaves_all_else(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_text(json.dumps(RECORD | {"note": "kept"}))
    upgraded = DeployedContract("GroupMessages", b"\x77" * 20, 99, b"\x78" * 32)

    replace_implementation(path, "GroupMessages", upgraded)

    expected = copy.deepcopy(RECORD) | {"note": "kept"}
    expected["contracts"]["GroupMessages"]["implementation"] = {
        "address": "0x" + "77" * 20,
        "block": 99,
        "transaction": "0x" + "78" * 32,
    }
    assert json.loads(path.read_text()) == expected
    assert [file.name for file in tmp_path.iterdir()] == ["record.json"]


def test_replace_implementation__link_in_the_records_place__writes_through_none(
    tmp_path: Path,
) -> None:
    mine, path = tmp_path / "mine.json", tmp_path / "record.json"
    mine.write_text(json.dumps(RECORD))
    path.symlink_to(mine)
    upgraded = DeployedContract("GroupMessages", b"\x77" * 20, 99, b"\x78" * 32)

    with pytest.raises(ConfigurationError, match="got a link"):
        replace_implementation(path, "GroupMessages", upgraded)

    assert json.loads(mine.read_text()) == RECORD


def test_read__pipe_that_nobody_writes_to__is_refused(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    os.mkfifo(path)

    with pytest.raises(ConfigurationError, match="got a pipe or a device"):
        read_deployment_record(path)


def test_replace_implementation__file_is_no_record__is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_text("{}")
    upgraded = DeployedContract("GroupMessages", b"\x77" * 20, 99, b"\x78" * 32)

    with pytest.raises(ConfigurationError, match="format"):
        replace_implementation(path, "GroupMessages", upgraded)

    assert path.read_text() == "{}"


def test_parse__record_written_by_hand__is_told_so() -> None:
    by_hand = {name: RECORD[name] for name in ("format", "chain_id", "genesis_hash")}

    with pytest.raises(ConfigurationError) as caught:
        parse_deployment_record(by_hand | {"payload_contracts": []}, "deployment record")

    assert str(caught.value) == (
        "deployment record: expected a record that the deploy script wrote, got one written by "
        "hand (payload_contracts: see deployments/README.md)"
    )
