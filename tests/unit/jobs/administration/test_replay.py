from __future__ import annotations

from collections.abc import Callable

import pytest

from chainkit_jobs.administration.replay import replay
from support.audit.administration import (
    BOUNDS,
    CONTRACTS,
    COUNCIL,
    FIRST_CODE,
    HOLDER,
    NOBODY,
    ROLE,
    SECOND_CODE,
    STRANGER,
    History,
)
from support.audit.audit_exports import key_of


@pytest.fixture
def history() -> History:
    history = History()
    history.deploy()
    history.add_node(100)
    history.add_node(200)
    return history


def contradictions(history: History) -> list[str]:
    return [str(found) for found in replay(history.logs, CONTRACTS).contradictions]


def everything_allowed(history: History) -> None:
    registry, messages = "NodeRegistry", "GroupMessages"
    history.set_status(100, False)
    history.set_status(100, False)
    history.set_status(100, True)
    history.emit(registry, "HttpAddressUpdatesOpenChanged", COUNCIL, True)
    history.emit(registry, "NodeHttpAddressUpdated", HOLDER, 200, "https://new.example")
    history.update(200, http_address="https://new.example")
    history.emit(registry, "Transfer", HOLDER, STRANGER, 200)
    history.emit(registry, "NodeTransferred", COUNCIL, 200, STRANGER)
    history.emit(registry, "OwnershipTransferStarted", COUNCIL, STRANGER)
    history.emit(registry, "OwnershipTransferred", COUNCIL, STRANGER)
    history.add_node(300, account=STRANGER)
    history.emit(messages, "Paused", COUNCIL)
    history.emit(messages, "Unpaused", COUNCIL)
    history.emit(messages, "PayloadBoundsSet", COUNCIL, 1, 2)
    history.emit(messages, "RoleGranted", ROLE, STRANGER, COUNCIL)
    history.emit(messages, "RoleRevoked", ROLE, COUNCIL, STRANGER)
    history.emit(messages, "RoleGranted", ROLE, COUNCIL, STRANGER)
    history.emit(messages, "RoleRevoked", ROLE, STRANGER, STRANGER)
    history.emit(messages, "RoleGranted", b"r" * 32, STRANGER, COUNCIL)
    history.emit(messages, "UpgradeAuthorized", COUNCIL, SECOND_CODE)
    history.emit(messages, "Upgraded", SECOND_CODE)
    history.emit("IdentityUpdates", "Paused", COUNCIL)


def test_replay__everything_that_the_contracts_allow__fits(history: History) -> None:
    everything_allowed(history)

    assert contradictions(history) == []


def test_replay__everything_that_the_contracts_allow__gives_the_state(history: History) -> None:
    everything_allowed(history)

    found = replay(history.logs, CONTRACTS)

    nodes = {
        node_id: [(node.is_enabled, node.http_address) for _, node in entries]
        for node_id, entries in found.registry.history.items()
    }
    assert nodes == {
        100: [(status, "https://node100.example") for status in (True, False, False, True)],
        200: [(True, "https://node200.example"), (True, "https://new.example")],
        300: [(True, "https://node300.example")],
    }
    assert found.registry.holders == {100: HOLDER, 200: STRANGER, 300: HOLDER}
    messages, updates = (found.payload_contracts[n] for n in ("GroupMessages", "IdentityUpdates"))
    assert messages.administrators == {COUNCIL}
    assert [(each.minimum, each.maximum) for each in messages.bounds] == [BOUNDS, (1, 2)]
    assert [end is None for _, end in messages.pauses] == [False]
    assert [end is None for _, end in updates.pauses] == [True]
    assert [each.address for each in messages.implementations] == [FIRST_CODE, SECOND_CODE]


REGISTRY: dict[str, tuple[Callable[[History], None], str]] = {
    "owner changes without having had it": (
        lambda h: h.emit("NodeRegistry", "OwnershipTransferred", STRANGER, STRANGER),
        f"expected ownership to come from {COUNCIL}, got {STRANGER}",
    ),
    "ownership renounced": (
        lambda h: h.emit("NodeRegistry", "OwnershipTransferred", COUNCIL, NOBODY),
        "expected an owner, got nobody: ownership cannot be renounced",
    ),
    "stranger offers ownership": (
        lambda h: h.emit("NodeRegistry", "OwnershipTransferStarted", STRANGER, STRANGER),
        f"expected OwnershipTransferStarted by the owner, {COUNCIL}, got {STRANGER}",
    ),
    "stranger opens updates": (
        lambda h: h.emit("NodeRegistry", "HttpAddressUpdatesOpenChanged", STRANGER, True),
        f"expected HttpAddressUpdatesOpenChanged by the owner, {COUNCIL}, got {STRANGER}",
    ),
    "stranger adds a node": (
        lambda h: h.add_node(300, account=STRANGER),
        f"expected NodeAdded by the owner, {COUNCIL}, got {STRANGER}",
    ),
    "stranger disables a node": (
        lambda h: h.set_status(100, False, account=STRANGER),
        f"expected NodeHealthUpdated by the owner, {COUNCIL}, got {STRANGER}",
    ),
    "stranger moves a node": (
        lambda h: (
            h.emit("NodeRegistry", "Transfer", HOLDER, STRANGER, 100),
            h.emit("NodeRegistry", "NodeTransferred", STRANGER, 100, STRANGER),
        )[0],
        f"expected NodeTransferred by the owner, {COUNCIL}, got {STRANGER}",
    ),
    "node moved from who did not have it": (
        lambda h: h.emit("NodeRegistry", "Transfer", STRANGER, COUNCIL, 100),
        f"expected node 100 to come from {HOLDER}, got {STRANGER}",
    ),
    "move told otherwise than it was": (
        lambda h: h.emit("NodeRegistry", "NodeTransferred", COUNCIL, 100, STRANGER),
        f"expected NodeTransferred to name node 100's holder, {HOLDER}, got {STRANGER}",
    ),
    "address changed by a stranger": (
        lambda h: (
            h.emit("NodeRegistry", "HttpAddressUpdatesOpenChanged", COUNCIL, True),
            h.emit("NodeRegistry", "NodeHttpAddressUpdated", STRANGER, 100, "x"),
            h.update(100, http_address="x"),
        )[0],
        f"expected NodeHttpAddressUpdated to name node 100's holder, {HOLDER}, got {STRANGER}",
    ),
    "address changed while closed": (
        lambda h: (
            h.emit("NodeRegistry", "NodeHttpAddressUpdated", HOLDER, 100, "x"),
            h.update(100, http_address="x"),
        )[0],
        "expected updates of HTTP addresses to be open, got closed",
    ),
    "id skipped": (
        lambda h: h.add_node(400, key=key_of(300).public_key),
        "expected node id 300, the next one, got 400",
    ),
    "key of another node": (
        lambda h: h.add_node(300, key=key_of(200).public_key),
        "expected a key that no other node has, got node 200's",
    ),
    "key that is no point": (
        lambda h: h.add_node(300, key=b"\x04" + bytes(64)),
        f"expected a public key on secp256k1, got 0x04{'00' * 64}",
    ),
    "key changed": (
        lambda h: (
            h.emit("NodeRegistry", "NodeHealthUpdated", COUNCIL, 100, True),
            h.update(100, key=key_of(300).public_key),
        )[0],
        "expected node 100 without a new key: NodeHealthUpdated tells of a new status, "
        "got a new key",
    ),
    "status changed with the address": (
        lambda h: (
            h.emit("NodeRegistry", "HttpAddressUpdatesOpenChanged", COUNCIL, True),
            h.emit("NodeRegistry", "NodeHttpAddressUpdated", HOLDER, 100, "x"),
            h.update(100, http_address="x", is_enabled=False),
        )[0],
        "expected node 100 without a new status: NodeHttpAddressUpdated tells of a new HTTP "
        "address, got a new status",
    ),
    "status other than told": (
        lambda h: (
            h.emit("NodeRegistry", "NodeHealthUpdated", COUNCIL, 100, True),
            h.update(100, is_enabled=False),
        )[0],
        "expected the status just told, got the other one",
    ),
    "entry that nobody wrote": (
        lambda h: h.update(100),
        "expected who changed node 100 to be told just before, got no such event",
    ),
    "entry of another node than told": (
        lambda h: (
            h.emit("NodeRegistry", "NodeHealthUpdated", COUNCIL, 100, True),
            h.update(200),
        )[0],
        "expected who changed node 200 to be told just before, got NodeHealthUpdated of node 100",
    ),
    "entry of a node that was never added": (
        lambda h: h.set_status(300, True),
        "expected node 300 to have been added before, got NodeHealthUpdated",
    ),
    "told and not done": (
        lambda h: (
            h.emit("NodeRegistry", "NodeHealthUpdated", COUNCIL, 100, False),
            h.emit("NodeRegistry", "OwnershipTransferStarted", COUNCIL, NOBODY),
        )[0],
        "expected NodeUpdated after NodeHealthUpdated, got OwnershipTransferStarted",
    ),
    "event that the registry never emits": (
        lambda h: h.emit("NodeRegistry", "Approval", HOLDER, STRANGER, 100),
        "expected an event that the registry emits, got Approval",
    ),
}


@pytest.mark.parametrize(("act", "expected"), REGISTRY.values(), ids=REGISTRY)
def test_replay__registry_that_breaks_its_rules__is_told_once(
    history: History, act: Callable[[History], None], expected: str
) -> None:
    act(history)

    assert contradictions(history) == [f"NodeRegistry: {expected}"]


def by_stranger(event: str) -> str:
    return f"expected {event} by an administrator, got {STRANGER}"


PAYLOAD_CONTRACT: dict[str, tuple[list[tuple[object, ...]], str]] = {
    "stranger pauses": ([("Paused", STRANGER)], by_stranger("Paused")),
    "stranger unpauses": (
        [("Paused", COUNCIL), ("Unpaused", STRANGER)],
        by_stranger("Unpaused"),
    ),
    "stranger sets bounds": (
        [("PayloadBoundsSet", STRANGER, 1, 2)],
        by_stranger("PayloadBoundsSet"),
    ),
    "stranger grants": ([("RoleGranted", ROLE, STRANGER, STRANGER)], by_stranger("RoleGranted")),
    "stranger grants another role": (
        [("RoleGranted", b"r" * 32, STRANGER, STRANGER)],
        by_stranger("RoleGranted"),
    ),
    "stranger revokes": (
        [("RoleGranted", ROLE, HOLDER, COUNCIL), ("RoleRevoked", ROLE, HOLDER, STRANGER)],
        by_stranger("RoleRevoked"),
    ),
    "stranger upgrades": (
        [("UpgradeAuthorized", STRANGER, SECOND_CODE), ("Upgraded", SECOND_CODE)],
        by_stranger("UpgradeAuthorized"),
    ),
    "upgraded without a word": (
        [("Upgraded", SECOND_CODE)],
        "expected UpgradeAuthorized for this implementation just before, got none",
    ),
    "upgraded to other code than authorized": (
        [("UpgradeAuthorized", COUNCIL, STRANGER), ("Upgraded", SECOND_CODE)],
        f"expected UpgradeAuthorized for this implementation just before, got {STRANGER}",
    ),
    "paused twice": (
        [("Paused", COUNCIL), ("Paused", COUNCIL)],
        "expected a change of the pause, got none: it was paused",
    ),
    "unpaused without a pause": (
        [("Unpaused", COUNCIL)],
        "expected a change of the pause, got none: it was not paused",
    ),
    "granted twice": (
        [("RoleGranted", ROLE, COUNCIL, COUNCIL)],
        f"expected RoleGranted that changes something, got {COUNCIL}, an administrator already",
    ),
    "left without having been": (
        [("RoleRevoked", ROLE, HOLDER, HOLDER)],
        f"expected RoleRevoked that changes something, got {HOLDER}, no administrator",
    ),
    "last one leaves": (
        [("RoleRevoked", ROLE, COUNCIL, COUNCIL)],
        f"expected an administrator who stays, got {COUNCIL}, the last one, left",
    ),
    "initialized again": (
        [("Initialized", 1)],
        "expected one Initialized, by the proxy's constructor, got another",
    ),
}


@pytest.mark.parametrize(("events", "expected"), PAYLOAD_CONTRACT.values(), ids=PAYLOAD_CONTRACT)
def test_replay__payload_contract_that_breaks_its_rules__is_told_once(
    history: History, events: list[tuple[str, object]], expected: str
) -> None:
    for event, *arguments in events:
        history.emit("GroupMessages", event, *arguments)

    assert contradictions(history) == [f"GroupMessages: {expected}"]


def test_replay__log_that_does_not_decode__is_told(history: History) -> None:
    history.emit("GroupMessages", "Paused", COUNCIL)
    log = history.logs.pop()
    history.logs.append(log._replace(data=b"\xff" * 31))

    [found] = contradictions(history)

    assert found.startswith("GroupMessages: expected Paused(address), got")


def test_replay__logs_of_strangers__are_none_of_its_business(history: History) -> None:
    history.emit("GroupMessages", "Paused", STRANGER)
    log = history.logs.pop()
    history.logs.append(log._replace(address=b"s" * 20))

    assert contradictions(history) == []


def test_replay__contradiction__says_where(history: History) -> None:
    history.emit("GroupMessages", "Paused", STRANGER)

    [found] = replay(history.logs, CONTRACTS).contradictions

    assert (found.contract, found.log) == ("GroupMessages", history.logs[-1])
