"""How the plan of an upgrade is shown, to people and to scripts."""

from __future__ import annotations

import textwrap
from typing import Any

from eth_utils.address import to_checksum_address

from chainkit.contracts.comparison import code_words
from chainkit.council.upgrade.upgrade import UpgradePlan
from chainkit.terminal.facts import echo_fact
from chainkit.text.hexadecimal import hex0x
from chainkit.text.json_values import reference_as_json

_HEX_WIDTH = 80


def echo_plan(plan: UpgradePlan, chain_id: int) -> None:
    """Print the deployed code, the new code, their differences, and the transactions to be sent."""
    echo_fact("contract", f"{plan.name} {to_checksum_address(plan.proxy)} (chain id {chain_id})")
    echo_fact("read at", f"block {plan.block}")
    echo_fact("deployed", f"{_release_words(plan)}, at {to_checksum_address(plan.current)}")
    echo_fact("  code", code_words(plan.current_code))
    echo_fact("proposed", f"{plan.proposed.version}, {_place_words(plan)}")
    if plan.implementation is not None:
        echo_fact("  code", code_words(plan.code))
    echo_fact("  size", f"{len(plan.current_code):,} -> {len(plan.code):,} bytes")
    _echo_differences(plan)
    echo_fact("simulated", _simulation_words(plan))
    _echo_call(plan)


def _echo_differences(plan: UpgradePlan) -> None:
    if plan.release is None:
        echo_fact("differences", "not known: the deployed code is no known release")
        return
    for line in plan.added:
        echo_fact("adds", line)
    for line in plan.removed:
        echo_fact("removes", line)
    if not plan.added and not plan.removed:
        echo_fact("interface", "the same")
    for change in plan.storage_changes:
        echo_fact("storage" if change.keeps_meaning else "storage BREAKS", change.words)
    if not plan.storage_changes:
        echo_fact("storage", "the same in every namespace")


def _echo_call(plan: UpgradePlan) -> None:
    if plan.calldata is None or plan.calldata_hash is None:
        echo_fact("calldata", "known once the implementation is deployed")
        return
    proxy = to_checksum_address(plan.proxy)
    echo_fact("call", f"upgradeToAndCall of {proxy}, by any administrator:")
    for administrator in plan.administrators:
        echo_fact("", administrator)
    echo_fact("gas", f"{plan.gas:,} (estimated)")
    first, *rest = textwrap.wrap(hex0x(plan.calldata), _HEX_WIDTH)
    echo_fact("calldata", first)
    for line in rest:
        echo_fact("", line)
    echo_fact("  keccak256", hex0x(plan.calldata_hash))


def plan_json(plan: UpgradePlan, chain_id: int) -> dict[str, Any]:
    """Return the same for a script."""
    return {
        "chain_id": chain_id,
        "block": reference_as_json(plan.block),
        "contract": plan.name,
        "proxy": to_checksum_address(plan.proxy),
        "deployed": {
            "release": plan.release.version if plan.release else None,
            "implementation": to_checksum_address(plan.current),
            "code": code_words(plan.current_code),
        },
        "proposed": {
            "release": plan.proposed.version,
            "implementation": plan.implementation and to_checksum_address(plan.implementation),
            "code": code_words(plan.code) if plan.implementation else None,
        },
        "added": list(plan.added),
        "removed": list(plan.removed),
        "storage_changes": [
            {"change": change.words, "keeps_meaning": change.keeps_meaning}
            for change in plan.storage_changes
        ],
        "administrators": list(plan.administrators),
        "simulated": plan.is_simulated,
        "calldata": plan.calldata and hex0x(plan.calldata),
        "calldata_keccak256": plan.calldata_hash and hex0x(plan.calldata_hash),
        "gas": plan.gas,
    }


def _release_words(plan: UpgradePlan) -> str:
    return f"release {plan.release.version}" if plan.release else "code of no known release"


def _simulation_words(plan: UpgradePlan) -> str:
    if plan.is_simulated:
        return f"as {plan.sender} (an administrator), no revert"
    return "not yet: the endpoint supports no state overrides"


def _place_words(plan: UpgradePlan) -> str:
    if plan.implementation is None:
        return "not deployed yet"
    return f"at {to_checksum_address(plan.implementation)}"
