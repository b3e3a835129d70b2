"""Administrators change the two logs with `chainkit contracts`, on a real anvil."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account

from chainkit.chain import sending
from chainkit.chain.sending import Sending
from chainkit.cli.change.signers import SignerOptions
from chainkit.contracts.interface import shipped_interface
from chainkit.contracts.parameters import PayloadBounds
from chainkit.contracts.state import DEFAULT_ADMIN_ROLE, ContractState
from chainkit.council.calls import Call
from chainkit.council.calls.log_effects import LOG_EFFECTS
from chainkit.council.changes import execute_change, plan_change, sign_change
from chainkit.errors import TransactionFailed
from chainkit.signatures import keccak256
from support.chains.chain import LocalChain, dev_address, dev_secret
from support.chains.tampering import ADMINISTRATOR, call_as, set_hidden_role, write_code
from support.command_line import Outcome, run, write_keystore
from support.council.signers import dev_signer
from support.council.upgrades import traces

NAME = "GroupMessages"
SECOND = 3
STRANGER = 4
CONTRACT = b"\x99" * 20
"""Where a test lets code stand, as that of a multisig."""


def contracts(chain: LocalChain, *arguments: object) -> Outcome:
    place = ("--rpc", chain.url, "--deployment", chain.record_path)
    return run("contracts", *arguments, *place)


def state(chain: LocalChain) -> ContractState:
    return ContractState(chain.endpoint, chain.head().reference)


def is_paused(chain: LocalChain, name: str = NAME) -> bool:
    found: bool = state(chain).ask(name, proxy(chain, name), "paused")
    return found


def administrators(chain: LocalChain, name: str = NAME) -> tuple[str, ...]:
    return state(chain).administrators(name, proxy(chain, name))


def proxy(chain: LocalChain, name: str = NAME) -> bytes:
    return next(log.address for log in chain.record.sequenced_logs if log.name == name)


def grant(chain: LocalChain, account: str, name: str = NAME) -> None:
    role = (DEFAULT_ADMIN_ROLE, account)
    call_as(chain, ADMINISTRATOR, name, proxy(chain, name), "grantRole", *role)


def hand_over_to_a_contract(chain: LocalChain) -> None:
    write_code(chain, CONTRACT, b"\x60\x00")
    grant(chain, "0x" + CONTRACT.hex())
    role = (DEFAULT_ADMIN_ROLE, dev_address(ADMINISTRATOR))
    call_as(chain, ADMINISTRATOR, NAME, proxy(chain), "renounceRole", *role)


@pytest.fixture
def administrator(tmp_path: Path) -> list[str]:
    return ["--broadcast", *write_keystore(tmp_path, dev_secret(ADMINISTRATOR))]


# ------------------------------------------------------------------ each is read back


def test_pause__then_unpause__is_read_back(
    local_chain: LocalChain, administrator: list[str]
) -> None:
    paused = contracts(local_chain, "pause", NAME, *administrator)

    assert paused.code == 0, paused.err
    assert "changes         GroupMessages paused: no -> yes" in paused.out
    assert "read back as planned" in paused.out
    assert (is_paused(local_chain), is_paused(local_chain, "IdentityUpdates")) == (True, False)

    unpaused = contracts(local_chain, "unpause", NAME, "--json", *administrator)

    assert unpaused.content["difference"] == ["GroupMessages paused: yes -> no"]
    assert unpaused.content["sent"] is True
    assert not is_paused(local_chain)


def test_hand_over__grant_then_revoke_by_the_new_one__is_read_back(
    local_chain: LocalChain, administrator: list[str], tmp_path: Path
) -> None:
    granted = contracts(local_chain, "grant-admin", NAME, dev_address(SECOND), *administrator)
    assert granted.code == 0, granted.err
    assert set(administrators(local_chain)) == {dev_address(ADMINISTRATOR), dev_address(SECOND)}

    (tmp_path / "second").mkdir()
    second = ["--broadcast", *write_keystore(tmp_path / "second", dev_secret(SECOND))]
    account = dev_address(ADMINISTRATOR)
    revoked = contracts(local_chain, "revoke-admin", NAME, account, *second)

    assert revoked.code == 0, revoked.err
    assert administrators(local_chain) == (dev_address(SECOND),)
    assert administrators(local_chain, "IdentityUpdates") == (account,)


def test_set_bounds__within_the_cap__is_read_back(
    local_chain: LocalChain, administrator: list[str]
) -> None:
    bounds = ("--minimum", 1, "--maximum", 9)

    outcome = contracts(local_chain, "set-bounds", "IdentityUpdates", *bounds, *administrator)

    assert outcome.code == 0, outcome.err
    found = state(local_chain).payload_bounds(NAME, proxy(local_chain, "IdentityUpdates"))
    assert found == PayloadBounds(1, 9)


def test_broadcast__for_a_script__is_shown_on_standard_error_first(
    local_chain: LocalChain, administrator: list[str]
) -> None:
    outcome = contracts(local_chain, "pause", NAME, "--json", *administrator)

    content = outcome.content
    assert "GroupMessages paused: no -> yes" in outcome.err
    assert f"sending         {content['transaction_hash']}" in outcome.err
    assert (content["before"], content["after"]) == (
        {"GroupMessages paused": "no"},
        {"GroupMessages paused": "yes"},
    )
    (call,) = content["calls"]
    assert (call["contract"], call["function"], call["arguments"]) == (NAME, "pause", {})


# ------------------------------------------------------------------ dry runs

DRY_RUNS = [
    ("pause", NAME),
    ("grant-admin", NAME, dev_address(SECOND)),
    ("set-bounds", NAME, "--minimum", 1, "--maximum", 1048576),
]


@pytest.mark.parametrize("arguments", DRY_RUNS, ids=lambda arguments: arguments[0])
def test_dry_run__of_one_log__shows_it_and_sends_nothing(
    local_chain: LocalChain, arguments: tuple[object, ...]
) -> None:
    before = traces(local_chain)

    told = contracts(local_chain, *arguments)
    content = contracts(local_chain, *arguments, "--json").content

    assert told.code == 0, told.err
    assert told.out.endswith("nothing was sent; add --broadcast --keystore FILE to send\n")
    assert max(map(len, told.out.splitlines())) <= 100
    (call,) = content["calls"]
    calldata = bytes.fromhex(call["calldata"][2:])
    assert call["calldata_keccak256"] == "0x" + keccak256(calldata).hex()
    assert call["calldata_keccak256"] in told.out
    assert (content["sent"], content["proposal"]) == (False, None)
    assert traces(local_chain) == before


def test_dry_run__of_both_logs__is_two_calls_one_by_one(local_chain: LocalChain) -> None:
    told = contracts(local_chain, "pause", "all")
    content = contracts(local_chain, "pause", "all", "--json").content

    assert told.out.endswith("makes one call at a time: draft or send each by itself\n")
    assert [call["contract"] for call in content["calls"]] == [NAME, "IdentityUpdates"]
    assert content["difference"] == [
        "GroupMessages paused: no -> yes",
        "IdentityUpdates paused: no -> yes",
    ]


def test_dry_run__several_administrators__names_all_that_may(local_chain: LocalChain) -> None:
    write_code(local_chain, CONTRACT, b"\x60\x00")
    grant(local_chain, "0x" + CONTRACT.hex())

    told = contracts(local_chain, "pause", NAME)

    assert f"from            {dev_address(ADMINISTRATOR)} (an administrator)" in told.out
    assert f"  or            0x{CONTRACT.hex()} (an administrator, a contract)" in told.out


def test_dry_run__administrator_is_a_contract__says_to_propose(local_chain: LocalChain) -> None:
    hand_over_to_a_contract(local_chain)

    told = contracts(local_chain, "pause", NAME)

    assert told.code == 0, told.err
    assert told.out.endswith("the sender is a contract: add --propose FILE to draft it\n")


# ------------------------------------------------------------------ refused


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["unpause", NAME], "one that changes something"),
        (["pause", "NodeRegistry"], "is not one of"),
        (["pause", NAME, "--broadcast"], "--broadcast needs --keystore FILE or --account ALIAS"),
        (["pause", NAME, "--broadcast", "--propose", "x.json"], "--broadcast"),
        (["grant-admin", NAME, "0x12"], "ADDRESS: expected 0x and 40 hex digits"),
        (["grant-admin", NAME, dev_address(3).swapcase()], "ADDRESS"),
        (["grant-admin", NAME, "0x" + "0" * 40], "the zero address"),
        (["grant-admin", NAME, dev_address(ADMINISTRATOR)], "one that changes something"),
        (["revoke-admin", NAME, dev_address(STRANGER)], "one that changes something"),
        (["revoke-admin", NAME, dev_address(ADMINISTRATOR)], "one that remains"),
        (["set-bounds", NAME, "--minimum", 5, "--maximum", 4], "at most the greatest"),
        (["set-bounds", NAME, "--minimum", 0, "--maximum", 0], "greatest payload"),
        (["set-bounds", NAME, "--minimum", 0, "--maximum", 1048577], "--maximum"),
        (["set-bounds", NAME, "--minimum", 0], "missing --maximum"),
    ],
)
def test_command__changes_nothing_or_cannot_be__is_refused(
    local_chain: LocalChain, arguments: list[object], words: str
) -> None:
    before = traces(local_chain)

    outcome = contracts(local_chain, *arguments)

    assert outcome.code == 2
    assert words in outcome.err
    assert traces(local_chain) == before


def test_grant__the_log_itself__is_refused(local_chain: LocalChain) -> None:
    outcome = contracts(local_chain, "grant-admin", NAME, "0x" + proxy(local_chain).hex())

    assert outcome.code == 2
    assert "an account that can act, got GroupMessages itself" in outcome.err


def test_broadcast__both_logs__is_refused_before_a_password_is_asked(
    local_chain: LocalChain, administrator: list[str]
) -> None:
    before = traces(local_chain)

    outcome = contracts(local_chain, "pause", "all", *administrator)

    assert outcome.code == 2
    assert "got 2 calls: an account with a key makes one call at a time" in outcome.err
    assert traces(local_chain) == before


def test_broadcast__administrator_is_a_contract__is_refused_early(
    local_chain: LocalChain, administrator: list[str]
) -> None:
    hand_over_to_a_contract(local_chain)
    before = traces(local_chain)

    outcome = contracts(local_chain, "pause", NAME, *administrator)

    assert outcome.code == 2
    assert "a contract: use --propose FILE" in outcome.err
    assert traces(local_chain) == before


def test_broadcast__administrator_delegates_to_code__is_an_account(
    local_chain: LocalChain, administrator: list[str]
) -> None:
    account = bytes.fromhex(dev_address(ADMINISTRATOR)[2:])
    write_code(local_chain, account, b"\xef\x01\x00" + CONTRACT)

    outcome = contracts(local_chain, "pause", NAME, *administrator)

    assert outcome.code == 0, outcome.err
    assert is_paused(local_chain)


def test_broadcast__key_of_a_stranger__is_refused_before_anything_is_sent(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    before = traces(local_chain)
    stranger = write_keystore(tmp_path, dev_secret(STRANGER))

    outcome = contracts(local_chain, "pause", NAME, "--broadcast", *stranger)

    assert outcome.code == 2
    expected = f"keystore: expected an administrator {dev_address(ADMINISTRATOR)}"
    assert f"{expected}, got {dev_address(STRANGER)}" in outcome.err
    assert traces(local_chain) == before


def test_call__both_logs_have_other_administrators__is_refused(local_chain: LocalChain) -> None:
    grant(local_chain, dev_address(SECOND))
    role = (DEFAULT_ADMIN_ROLE, dev_address(ADMINISTRATOR))
    call_as(local_chain, ADMINISTRATOR, NAME, proxy(local_chain), "renounceRole", *role)

    outcome = contracts(local_chain, "pause", "all")

    assert outcome.code == 2
    assert "one account that may make all the calls" in outcome.err
    assert f"pause of GroupMessages by {dev_address(SECOND)}" in outcome.err


def test_simulation__reverts__is_told_in_the_contracts_words(local_chain: LocalChain) -> None:
    set_hidden_role(local_chain, proxy(local_chain), ADMINISTRATOR, False)

    outcome = contracts(local_chain, "pause", NAME)

    assert outcome.code == 2
    assert "AccessControlUnauthorizedAccount(account=0x7099" in outcome.err


# ------------------------------------------------------------------ others act meanwhile


def meanwhile(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, act: Callable[[], None]
) -> None:
    """Let somebody act right before a function is called."""
    wrapped = getattr(module, name)

    def acted_upon(*arguments: Any, **options: Any) -> Any:
        act()
        return wrapped(*arguments, **options)

    monkeypatch.setattr(module, name, acted_upon)


def test_broadcast__another_administrator_was_named_while_one_read__is_refused(
    local_chain: LocalChain, administrator: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile(monkeypatch, SignerOptions, "open", lambda: grant(local_chain, dev_address(STRANGER)))

    outcome = contracts(local_chain, "grant-admin", NAME, dev_address(SECOND), *administrator)

    assert outcome.code == 2
    assert "change: expected as shown: GroupMessages administrators" in outcome.err
    assert dev_address(SECOND) not in administrators(local_chain)


def test_broadcast__was_done_while_one_read__changes_nothing(
    local_chain: LocalChain, administrator: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def pause() -> None:
        call_as(local_chain, ADMINISTRATOR, NAME, proxy(local_chain), "pause")

    meanwhile(monkeypatch, SignerOptions, "open", pause)

    outcome = contracts(local_chain, "pause", NAME, *administrator)

    assert outcome.code == 2
    assert "one that changes something" in outcome.err


def test_execute__was_done_before_it_was_mined__fails_in_the_contracts_words(
    local_chain: LocalChain, administrator: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    grant(local_chain, dev_address(SECOND))

    def pause() -> None:
        call_as(local_chain, SECOND, NAME, proxy(local_chain), "pause")

    meanwhile(monkeypatch, sending, "send_transaction", pause)

    outcome = contracts(local_chain, "pause", NAME, *administrator)

    assert outcome.code == 2
    assert "pause: expected status 1, got a revert: EnforcedPause()" in outcome.err


def test_execute__undone_in_the_same_block__is_a_failure(local_chain: LocalChain) -> None:
    grant(local_chain, dev_address(SECOND))
    here = state(local_chain)
    call = Call.make(local_chain.record, NAME, "pause")
    plan = plan_change(LOG_EFFECTS, here, local_chain.record, [call], dev_address(ADMINISTRATOR))
    signer = dev_signer(ADMINISTRATOR)
    sends = Sending(local_chain.endpoint, timeout_seconds=10)
    signed = sign_change(sends, local_chain.record, plan, signer)
    local_chain.pause_mining()
    local_chain.send_raw(signed.raw)
    local_chain.send_raw(cheap_unpause(local_chain))
    local_chain.mine()

    with pytest.raises(TransactionFailed, match="GroupMessages paused: expected yes, got no"):
        execute_change(LOG_EFFECTS, sends, plan, signed)


def cheap_unpause(chain: LocalChain) -> bytes:
    """A transaction that is mined behind others in a block."""
    transaction = {
        "chainId": chain.record.chain_id,
        "nonce": 0,
        "to": proxy(chain),
        "data": shipped_interface(NAME).encode("unpause"),
        "gas": 200_000,
        "maxFeePerGas": 10**9,
        "maxPriorityFeePerGas": 0,
    }
    return bytes(Account.sign_transaction(transaction, dev_secret(SECOND)).raw_transaction)
