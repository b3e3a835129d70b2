"""Desired nodes beside the registry's: what differs, which calls help, and what none can reach."""

from dataclasses import replace

import pytest

from chainkit.contracts.registry import RegisteredNode
from chainkit.council.calls import Call, read_change
from chainkit.council.calls.registry_effects import REGISTRY_EFFECTS
from chainkit.council.registry_plan import (
    DesiredNode,
    RegistryDifference,
    calls_towards,
    compare_nodes,
)
from chainkit.errors import ConfigurationError
from chainkit.signatures import address_of
from support.council.fake_registry import (
    HOLDER,
    OWNER_ADDRESS,
    RECORD,
    FakeRegistry,
    block,
    node_key,
    three_nodes,
)

OTHER_HOLDER = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"
REGISTERED = [RegisteredNode(node, HOLDER) for node in three_nodes()]
NEW = DesiredNode(node_key(9).public_key, HOLDER, "https://9.example", True, "nodes[3]")


def as_registered() -> list[DesiredNode]:
    return [
        DesiredNode(
            each.node.signing_key,
            each.holder,
            each.node.http_address,
            each.node.is_enabled,
            f"nodes[{number}]",
        )
        for number, each in enumerate(REGISTERED)
    ]


def compared(*desired: DesiredNode) -> RegistryDifference:
    return compare_nodes(desired, REGISTERED)


def words(calls: tuple[Call, ...]) -> list[tuple[str, ...]]:
    return [(call.function, *map(str, call.arguments.values())) for call in calls]


def refusal(*desired: DesiredNode) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        calls_towards(RECORD, compared(*desired))
    return caught.value


def test_compare__file_as_the_registry_is__is_empty_and_needs_no_call() -> None:
    difference = compared(*reversed(as_registered()))

    assert difference.is_empty
    assert [each.found for each in difference.nodes] == REGISTERED[::-1]
    assert calls_towards(RECORD, difference) == ()


def test_compare__other_status_and_holder_and_a_new_node__are_told_field_by_field() -> None:
    first, second, third = as_registered()
    difference = compared(replace(first, is_enabled=False, holder=OTHER_HOLDER), second, third, NEW)

    assert not difference.is_empty
    assert [[str(field) for field in each.fields] for each in difference.nodes] == [
        ["status: enabled -> disabled", f"holder: {HOLDER} -> {OTHER_HOLDER}"],
        [],
        [],
        [
            "status: (none) -> enabled",
            f"holder: (none) -> {HOLDER}",
            "http address: (none) -> https://9.example",
        ],
    ]


@pytest.mark.parametrize(
    ("left_out", "is_empty"), [(0, False), (1, True)], ids=["enabled", "disabled"]
)
def test_compare__node_not_in_the_file__differs_only_if_it_is_enabled(
    left_out: int, is_empty: bool
) -> None:
    desired = as_registered()
    del desired[left_out]

    difference = compared(*desired)

    assert difference.unlisted == (REGISTERED[left_out],)
    assert difference.is_empty is is_empty
    assert calls_towards(RECORD, difference) == ()


def test_calls__of_every_kind__are_in_order_and_change_what_is_told() -> None:
    first, second, third = as_registered()
    desired = (
        replace(first, holder=OTHER_HOLDER, is_enabled=False),
        replace(second, is_enabled=True),
        replace(third, holder=OTHER_HOLDER),
        NEW,
    )

    calls = calls_towards(RECORD, compared(*desired))

    assert words(calls) == [
        ("addNode", HOLDER, str(NEW.key), "https://9.example"),
        ("updateHealth", "200", "True"),
        ("updateHealth", "100", "False"),
        ("transferFrom", HOLDER, OTHER_HOLDER, "100"),
        ("transferFrom", HOLDER, OTHER_HOLDER, "300"),
    ]
    change = read_change(REGISTRY_EFFECTS, FakeRegistry().state(), RECORD, OWNER_ADDRESS, calls)
    assert len(change.difference) == 3 + 2 + 2


def test_calls__another_url__are_refused_with_the_reason() -> None:
    first, second, third = as_registered()

    error = refusal(replace(first, http_address="https://moved.example"), second, third)

    assert error.place == "nodes[0].http_address"
    assert "node 100 keeps its URL (XIP-49 §3.1.1)" in str(error)
    assert 'got "https://moved.example"' in str(error)


@pytest.mark.conforms("3.1.1-12")
def test_calls__another_key_at_the_url_of_an_enabled_node__are_refused_with_the_reason() -> None:
    first, *others = as_registered()

    error = refusal(replace(first, key=NEW.key), *others)

    assert error.place == "nodes[0].key"
    assert "the key of node 100, which keeps its key (XIP-49 §3.1.1)" in str(error)
    assert address_of(NEW.key) in str(error)


def test_calls__successor_of_a_node_that_the_file_disables__adds_and_disables() -> None:
    first, *others = as_registered()
    successor = replace(first, key=NEW.key, path="nodes[3]")

    calls = calls_towards(RECORD, compared(replace(first, is_enabled=False), *others, successor))

    assert [call.function for call in calls] == ["addNode", "updateHealth"]


def test_calls__at_the_url_of_a_disabled_node__add() -> None:
    first, second, third = as_registered()

    calls = calls_towards(
        RECORD, compared(first, replace(second, key=NEW.key, is_enabled=True), third)
    )

    assert [call.function for call in calls] == ["addNode"]


def test_calls__new_node_that_is_to_be_disabled__are_refused_with_the_reason() -> None:
    error = refusal(*as_registered(), replace(NEW, is_enabled=False))

    assert error.place == "nodes[3].status"
    assert "add it first, and disable it once it has an id" in str(error)


def test_calls__several_things_out_of_reach__are_told_at_once() -> None:
    first, second, third = as_registered()
    moved = replace(second, http_address="https://a\x1b[2J.example")

    error = refusal(
        replace(first, key=NEW.key),
        moved,
        third,
        replace(NEW, key=node_key(8).public_key, is_enabled=False),
    )

    assert error.place == "nodes[0].key, nodes[1].http_address, nodes[3].status"
    assert str(error).isprintable()


def test_compare__strangers_url_on_the_chain__is_escaped() -> None:
    fake = FakeRegistry()
    fake.nodes[0] = replace(fake.nodes[0], http_address="https://a\x1b[2J")

    difference = compare_nodes(as_registered(), fake.registry().registered_nodes(block()))

    (field,) = difference.nodes[0].fields
    assert str(field) == "http address: https://a\\x1b[2J -> https://1.example"
