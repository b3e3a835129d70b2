"""`chainkit registry set-url` on a real anvil: the holder corrects the URL of a node."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.chains.chain import REGISTRY_OWNER, LocalChain, dev_address
from support.council.registry_commands import (
    KEYS,
    OPERATOR,
    URL,
    registry_command,
    sent_by,
    standing,
)

HOLDER, STRANGER = 5, 3
NEW_URL = "https://node.example:5051"
SET_URL = ["set-url", 100, "--http-address", NEW_URL, "--no-check-url"]


@pytest.fixture
def chain(local_chain: LocalChain, tmp_path: Path) -> LocalChain:
    """A node with a typing error in its URL, and a registry that lets its holder change it."""
    local_chain.add_node(OPERATOR, KEYS[0], URL)
    opened = registry_command(local_chain, "open-updates", *sent_by(tmp_path, REGISTRY_OWNER))
    assert opened.code == 0, opened.err
    return local_chain


def shown(chain: LocalChain) -> dict[str, str]:
    found: dict[str, str] = registry_command(chain, "show", 100, "--json").content
    return {name: found[name] for name in ("http_address", "signing_key", "holder", "status")}


def test_set_url__by_the_holder__changes_the_url_alone(chain: LocalChain, tmp_path: Path) -> None:
    before = shown(chain)

    dry = registry_command(chain, *SET_URL)
    unchanged = shown(chain)
    sent = registry_command(chain, *SET_URL, *sent_by(tmp_path, HOLDER))
    again = registry_command(chain, *SET_URL)

    line = f"node 100 http address: {URL} -> {NEW_URL}"
    assert (dry.code, sent.code, again.code) == (0, 0, 2), sent.err
    assert line in dry.out
    assert f"from            {OPERATOR} (the node's holder)" in dry.out
    assert unchanged == before
    assert line in sent.out
    assert "read back as planned" in sent.out
    assert shown(chain) == before | {"http_address": NEW_URL}
    assert f"http address: {NEW_URL} already" in again.err
    history = registry_command(chain, "history", 100).out
    assert f"HTTP address changed to {NEW_URL}" in history


@pytest.mark.parametrize("number", [REGISTRY_OWNER, STRANGER])
def test_set_url__by_another_than_the_holder__is_refused_before_sending(
    chain: LocalChain, tmp_path: Path, number: int
) -> None:
    before = standing(chain)

    outcome = registry_command(chain, *SET_URL, *sent_by(tmp_path, number))

    assert outcome.code == 2
    assert f"the node's holder {OPERATOR}, got {dev_address(number)}" in outcome.err
    assert standing(chain) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["set-url", 200, *SET_URL[2:]], "node 200: expected a registered node"),
        (["set-url", 100, "--http-address", "ftp://a.example"], "http:// or https://"),
        (["set-url", 100, "--http-address", "https://a@b.example"], "a user before it"),
    ],
)
def test_set_url__of_nobody_or_to_no_url__is_refused(
    chain: LocalChain, arguments: list[object], words: str
) -> None:
    outcome = registry_command(chain, *arguments)

    assert outcome.code == 2
    assert words in outcome.err


def test_set_url__updates_closed__says_who_opens_them(local_chain: LocalChain) -> None:
    local_chain.add_node(OPERATOR, KEYS[0], URL)

    outcome = registry_command(local_chain, *SET_URL)

    assert outcome.code == 2
    words = "expected open, by the registry's owner (`chainkit registry open-updates`), got closed"
    assert words in outcome.err


def test_set_url__url_does_not_answer__is_a_warning_and_no_refusal(chain: LocalChain) -> None:
    arguments = ["set-url", 100, "--http-address", "http://127.0.0.1:9"]

    asked = registry_command(chain, *arguments, "--check-private-url")
    not_asked = registry_command(chain, *arguments)

    assert (asked.code, not_asked.code) == (0, 0)
    assert asked.err.startswith("warning: http://127.0.0.1:9 does not answer: no connection")
    assert "is not asked for an answer" in not_asked.err
    assert "caution         the new URL of node 100 is no https" in asked.out


def test_set_url__holder_is_a_contract__is_to_be_proposed(
    chain: LocalChain, tmp_path: Path
) -> None:
    chain.anvil.request("anvil_setCode", OPERATOR, "0xfe")
    before = standing(chain)

    dry = registry_command(chain, *SET_URL)
    sent = registry_command(chain, *SET_URL, *sent_by(tmp_path, HOLDER))

    assert dry.out.endswith("add --propose FILE to draft it\n")
    assert "a contract: use --propose FILE" in sent.err
    assert standing(chain) == before
