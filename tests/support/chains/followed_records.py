"""Deployment records that the indexer follows: our own, and one that lists its contracts."""

from __future__ import annotations

from typing import Any

import pytest

from chainkit.contracts.followed import FollowedDeployment, parse_followed_deployment
from chainkit.errors import ConfigurationError

GENESIS = "0x" + "9e" * 32
INDEXED_MESSAGE = "MessageSent(bytes16 indexed groupId, bytes message, uint64 indexed sequenceId)"
INDEXED_UPDATE = (
    "IdentityUpdateCreated(bytes32 indexed inboxId, bytes update, uint64 indexed sequenceId)"
)
MESSAGES: dict[str, Any] = {
    "name": "GroupMessageBroadcaster",
    "address": "0x" + "aA" * 20,
    "block": 12,
    "originator_id": 0,
    "event": INDEXED_MESSAGE,
}
UPDATES: dict[str, Any] = {
    "name": "IdentityUpdateBroadcaster",
    "address": "0x" + "bb" * 20,
    "block": 14,
    "originator_id": 1,
    "event": INDEXED_UPDATE,
}
COUNTER: dict[str, Any] = {"address": MESSAGES["address"], "function": "sequenceId()", "block": 12}
SHARED: dict[str, Any] = {"address": "0x" + "cc" * 20, "function": "last()", "block": 3}
LISTED: dict[str, Any] = {
    "format": 1,
    "chain_id": 31337,
    "genesis_hash": GENESIS,
    "payload_contracts": [MESSAGES, UPDATES],
    "counters": {"0": COUNTER, "1": None},
}
REGISTRY = {"address": "0x" + "dd" * 20, "block": 5}
ELSEWHERE = REGISTRY | {"chain_id": 1, "genesis_hash": "0x" + "d4" * 32}


def own_contract(number: int) -> dict[str, Any]:
    return {
        "address": "0x" + f"{number:02x}" * 20,
        "block": 10 - number,
        "transaction": "0x" + f"a{number}" * 32,
        "implementation": {
            "address": "0x" + f"b{number}" * 20,
            "block": 1,
            "transaction": "0x" + f"c{number}" * 32,
        },
    }


OWN_NAMES = ("GroupMessages", "IdentityUpdates", "NodeRegistry", "OriginatorSequence")
OWN: dict[str, Any] = {
    "format": 1,
    "chain_id": 31337,
    "genesis_hash": GENESIS,
    "deployer": "0x" + "de" * 20,
    "contracts": {name: own_contract(number) for number, name in enumerate(OWN_NAMES, start=1)},
}


def parsed(record: Any) -> FollowedDeployment:
    return parse_followed_deployment(record, "deployment record")


def refusal_of(record: Any) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        parsed(record)
    return caught.value


def listed(*contracts: dict[str, Any], **counters: Any) -> dict[str, Any]:
    """The record with these contracts, and counters by ``of_`` and the originator id."""
    named = {name.removeprefix("of_"): value for name, value in counters.items()}
    return LISTED | {"payload_contracts": list(contracts), "counters": named}
