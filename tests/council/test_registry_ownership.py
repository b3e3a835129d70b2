"""Nodes that change hands, and the registry itself, on a real anvil."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.chains.chain import REGISTRY_OWNER, LocalChain, dev_address
from support.council.registry_commands import (
    KEYS,
    OPERATOR,
    OTHER_OPERATOR,
    URL,
    registry_command,
    sent_by,
    standing,
)

OWNER, SUCCESSOR = REGISTRY_OWNER, 7


def test_hand_over__offered_and_accepted__only_the_successor_rules(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    local_chain.add_node(OPERATOR, KEYS[0], URL)
    offer = ["hand-over", "--to", dev_address(SUCCESSOR)]
    offered = registry_command(local_chain, *offer, *sent_by(tmp_path, OWNER))
    assert offered.code == 0, offered.err
    assert f"pending owner: (none) -> {dev_address(SUCCESSOR)}" in offered.out
    listed = registry_command(local_chain, "list", "--json").content
    assert (listed["owner"], listed["pending_owner"]) == (
        dev_address(OWNER),
        dev_address(SUCCESSOR),
    )
    shown = registry_command(local_chain, "list").out
    assert f"offered to      {dev_address(SUCCESSOR)}\n" in shown

    accepted = registry_command(local_chain, "accept", "--json", *sent_by(tmp_path, SUCCESSOR))
    assert accepted.code == 0, accepted.err
    assert accepted.content["difference"] == [
        f"NodeRegistry owner: {dev_address(OWNER)} -> {dev_address(SUCCESSOR)}",
        f"NodeRegistry pending owner: {dev_address(SUCCESSOR)} -> (none)",
    ]

    before = standing(local_chain)
    refused = registry_command(local_chain, "disable", 100, *sent_by(tmp_path, OWNER))
    assert refused.code == 2
    assert f"the registry's owner {dev_address(SUCCESSOR)}" in refused.err
    assert standing(local_chain) == before
    disabled = registry_command(local_chain, "disable", 100, *sent_by(tmp_path, SUCCESSOR))
    assert disabled.code == 0, disabled.err


@pytest.mark.parametrize("number", [OWNER, 3])
def test_accept__by_another_than_the_successor__is_refused_before_sending(
    local_chain: LocalChain, tmp_path: Path, number: int
) -> None:
    offer = ["hand-over", "--to", dev_address(SUCCESSOR)]
    registry_command(local_chain, *offer, *sent_by(tmp_path, OWNER))
    before = standing(local_chain)

    outcome = registry_command(local_chain, "accept", *sent_by(tmp_path, number))

    assert outcome.code == 2
    assert f"that ownership was offered to {dev_address(SUCCESSOR)}" in outcome.err
    assert standing(local_chain) == before


def test_hand_over__withdrawn__cannot_be_accepted(local_chain: LocalChain, tmp_path: Path) -> None:
    sending = sent_by(tmp_path, OWNER)
    registry_command(local_chain, "hand-over", "--to", dev_address(SUCCESSOR), *sending)

    withdrawn = registry_command(local_chain, "hand-over", "--withdraw", *sending)

    assert withdrawn.code == 0, withdrawn.err
    assert f"pending owner: {dev_address(SUCCESSOR)} -> (none)" in withdrawn.out
    accepted = registry_command(local_chain, "accept", *sent_by(tmp_path, SUCCESSOR))
    assert accepted.code == 2
    assert "an account that ownership is offered to, got (none)" in accepted.err


def test_transfer__node_of_an_operator__goes_to_the_other(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    local_chain.add_node(OPERATOR, KEYS[0], URL)
    give = ["transfer", 100, "--holder", OTHER_OPERATOR]

    dry = registry_command(local_chain, *give)
    sent = registry_command(local_chain, *give, *sent_by(tmp_path, OWNER))

    assert (dry.code, sent.code) == (0, 0), sent.err
    assert f"node 100 holder: {OPERATOR} ->" in dry.out
    shown = registry_command(local_chain, "show", 100, "--json").content
    assert (shown["holder"], shown["status"]) == (OTHER_OPERATOR, "enabled")


@pytest.mark.parametrize("name", ["node_registry", "group_messages", "originator_sequence"])
def test_transfer__to_one_of_the_contracts__is_refused(local_chain: LocalChain, name: str) -> None:
    local_chain.add_node(OPERATOR, KEYS[0], URL)
    address = "0x" + getattr(local_chain.record, name).address.hex()

    for command in (["transfer", 100, "--holder", address], ["hand-over", "--to", address]):
        outcome = registry_command(local_chain, *command)

        assert outcome.code == 2
        assert "an account that can act" in outcome.err


def test_updates__opened_and_closed__are_read_back(local_chain: LocalChain, tmp_path: Path) -> None:
    sending = sent_by(tmp_path, OWNER)
    opened = registry_command(local_chain, "open-updates", *sending)
    again = registry_command(local_chain, "open-updates")
    assert "updates         open" in registry_command(local_chain, "list").out
    closed = registry_command(local_chain, "close-updates", *sending)

    assert (opened.code, again.code, closed.code) == (0, 2, 0), opened.err + closed.err
    assert "address updates: closed -> open" in opened.out
    assert "address updates: open already" in again.err
    assert "address updates: open -> closed" in closed.out
