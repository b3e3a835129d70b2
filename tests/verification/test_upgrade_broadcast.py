"""The plan is shown before `upgrade --broadcast` sends, and made again if the chain changes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from chainkit.chain import Endpoint, sending
from chainkit.cli.contracts import upgrade as upgrade_commands
from chainkit.contracts.artifacts import Release
from chainkit.contracts.deployment import DeployedContract, implementation_content
from chainkit.contracts.state import ContractState
from chainkit.contracts.storage_layout import StorageMember
from chainkit.errors import AccessRefused, RefusedRequest
from support.chains.chain import LocalChain, dev_address
from support.chains.tampering import ADMINISTRATOR, call_as, write_code
from support.council.upgrades import NAME, note_release, traces, upgrade_command

ANSWERS_EMPTY_LISTS = bytes.fromhex("6020600052600060205260406000f3")
"""Runtime code that returns the words 32 and 0, whatever it is asked."""

pytestmark = pytest.mark.usefixtures("older_release")


@pytest.fixture
def meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[Callable[[], object]], list[DeployedContract]]:
    """Do something as soon as the implementation is deployed; returns the list it stands in."""
    deploy = upgrade_commands.deploy_implementation
    deployed: list[DeployedContract] = []

    def arrange(change: Callable[[], object]) -> list[DeployedContract]:
        def deploy_and_change(*arguments: Any) -> DeployedContract:
            deployed.append(deploy(*arguments))
            change()
            return deployed[0]

        monkeypatch.setattr(upgrade_commands, "deploy_implementation", deploy_and_change)
        return deployed

    return arrange


def implementation(chain: LocalChain) -> bytes:
    state = ContractState(chain.endpoint, chain.head().reference)
    return state.implementation(chain.record.group_messages.address)


def make_code_unknown(chain: LocalChain) -> None:
    code = chain.endpoint.code(implementation(chain), chain.head().reference)
    write_code(chain, implementation(chain), code[:-1] + bytes([code[-1] ^ 2]))


def name_another_administrator(chain: LocalChain) -> None:
    proxy = chain.record.group_messages.address
    call_as(chain, ADMINISTRATOR, NAME, proxy, "grantRole", bytes(32), dev_address(4))


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (make_code_unknown, [], "the deployed code is no known release"),
        (make_code_unknown, ["--accept-unknown"], "what is deployed changed meanwhile"),
        (name_another_administrator, [], "the administrators changed meanwhile"),
    ],
)
def test_broadcast__chain_changes_while_the_code_is_deployed__exits_1_and_upgrades_nothing(
    change: Callable[[LocalChain], None],
    options: list[str],
    words: str,
    local_chain: LocalChain,
    administrator: list[str],
    meanwhile: Any,
) -> None:
    current, recorded = implementation(local_chain), local_chain.record_path.read_text()
    deployed = meanwhile(lambda: change(local_chain))

    outcome = upgrade_command(local_chain, *administrator, *options)

    content = implementation_content(deployed[0])
    assert outcome.code == 1, outcome.err
    assert implementation(local_chain) == current
    assert local_chain.record_path.read_text() == recorded
    assert f"refused         {words}" in outcome.out
    assert content["address"] in outcome.err
    assert json.dumps(content, indent=2, sort_keys=True) in outcome.out


@pytest.mark.parametrize("options", [[], ["--implementation-only"]])
def test_broadcast__chain_changes_meanwhile__is_told_to_a_script(
    options: list[str], local_chain: LocalChain, administrator: list[str], meanwhile: Any
) -> None:
    deployed = meanwhile(lambda: make_code_unknown(local_chain))

    outcome = upgrade_command(local_chain, *administrator, *options, "--json")

    assert outcome.code == 1, outcome.err
    assert "no known release" in outcome.content["refused"]
    assert (outcome.content["sent"], outcome.content["transaction_hash"]) == (False, None)
    assert outcome.content["new_implementation"] == implementation_content(deployed[0])


def test_broadcast__record_that_cannot_be_written_over__is_refused_before_anything_is_sent(
    local_chain: LocalChain, administrator: list[str]
) -> None:
    path = local_chain.record_path
    path.chmod(0o444)
    before = traces(local_chain)

    outcome = upgrade_command(local_chain, *administrator)

    assert outcome.code == 2
    assert "expected a writable file, got a read-only one" in " ".join(outcome.err.split())
    assert traces(local_chain) == before


def test_broadcast__storage_breaks_by_the_plan_made_again__exits_1(
    local_chain: LocalChain,
    older_release: Release,
    administrator: list[str],
    monkeypatch: pytest.MonkeyPatch,
    meanwhile: Any,
) -> None:
    fee = StorageMember("fee", 1, 0, 32, "uint256")
    storage = {name: (*members, fee) for name, members in older_release.storage.items()}
    meanwhile(lambda: note_release(monkeypatch, replace(older_release, storage=storage)))
    current = implementation(local_chain)

    outcome = upgrade_command(local_chain, *administrator)

    assert outcome.code == 1, outcome.err
    assert "refused         stored values would change their meaning" in outcome.out
    assert implementation(local_chain) == current


def test_broadcast__for_a_script__shows_each_plan_on_standard_error_before_sending(
    local_chain: LocalChain, administrator: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    send, shown = sending.send_transaction, []

    def note(*arguments: Any) -> None:
        shown.append((sys.stdout.getvalue(), sys.stderr.getvalue()))  # type: ignore[attr-defined]
        send(*arguments)

    monkeypatch.setattr(sending, "send_transaction", note)
    dry = upgrade_command(local_chain, "--json")
    outcome = upgrade_command(local_chain, *administrator, "--json")

    (no_output, first), (still_none, second) = shown
    assert (dry.err, no_output, still_none) == ("", "", "")
    assert "adds            function pause()" in first
    assert "not deployed yet" in first
    assert outcome.content["calldata_keccak256"] in second.removeprefix(first)
    assert outcome.content["sent"] is True


def test_upgrade__unknown_code_names_no_administrator__is_a_typed_error(
    local_chain: LocalChain,
) -> None:
    write_code(local_chain, implementation(local_chain), ANSWERS_EMPTY_LISTS)

    outcome = upgrade_command(local_chain, "--accept-unknown")

    assert outcome.code == 2
    assert "administrators of GroupMessages" in outcome.err
    assert "expected at least one, got none" in outcome.err


def change_overridden_calls(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[Endpoint, tuple[Any, ...]], Any]
) -> None:
    request = Endpoint.request

    def changed(self: Endpoint, method: str, *parameters: Any) -> Any:
        if method == "eth_call" and len(parameters) > 2:
            return answer(self, parameters)
        return request(self, method, *parameters)

    monkeypatch.setattr(Endpoint, "request", changed)


def ignore(endpoint: Endpoint, parameters: tuple[Any, ...]) -> Any:
    return endpoint.request("eth_call", *parameters[:2])


def refuse(endpoint: Endpoint, parameters: tuple[Any, ...]) -> Any:
    raise RefusedRequest(f"eth_call at {endpoint.name}", "a result", "too many arguments")


@pytest.mark.parametrize(
    ("answer", "words"), [(ignore, "got 0 bytes"), (refuse, "got too many arguments")]
)
def test_simulation__endpoint_without_state_overrides__says_what_to_do_instead(
    answer: Callable[..., Any],
    words: str,
    local_chain: LocalChain,
    administrator: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    change_overridden_calls(monkeypatch, answer)
    before = traces(local_chain)

    outcome = upgrade_command(local_chain, *administrator)

    assert outcome.code == 2
    assert traces(local_chain) == before
    assert f"expected support of state overrides, {words}" in outcome.err
    assert "deploy with --implementation-only first, then give --implementation" in outcome.err


def test_simulation__endpoint_without_state_overrides__works_as_it_says(
    local_chain: LocalChain, administrator: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    change_overridden_calls(monkeypatch, ignore)

    dry = upgrade_command(local_chain, "--implementation-only")
    first = upgrade_command(local_chain, *administrator, "--implementation-only", "--json")
    address = first.content["new_implementation"]["address"]
    second = upgrade_command(local_chain, *administrator, "--implementation", address, "--json")

    assert dry.code == 0, dry.err
    assert "simulated       not yet: the endpoint supports no state overrides" in dry.out
    assert "simulated       not yet" in first.err
    assert (first.code, first.content["simulated"]) == (0, True)
    assert second.code == 0, second.err
    assert "0x" + implementation(local_chain).hex() == address.lower()


def test_simulation__http_refuses__is_no_matter_of_overrides(
    local_chain: LocalChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    def revoked(endpoint: Endpoint, parameters: tuple[Any, ...]) -> Any:
        raise AccessRefused(endpoint.name, "HTTP 200", "HTTP 403")

    change_overridden_calls(monkeypatch, revoked)

    outcome = upgrade_command(local_chain, "--implementation-only")

    assert outcome.code == 2
    assert "expected HTTP 200, got HTTP 403" in outcome.err
