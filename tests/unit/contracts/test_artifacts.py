import json
from dataclasses import replace

import pytest

from chainkit.contracts import artifacts
from chainkit.contracts.artifacts import (
    CONTRACTS,
    artifact,
    creation_code,
    identify_release,
    immutables_of,
    interface_lines,
    parse_release,
    releases,
    runtime_code,
)
from chainkit.contracts.parameters import SEQUENCED_LOGS
from chainkit.signatures import keccak256

IMMUTABLES = {
    "GroupMessages": {"__self", "originatorSequence"},
    "IdentityUpdates": {"__self", "originatorSequence"},
    "NodeRegistry": set(),
    "OriginatorSequence": {"groupMessages", "identityUpdates"},
    "SequencedLogProxy": set(),
}
FIRST, SECOND = b"\x11" * 20, b"\x22" * 20


def filled(name: str) -> dict[str, bytes]:
    return dict(zip(sorted(IMMUTABLES[name]), (FIRST, SECOND), strict=False))


@pytest.mark.parametrize("name", CONTRACTS)
def test_artifact__every_contract__has_code_and_the_immutables_of_its_source(name: str) -> None:
    assert set(artifact(name).immutables) == IMMUTABLES[name]
    assert artifact(name).masked_code in creation_code(name)


@pytest.mark.parametrize("name", CONTRACTS)
def test_runtime_code__immutables_given__stand_at_their_places_and_nowhere_else(name: str) -> None:
    code = runtime_code(name, filled(name))

    assert len(code) == len(artifact(name).masked_code)
    for variable, starts in artifact(name).immutables.items():
        for start in starts:
            assert code[start : start + 32] == filled(name)[variable].rjust(32, b"\0")
    assert immutables_of(name, code) == {
        variable: value.rjust(32, b"\0") for variable, value in filled(name).items()
    }


@pytest.mark.parametrize(
    "given", [{}, {"groupMessages": FIRST}, {"groupMessages": FIRST, "x": b""}]
)
def test_runtime_code__other_immutables_than_the_contracts__is_refused(
    given: dict[str, bytes],
) -> None:
    with pytest.raises(ValueError, match=r"groupMessages.*identityUpdates"):
        runtime_code("OriginatorSequence", given)


def test_immutables_of__one_byte_of_code_is_another__is_empty() -> None:
    code = runtime_code("OriginatorSequence", filled("OriginatorSequence"))

    assert immutables_of("OriginatorSequence", code[:-1] + b"\0") == {}
    assert immutables_of("OriginatorSequence", code + b"\0") == {}
    assert immutables_of("OriginatorSequence", b"") == {}


@pytest.mark.parametrize("name", SEQUENCED_LOGS)
def test_storage__upgradeable_contract__has_its_own_namespace_and_its_bases(name: str) -> None:
    storage = artifact(name).storage

    assert set(storage) == {
        "erc7201:chainkit.storage.SequencedLog",
        "erc7201:openzeppelin.storage.AccessControl",
        "erc7201:openzeppelin.storage.AccessControlEnumerable",
        "erc7201:openzeppelin.storage.Initializable",
    }
    own = storage["erc7201:chainkit.storage.SequencedLog"]
    assert [(member.label, member.offset, member.size) for member in own] == [
        ("paused", 0, 1),
        ("minPayloadSize", 1, 4),
        ("maxPayloadSize", 5, 4),
    ]
    (roles,) = storage["erc7201:openzeppelin.storage.AccessControl"]
    assert "{mapping(address => bool) hasRole; bytes32 adminRole;}" in roles.type


def test_identify__own_code_with_any_immutables__is_this_package() -> None:
    code = runtime_code("GroupMessages", filled("GroupMessages"))

    found = identify_release("GroupMessages", code)

    assert found is releases("GroupMessages")[0]
    assert found is not None and found.version.endswith("this package")


def test_identify__another_contracts_code_or_none__is_unknown() -> None:
    code = runtime_code("GroupMessages", filled("GroupMessages"))

    assert identify_release("IdentityUpdates", code) is None
    assert identify_release("GroupMessages", b"") is None
    assert identify_release("GroupMessages", code[:-1] + b"\0") is None


def test_identify__code_of_a_past_release__is_that_release(monkeypatch: pytest.MonkeyPatch) -> None:
    code = runtime_code("OriginatorSequence", filled("OriginatorSequence"))
    past = replace(
        releases("GroupMessages")[0],
        version="0.0.1",
        code_size=len(code),
        masked_code_hash=keccak256(artifact("OriginatorSequence").masked_code),
        immutables=artifact("OriginatorSequence").immutables,
    )
    monkeypatch.setattr(artifacts, "_past_releases", lambda _: (past,))

    assert identify_release("GroupMessages", code) == past
    assert [release.version for release in releases("GroupMessages")][1:] == ["0.0.1"]


def test_parse_release__as_the_tool_writes_it__is_read_back() -> None:
    own = releases("GroupMessages")[0]
    content = {
        "version": own.version,
        "code_size": own.code_size,
        "masked_code_hash": "0x" + own.masked_code_hash.hex(),
        "immutables": own.immutables,
        "interface": own.interface,
        "storage": {
            namespace: [
                {key: getattr(member, key) for key in ("label", "slot", "offset", "size", "type")}
                for member in members
            ]
            for namespace, members in own.storage.items()
        },
    }

    assert parse_release(json.loads(json.dumps(content))) == own


def test_interface__own_contract__is_said_in_soliditys_words() -> None:
    interface = releases("GroupMessages")[0].interface

    assert "function addMessage(bytes32,bytes)" in interface
    assert "function payloadBounds() returns (uint32,uint32)" in interface
    assert "event MessageSent(bytes32,bytes,uint64)" in interface
    assert "event Upgraded(address indexed)" in interface
    assert "error LastAdmin(address)" in interface
    assert not any(line.startswith("constructor") for line in interface)


def test_interface__struct_in_arguments__is_expanded() -> None:
    node = {"name": "node", "type": "tuple[]", "components": [{"name": "a", "type": "bytes"}]}
    entry = {"type": "function", "name": "all", "inputs": [node], "outputs": [node]}

    assert interface_lines([entry]) == ("function all((bytes)[]) returns ((bytes)[])",)
