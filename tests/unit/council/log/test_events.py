import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

import pytest

from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.parameters import SEQUENCED_LOGS, PayloadBounds
from chainkit.council.log.events import (
    LOG_TOPICS,
    SAFE_TOPICS,
    UNREADABLE,
    TrailEvent,
    contradictions,
    of_log,
)
from chainkit.errors import RefusedRequest
from chainkit.signatures import keccak256
from chainkit.types import Log
from support.audit.administration import (
    BOUNDS,
    CONTRACTS,
    COUNCIL,
    DEPLOYER,
    FIRST_CODE,
    ROLE,
    SECOND_CODE,
    STRANGER,
    History,
)
from support.council.fake_log import RECORD as SOME_RECORD
from support.council.fake_log import FakeLog

NAMES = {address: name for name, address in CONTRACTS.items()}
RECORD: DeploymentRecord = replace(
    SOME_RECORD,
    group_messages=replace(SOME_RECORD.group_messages, address=CONTRACTS["GroupMessages"]),
    identity_updates=replace(SOME_RECORD.identity_updates, address=CONTRACTS["IdentityUpdates"]),
)
AS_DEPLOYED = FakeLog(
    members=(COUNCIL,), bounds=PayloadBounds(*BOUNDS), running=bytes.fromhex(FIRST_CODE[2:])
)


def events_of(emit: Callable[[History], None] = lambda history: None) -> list[TrailEvent]:
    """Return what the two logs emitted since they were created."""
    history = History()
    history.deploy()
    emit(history)
    logs = [log for log in history.logs if NAMES[log.address] in SEQUENCED_LOGS]
    return [of_log(NAMES[log.address], log) for log in logs]


def emitted(event: str, *arguments: Any) -> TrailEvent:
    return events_of(lambda history: history.emit("GroupMessages", event, *arguments))[-1]


@pytest.mark.parametrize(
    ("event", "account", "words"),
    [
        (("Paused", COUNCIL), COUNCIL, "paused"),
        (("Unpaused", COUNCIL), COUNCIL, "unpaused"),
        (("PayloadBoundsSet", COUNCIL, 1, 9), COUNCIL, "payload bounds set to 1 to 9 bytes"),
        (("RoleGranted", ROLE, STRANGER, COUNCIL), COUNCIL, f"{STRANGER} made administrator"),
        (
            ("RoleRevoked", ROLE, STRANGER, COUNCIL),
            COUNCIL,
            f"{STRANGER} no longer administrator",
        ),
        (
            ("RoleGranted", b"\x01" * 32, STRANGER, COUNCIL),
            COUNCIL,
            f"{STRANGER} made of role 0x{'01' * 32}",
        ),
        (("UpgradeAuthorized", COUNCIL, SECOND_CODE), COUNCIL, f"upgrade to {SECOND_CODE} authori"),
        (("Upgraded", SECOND_CODE), None, f"runs {SECOND_CODE} from now on"),
        (("Initialized", 2), None, "initialized, version 2"),
    ],
)
def test_event__of_a_log__says_who_and_what(event: Any, account: str | None, words: str) -> None:
    found = emitted(*event)

    assert (found.name, found.account) == (event[0], account)
    assert found.words.startswith(words)
    assert not found.is_safe_change


def test_event__that_does_not_decode__is_kept_in_words() -> None:
    whole = History()
    whole.emit("GroupMessages", "Paused", COUNCIL)
    log: Log = whole.logs[0]._replace(data=b"\xff" * 3)

    found = of_log("GroupMessages", log)

    assert (found.name, found.account) == (UNREADABLE, None)
    assert found.words.endswith(f"topic 0x{log.topics[0].hex()}, 3 bytes")


def test_topics__of_what_is_asked_for__are_events_of_the_shipped_interfaces() -> None:
    assert set(SAFE_TOPICS) == _topics("Safe")
    payloads = {"GroupMessages": "MessageSent", "IdentityUpdates": "IdentityUpdateCreated"}
    for name, payload in payloads.items():
        assert set(LOG_TOPICS) == _topics(name, without=payload)


def _topics(name: str, without: str = "") -> set[bytes]:
    entries = json.loads(files("chainkit.contracts.abi").joinpath(f"{name}.json").read_text())
    events = [each for each in entries if each["type"] == "event" and each["name"] != without]
    return {
        keccak256(f"{each['name']}({','.join(item['type'] for item in each['inputs'])})".encode())
        for each in events
    }


def alarms(events: list[TrailEvent], state: FakeLog = AS_DEPLOYED, first: int = 0) -> list[str]:
    return list(contradictions(state.state(), RECORD, events, first))


def test_contradictions__events_that_lead_to_what_is_said__are_none() -> None:
    assert alarms(events_of()) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"is_paused": True}, "GroupMessages paused: its events lead to no, it says yes"),
        ({"bounds": PayloadBounds(5, 6)}, "lead to 1 to 1000 bytes, it says 5 to 6 bytes"),
        (
            {"members": (COUNCIL, STRANGER)},
            f"administrator {STRANGER}: its events lead to nothing, it says yes",
        ),
        ({"members": ()}, f"administrator {COUNCIL}: its events lead to yes, it says no"),
        (
            {"running": bytes.fromhex(SECOND_CODE[2:])},
            f"implementation: its events lead to {FIRST_CODE}, it says {SECOND_CODE}",
        ),
    ],
)
def test_contradictions__event_is_missing__is_told(changes: dict[str, Any], words: str) -> None:
    found = alarms(events_of(), replace(AS_DEPLOYED, **changes))

    # Both logs answer the same here.
    assert len(found) == 2
    assert words in found[0]


def test_contradictions__revoked__leads_to_no_administrator() -> None:
    def revoke(history: History) -> None:
        for name in SEQUENCED_LOGS:
            history.emit(name, "RoleGranted", ROLE, STRANGER, COUNCIL)
            history.emit(name, "RoleRevoked", ROLE, STRANGER, STRANGER)

    assert alarms(events_of(revoke)) == []


def test_contradictions__from_a_later_block__are_those_of_what_happened_since() -> None:
    def pause(history: History) -> None:
        history.emit("GroupMessages", "Paused", DEPLOYER)

    later = events_of(pause)[-1:]

    assert alarms(later, replace(AS_DEPLOYED, is_paused=True), first=9) == []
    (found,) = alarms(later, first=9)
    assert "GroupMessages paused: its events lead to yes, it says no" in found


def test_contradictions__contract_that_does_not_answer__is_told_in_printable_words() -> None:
    @dataclass
    class Mute(FakeLog):
        def ask(self, name: str, address: bytes, function: str) -> Any:
            raise RefusedRequest("eth_call", "a result", "\x1b[2J")

    found = alarms(events_of(), Mute())

    assert len(found) == 2
    assert "does not say what it is" in found[0]
    assert found[0].isprintable()
