"""Calls at which an owner should stop: the chain would make them without a word."""

from collections.abc import Mapping
from typing import Any

import pytest
from eth_utils.address import to_checksum_address

from chainkit.contracts.checks import NO_ACCOUNT
from chainkit.council.calls import FUNCTIONS, OWNER_FUNCTIONS, Call
from chainkit.council.calls.cautions import _OF_FUNCTION, call_cautions
from support.council.fake_registry import node_key
from support.council.proposals import OWNERS, RECORD, SAFE

STRANGER = to_checksum_address(b"\x66" * 20)
DEAD = "0x000000000000000000000000000000000000dEaD"
DEAD_ENDS = [DEAD, "0x" + "1".zfill(40), to_checksum_address("0x" + "ee" * 20)]
KEY = node_key(1).public_key


def registry(function: str, *arguments: Any) -> Call:
    return Call.make(RECORD, "NodeRegistry", function, *arguments)


def log(function: str, *arguments: Any) -> Call:
    return Call.make(RECORD, "GroupMessages", function, *arguments)


def of_safe(function: str, *arguments: Any) -> Call:
    return Call.make_of_safe(SAFE.account, function, *arguments)


def owners(count: int, threshold: int) -> dict[str, str]:
    return {
        "Safe owners": ", ".join(sorted(OWNERS[:count])),
        "Safe signatures needed": str(threshold),
    }


def cautions(call: Call, after: Mapping[str, str] | None = None) -> tuple[str, ...]:
    return call_cautions([call], after or {}, SAFE.address, SAFE.names)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            log("grantRole", bytes(32), STRANGER),
            f"administrator of GroupMessages {STRANGER} is not",
        ),
        (log("revokeRole", bytes(32), SAFE.address), "no longer administers GroupMessages"),
        (registry("transferOwnership", OWNERS[0]), "no longer owns NodeRegistry once it is"),
        (registry("transferOwnership", STRANGER), f"owner of NodeRegistry {STRANGER} is not in"),
        (log("setPayloadBounds", 0, 199), "stop all messages of GroupMessages"),
        (log("setPayloadBounds", 8_001, 262_144), "stop all messages of GroupMessages"),
        (log("setPayloadBounds", 1, 418_001), "carries some 418,000 bytes; another chain may"),
        (registry("addNode", OWNERS[0], KEY, "http://a.example"), "is no https"),
        (
            registry("addNode", OWNERS[0], KEY, "https://10.0.0.1"),
            "loopback, link-local or private",
        ),
        (registry("updateHttpAddress", 100, "http://a.example"), "URL of node 100 is no https"),
        (registry("updateHttpAddress", 100, "https://10.0.0.1"), "URL of node 100 is loopback"),
        *((log("grantRole", bytes(32), end), f"{end} is a dead end") for end in DEAD_ENDS),
        (registry("transferOwnership", DEAD), f"{DEAD} is a dead end"),
        (registry("transferFrom", OWNERS[0], DEAD, 100), f"holder {DEAD} is a dead end"),
        (registry("addNode", DEAD, KEY, "https://a.example"), f"{DEAD} is a dead end"),
    ],
)
def test_call_cautions__act_that_an_owner_should_stop_at__says_why(call: Call, words: str) -> None:
    assert [line for line in cautions(call) if words in line], cautions(call)


@pytest.mark.parametrize(
    ("call", "after", "words"),
    [
        (of_safe("changeThreshold", 3), owners(3, 3), "all 3 owners must sign: one lost key"),
        (of_safe("removeOwner", OWNERS[0], OWNERS[2], 2), owners(2, 2), "all 2 owners must sign"),
        (of_safe("changeThreshold", 1), owners(3, 1), "one owner alone can do everything"),
        (of_safe("addOwnerWithThreshold", STRANGER, 2), owners(3, 2), f"Safe {STRANGER} is not in"),
        (of_safe("swapOwner", OWNERS[0], OWNERS[1], DEAD), owners(3, 2), f"{DEAD} is a dead end"),
    ],
)
def test_call_cautions__owners_of_the_safe__says_what_is_at_risk(
    call: Call, after: dict[str, str], words: str
) -> None:
    assert [line for line in cautions(call, after) if words in line], cautions(call, after)


@pytest.mark.parametrize(
    ("call", "after"),
    [
        (log("grantRole", bytes(32), OWNERS[0]), {}),
        (log("revokeRole", bytes(32), STRANGER), {}),
        (registry("transferOwnership", NO_ACCOUNT), {}),
        (log("setPayloadBounds", 200, 8_000), {}),
        (log("setPayloadBounds", 1, 418_000), {}),
        (registry("addNode", STRANGER, KEY, "https://node.example.org"), {}),
        (registry("transferFrom", OWNERS[0], STRANGER, 100), {}),
        (of_safe("changeThreshold", 2), owners(3, 2)),
        (log("pause"), {}),
    ],
)
def test_call_cautions__usual_act__is_quiet(call: Call, after: dict[str, str]) -> None:
    assert cautions(call, after) == ()


def test_call_cautions__without_a_council_file__names_no_stranger() -> None:
    call = log("grantRole", bytes(32), STRANGER)

    assert call_cautions([call], {}, SAFE.address, None) == ()


def test_call_cautions__every_function_of_a_council__has_been_thought_of() -> None:
    functions = {name for names in FUNCTIONS.values() for name in names}

    assert set(_OF_FUNCTION) == functions | {*OWNER_FUNCTIONS}
