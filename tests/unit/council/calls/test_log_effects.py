"""Each call of the two logs has a known change and senders; calls that would harm are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from eth_utils.address import to_checksum_address

from chainkit.contracts import artifacts
from chainkit.contracts.artifacts import releases
from chainkit.contracts.implementation import implementation_code
from chainkit.contracts.parameters import PAYLOAD_SIZE_CAP, SEQUENCED_LOGS
from chainkit.contracts.state import DEFAULT_ADMIN_ROLE
from chainkit.contracts.storage_layout import StorageMember
from chainkit.council.calls import FUNCTIONS, Call, Change, read_change, unmet
from chainkit.council.calls.log_effects import LOG_EFFECTS
from chainkit.errors import ConfigurationError
from support.council.fake_log import (
    CURRENT,
    FIRST,
    PROPOSED,
    RECORD,
    SECOND,
    SEQUENCE,
    STRANGER,
    FakeLog,
)

NOBODY = "0x" + "0" * 40
NEW = to_checksum_address(PROPOSED)
OLD = to_checksum_address(CURRENT)
OWN = releases("GroupMessages")[0]


def call(function: str, *arguments: object, contract: str = "GroupMessages") -> Call:
    return Call.make(RECORD, contract, function, *arguments)


def role_call(function: str, account: str, role: bytes = DEFAULT_ADMIN_ROLE) -> Call:
    return call(function, role, account)


def change(log: FakeLog, *calls: Call, sender: str = FIRST) -> Change:
    return read_change(LOG_EFFECTS, log.state(), RECORD, sender, calls)


def refusal(log: FakeLog, *calls: Call, sender: str = FIRST) -> str:
    with pytest.raises(ConfigurationError) as caught:
        change(log, *calls, sender=sender)
    return str(caught.value)


@pytest.mark.parametrize("contract", SEQUENCED_LOGS)
def test_effects__functions_that_a_council_calls__have_one_each(contract: str) -> None:
    assert set(LOG_EFFECTS) == set(FUNCTIONS[contract])


@pytest.mark.parametrize("function", LOG_EFFECTS)
def test_senders__of_every_function__are_the_administrators(function: str) -> None:
    found = LOG_EFFECTS[function].senders(FakeLog().state(), call("pause"))

    assert found == (FIRST, SECOND)


def test_senders__contract_without_administrators__is_refused() -> None:
    assert "administrators of GroupMessages: expected at least one, got none" in refusal(
        FakeLog(members=()), call("pause")
    )


def test_change__sender_is_no_administrator__is_refused() -> None:
    words = refusal(FakeLog(), call("pause"), sender=STRANGER)

    allowed = f"an administrator of GroupMessages ({FIRST} or {SECOND})"
    got = f"{STRANGER}, which has no such role"
    assert words == f"sender of pause: expected {allowed}, got {got}"


# ------------------------------------------------------------------ pausing


@pytest.mark.parametrize(
    ("function", "is_paused", "words"),
    [("pause", False, "no -> yes"), ("unpause", True, "yes -> no")],
)
def test_pause__log_in_the_other_state__is_one_fact(
    function: str, is_paused: bool, words: str
) -> None:
    found = change(FakeLog(is_paused=is_paused), call(function))

    assert found.difference == (f"GroupMessages paused: {words}",)


@pytest.mark.parametrize(("function", "is_paused"), [("pause", True), ("unpause", False)])
def test_pause__log_in_this_state__changes_nothing(function: str, is_paused: bool) -> None:
    assert "one that changes something" in refusal(FakeLog(is_paused=is_paused), call(function))


def test_pause__both_logs__are_two_facts() -> None:
    calls = [call("pause", contract=name) for name in SEQUENCED_LOGS]

    assert change(FakeLog(), *calls).difference == (
        "GroupMessages paused: no -> yes",
        "IdentityUpdates paused: no -> yes",
    )


def test_pause__and_unpause_of_one_log__is_refused() -> None:
    with pytest.raises(ConfigurationError):
        change(FakeLog(), call("pause"), call("unpause"))


# ------------------------------------------------------------------ roles


def test_grant__one_more__shows_all_before_and_after_in_one_order() -> None:
    low = to_checksum_address("0x" + "9" * 40)

    found = change(FakeLog(), role_call("grantRole", low))

    assert found.difference == (
        f"GroupMessages administrators: {FIRST}, {SECOND} -> {low}, {FIRST}, {SECOND}",
    )


def test_revoke__one_of_two__leaves_the_other() -> None:
    found = change(FakeLog(), role_call("revokeRole", FIRST))

    assert found.after == {"GroupMessages administrators": SECOND}


@pytest.mark.parametrize(("function", "account"), [("grantRole", FIRST), ("revokeRole", STRANGER)])
def test_set_role__account_is_what_it_would_become__changes_nothing(
    function: str, account: str
) -> None:
    assert "one that changes something" in refusal(FakeLog(), role_call(function, account))


def test_revoke__last_administrator__is_refused() -> None:
    words = refusal(FakeLog(members=(FIRST,)), role_call("revokeRole", FIRST))

    assert words == f"GroupMessages administrators: expected one that remains, got only {FIRST}"


@pytest.mark.parametrize("function", ["grantRole", "revokeRole"])
def test_set_role__role_that_nothing_uses__is_refused(function: str) -> None:
    assert "role: expected that of the administrators" in refusal(
        FakeLog(), role_call(function, STRANGER, b"\x01" * 32)
    )


@pytest.mark.parametrize("contract", [contract.name for contract in RECORD.contracts])
def test_grant__contract_of_ours__is_refused(contract: str) -> None:
    address = next(one.address for one in RECORD.contracts if one.name == contract)

    words = refusal(FakeLog(), role_call("grantRole", to_checksum_address(address)))

    assert f"an account that can act, got {contract} itself" in words


def test_grant__nobodys_address__is_refused() -> None:
    assert "the zero address" in refusal(FakeLog(), role_call("grantRole", NOBODY))


def test_grant__two_in_one_proposal__is_refused() -> None:
    words = refusal(FakeLog(), role_call("grantRole", STRANGER), role_call("revokeRole", FIRST))

    assert "a fact that no other call sets, got GroupMessages administrators" in words


# ------------------------------------------------------------------ payload bounds


@pytest.mark.parametrize(("minimum", "maximum"), [(0, 1), (100, 100), (0, PAYLOAD_SIZE_CAP)])
def test_set_bounds__within_the_cap__is_one_fact(minimum: int, maximum: int) -> None:
    found = change(FakeLog(), call("setPayloadBounds", minimum, maximum))

    assert found.difference == (
        f"GroupMessages payload bounds: 1 to 100 bytes -> {minimum} to {maximum} bytes",
    )


@pytest.mark.parametrize(
    ("minimum", "maximum", "words"),
    [
        (0, 0, "greatest payload: expected 1 to 1048576 bytes, got 0"),
        (0, PAYLOAD_SIZE_CAP + 1, "greatest payload: expected 1 to 1048576 bytes, got 1048577"),
        (0, 2**32 - 1, "greatest payload"),
        (101, 100, "least payload: expected at most the greatest, 100 bytes, got 101"),
        (1, 100, "one that changes something"),
    ],
)
def test_set_bounds__that_the_contract_refuses_or_has__is_refused(
    minimum: int, maximum: int, words: str
) -> None:
    assert words in refusal(FakeLog(), call("setPayloadBounds", minimum, maximum))


# ------------------------------------------------------------------ upgrades


def upgrade(implementation: str = NEW, data: bytes = b"") -> Call:
    return call("upgradeToAndCall", implementation, data)


def test_upgrade__to_this_packages_code__names_the_code_that_runs() -> None:
    found = change(FakeLog(), upgrade())

    assert found.difference == (f"GroupMessages implementation: {OLD} (no known release) -> {NEW}",)
    assert found.after["GroupMessages sequence"] == to_checksum_address(SEQUENCE)


def test_upgrade__from_a_past_release__names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    note_running(monkeypatch, FakeLog().codes[CURRENT])

    (line,) = change(FakeLog(), upgrade()).difference

    assert line.startswith(f"GroupMessages implementation: {OLD} (release 0.0.1) -> ")


def test_upgrade__stored_values_would_mean_something_else__is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moved = {"erc7201:gone": (StorageMember("paused", 0, 0, 1, "bool"),)}
    note_running(monkeypatch, FakeLog().codes[CURRENT], storage=moved)

    words = refusal(FakeLog(), upgrade())

    assert words.startswith("storage of GroupMessages: expected values that keep their meaning")


def test_upgrade__with_a_call_of_the_new_code__is_refused() -> None:
    words = refusal(FakeLog(), upgrade(data=b"\x01"))

    assert words == "call of the new implementation: expected none, got 1 bytes"


def test_upgrade__to_other_code__is_refused() -> None:
    log = FakeLog()
    log.codes[PROPOSED] = log.codes[PROPOSED][:-1] + b"\x00"

    assert f"code at {NEW}: expected this package's GroupMessages" in refusal(log, upgrade())


def test_upgrade__to_an_address_without_code__is_refused() -> None:
    assert "got no code" in refusal(FakeLog(), upgrade(STRANGER))


def test_upgrade__to_the_siblings_code__is_refused() -> None:
    log = FakeLog()
    log.codes[PROPOSED] = implementation_code("IdentityUpdates", PROPOSED, SEQUENCE)

    assert "expected this package's GroupMessages" in refusal(log, upgrade())


def test_upgrade__to_code_that_anybody_could_initialize__is_refused() -> None:
    assert "expected locked, got not initialized" in refusal(FakeLog(initialized={}), upgrade())


def test_upgrade__to_an_implementation_on_another_sequence__is_refused() -> None:
    log = FakeLog()
    log.codes[PROPOSED] = implementation_code("GroupMessages", PROPOSED, b"\x45" * 20)

    assert "expected this package's GroupMessages" in refusal(log, upgrade())


def test_upgrade__proxy_tells_of_another_sequence_than_the_record__is_refused() -> None:
    log = FakeLog(sequence=b"\x45" * 20)
    log.codes[PROPOSED] = implementation_code("GroupMessages", PROPOSED, log.sequence)

    words = refusal(log, upgrade())

    assert words.startswith(f"GroupMessages sequence: expected {to_checksum_address(SEQUENCE)}")


def test_upgrade__same_code_at_another_address__is_refused() -> None:
    log = FakeLog()
    log.codes[CURRENT] = implementation_code("GroupMessages", CURRENT, SEQUENCE)

    assert "expected another than this package's code" in refusal(log, upgrade())


def test_upgrade__implementation_changed_since_it_was_read__is_another_change() -> None:
    log, elsewhere = FakeLog(), b"\x77" * 20
    shown = change(log, upgrade())
    log.codes[elsewhere] = b"\x60\x00"
    log.running = elsewhere

    assert change(log, upgrade()) != shown
    assert unmet(LOG_EFFECTS, log.state(), shown) == (
        f"GroupMessages implementation: expected {NEW}, "
        f"got {to_checksum_address(elsewhere)} (no known release)",
    )


def test_unmet__upgrade_was_made__is_nothing() -> None:
    log = FakeLog()
    shown = change(log, upgrade())
    log.running = PROPOSED

    assert unmet(LOG_EFFECTS, log.state(), shown) == ()


def note_running(monkeypatch: pytest.MonkeyPatch, code: bytes, **changes: object) -> None:
    """Let the package know the running code as its release 0.0.1."""
    past = replace(
        OWN,
        version="0.0.1",
        code_size=len(code),
        masked_code_hash=artifacts.keccak256(artifacts.masked(code, OWN.immutables)),
        **changes,  # type: ignore[arg-type]
    )
    monkeypatch.setattr(artifacts, "_past_releases", lambda name: (past,))
