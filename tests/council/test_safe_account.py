"""A Safe of every known release is read from the real contracts, or refused."""

from __future__ import annotations

from itertools import pairwise

import pytest
from eth_utils import to_checksum_address

from chainkit.contracts.state import ContractState
from chainkit.council.safe import known_contracts
from chainkit.council.safe.account import (
    FALLBACK_HANDLER_SLOT,
    GUARD_SLOT,
    MODULE_GUARD_SLOT,
    check_multi_send,
    is_safe,
    multi_send_address,
    read_account,
)
from chainkit.errors import ConfigurationError
from chainkit.signatures import keccak256
from localnet.anvil import Anvil
from localnet.safe import deploy_safe_contracts
from support.chains.chain import calldata_of, dev_address
from support.council.safes import COUNTER, REFUSER, SafeChain, SafeOnChain, owners_of

KNOWN = known_contracts()
MODULE_LIST_SLOT = 1
END_OF_LIST = 1


def store(safe: SafeOnChain, slot: int, value: int) -> None:
    """Write one of the Safe's slots, as code that it once delegated to could have."""
    place = ("0x" + safe.address.hex(), f"0x{slot:064x}")
    safe.chain.anvil.request("anvil_setStorageAt", *place, f"0x{value:064x}")


def link_modules(safe: SafeOnChain, *modules: int) -> None:
    """Write the Safe's list of modules, each of which points to the next."""
    for module, following in pairwise(modules):
        entry = keccak256(module.to_bytes(32) + MODULE_LIST_SLOT.to_bytes(32))
        store(safe, int.from_bytes(entry, "big"), following)


def set_code(chain: SafeChain, address: bytes, code: bytes) -> None:
    chain.anvil.request("anvil_setCode", "0x" + address.hex(), "0x" + code.hex())


def safe_of_a_stranger(safe: SafeOnChain) -> bytes:
    return safe.chain.safe(safe.version, 1, 1).address


@pytest.mark.parametrize("singleton", ["Safe", "SafeL2"])
@pytest.mark.parametrize(("count", "threshold"), [(1, 1), (3, 2), (5, 3)])
def test_read__a_safe_of_its_owners_alone__shows_all_of_it(
    safe_chain: SafeChain, version: str, singleton: str, count: int, threshold: int
) -> None:
    safe = safe_chain.safe(version, count, threshold, singleton)

    account = safe.read()

    assert account.address == to_checksum_address(safe.address)
    assert (str(account.proxy), str(account.singleton)) == (
        f"SafeProxy {version}",
        f"{singleton} {version}",
    )
    assert account.version == version
    assert bytes.fromhex(account.singleton_address[2:]) == KNOWN[singleton, version].address
    assert account.owners == tuple(one.address for one in owners_of(count))
    assert (account.threshold, account.nonce) == (threshold, 0)
    assert (account.modules, account.guard, account.module_guard) == ((), None, None)
    assert account.known_handler is KNOWN["CompatibilityFallbackHandler", version]
    assert account.cautions == ()
    assert is_safe(safe_chain.state(), safe.address)


def test_read__at_an_earlier_block__shows_what_was_then(safe: SafeOnChain) -> None:
    before = safe.chain.state()
    safe.act(calldata_of("changeThreshold(uint256)", 3))

    assert safe.read().threshold == 3
    assert read_account(before, safe.address).threshold == 2


def test_read__modules_that_the_safe_enabled__are_cautions(safe: SafeOnChain) -> None:
    modules = [to_checksum_address(bytes(19) + bytes([last])) for last in (0xB1, 0xB2)]
    for module in modules:
        safe.act(calldata_of("enableModule(address)", module))

    account = safe.read()

    assert sorted(account.modules) == modules
    assert sorted(account.cautions) == [f"module {one} acts without any owner" for one in modules]


@pytest.mark.parametrize("count", [19, 20, 21, 40, 41])
def test_read__modules_on_any_number_of_pages__shows_each_once(
    safe: SafeOnChain, count: int
) -> None:
    modules = range(1000, 1000 + count)
    link_modules(safe, END_OF_LIST, *modules, END_OF_LIST)

    assert safe.read().modules == tuple(to_checksum_address(one.to_bytes(20)) for one in modules)


@pytest.mark.parametrize("back_to", [1000, 1010, 1019], ids=["first", "middle", "itself"])
def test_read__modules_in_a_ring__is_refused_and_ends(safe: SafeOnChain, back_to: int) -> None:
    link_modules(safe, END_OF_LIST, *range(1000, 1020), back_to)

    with pytest.raises(ConfigurationError, match="expected a list of modules that ends"):
        safe.read()


def test_read__guard_handler_and_module_guard__are_cautions(safe: SafeOnChain) -> None:
    guard, module_guard, handler = (
        to_checksum_address(bytes(19) + bytes([last])) for last in (0xA1, 0xA2, 0xA3)
    )
    store(safe, GUARD_SLOT, 0xA1)
    store(safe, MODULE_GUARD_SLOT, 0xA2)
    store(safe, FALLBACK_HANDLER_SLOT, 0xA3)

    account = safe.read()

    assert (account.guard, account.module_guard) == (guard, module_guard)
    assert (account.fallback_handler, account.known_handler) == (handler, None)
    assert account.cautions == (
        f"guard {guard} may refuse transactions",
        f"module guard {module_guard} may refuse those of modules",
        f"fallback handler {handler} has no known handler's code",
    )


def test_slots__written_by_the_safes_own_setters__are_those_that_are_read(
    safe_chain: SafeChain, safe: SafeOnChain
) -> None:
    # A guard says that it is one: this answers true to everything.
    guard = bytes(19) + b"\xa4"
    set_code(safe_chain, guard, bytes.fromhex("60015f5260205ff3"))
    safe.act(calldata_of("setGuard(address)", guard))
    safe.act(calldata_of("setFallbackHandler(address)", COUNTER))
    if safe.version != "1.4.1":
        safe.act(calldata_of("setModuleGuard(address)", guard))

    account = safe.read()

    assert account.guard == to_checksum_address(guard)
    assert account.module_guard == (None if safe.version == "1.4.1" else account.guard)
    assert account.fallback_handler == to_checksum_address(COUNTER)


@pytest.mark.parametrize("name", ["SafeProxy", "SafeL2", "MultiSendCallOnly"])
def test_read__fallback_handler_is_a_known_contract_of_another_kind__is_a_caution(
    safe: SafeOnChain, name: str
) -> None:
    # Anybody's Safe answers for this one what its owner wants, also about signatures.
    known = KNOWN[name, safe.version].address or safe_of_a_stranger(safe)
    store(safe, FALLBACK_HANDLER_SLOT, int.from_bytes(known, "big"))

    account = safe.read()

    handler = to_checksum_address(known)
    assert (account.fallback_handler, account.known_handler) == (handler, None)
    assert account.cautions == (f"fallback handler {handler} has no known handler's code",)


def test_read__no_fallback_handler__is_no_caution(safe: SafeOnChain) -> None:
    safe.act(calldata_of("setFallbackHandler(address)", bytes(20)))

    account = safe.read()

    assert (account.fallback_handler, account.known_handler, account.cautions) == (None, None, ())


@pytest.mark.parametrize("threshold", [0, 4])
def test_read__threshold_that_no_owners_meet__is_refused(safe: SafeOnChain, threshold: int) -> None:
    store(safe, 4, threshold)

    with pytest.raises(ConfigurationError, match=f"its 3 owners, got threshold {threshold}"):
        safe.read()


def test_read__proxy_of_one_release_upgraded_to_another__is_of_the_singletons(
    safe_chain: SafeChain,
) -> None:
    safe = safe_chain.safe("1.4.1", 3, 2)
    newer = KNOWN["SafeL2", "1.5.0"].address
    assert newer is not None
    store(safe, 0, int.from_bytes(newer, "big"))

    account = safe.read()

    assert (account.proxy.version, account.version) == ("1.4.1", "1.5.0")


def test_read__proxy_with_one_byte_changed__is_refused_with_its_hash(safe: SafeOnChain) -> None:
    code = bytearray(safe.chain.state().code(safe.address))
    code[-1] ^= 1
    set_code(safe.chain, safe.address, bytes(code))

    for read in (read_account, is_safe):
        with pytest.raises(ConfigurationError) as refused:
            read(safe.chain.state(), safe.address)
        assert refused.value.expected == "a Safe 1.4.1 or 1.5.0"
        found = f"{len(code)} bytes of code, hash 0x{keccak256(bytes(code)).hex()}"
        assert refused.value.got == found


def test_read__proxy_that_runs_other_code__is_refused_with_its_place(safe: SafeOnChain) -> None:
    store(safe, 0, int.from_bytes(COUNTER, "big"))

    with pytest.raises(ConfigurationError, match="a Safe's proxy that runs 17 bytes") as refused:
        safe.read()

    assert str(refused.value).endswith(f"at {to_checksum_address(COUNTER)}")


@pytest.mark.parametrize("name", ["MultiSendCallOnly", "SafeProxy"])
def test_read__proxy_that_runs_a_known_contract_of_another_kind__is_refused(
    safe: SafeOnChain, name: str
) -> None:
    code = {
        "SafeProxy": safe.chain.state().code(safe.address),
        "MultiSendCallOnly": safe.chain.state().code(safe.multi_send),
    }[name]
    set_code(safe.chain, bytes(19) + b"\xa5", code)
    store(safe, 0, 0xA5)

    with pytest.raises(ConfigurationError, match=rf"runs code of {name} {safe.version} at 0x"):
        safe.read()


def test_read__singleton_itself__is_no_safe(safe_chain: SafeChain, version: str) -> None:
    singleton = KNOWN["SafeL2", version].address
    assert singleton is not None

    with pytest.raises(ConfigurationError, match=f"got code of SafeL2 {version}"):
        read_account(safe_chain.state(), singleton)


def test_is_safe__account_with_a_key__is_none(safe_chain: SafeChain) -> None:
    address = bytes.fromhex(dev_address(3)[2:])

    assert not is_safe(safe_chain.state(), address)
    with pytest.raises(
        ConfigurationError, match=r"expected a Safe 1\.4\.1 or 1\.5\.0, got no code"
    ):
        read_account(safe_chain.state(), address)


def test_is_safe__contract_that_is_none__is_refused(safe_chain: SafeChain) -> None:
    with pytest.raises(ConfigurationError, match="7 bytes of code, hash 0x"):
        is_safe(safe_chain.state(), REFUSER)


def test_is_safe__account_that_delegates__is_refused_in_words(safe_chain: SafeChain) -> None:
    account = bytes(19) + b"\xa6"
    set_code(safe_chain, account, bytes.fromhex("ef0100") + COUNTER)

    with pytest.raises(ConfigurationError) as refused:
        is_safe(safe_chain.state(), account)

    delegate = to_checksum_address(COUNTER)
    assert refused.value.got == f"an account that lets {delegate} act for it (EIP-7702)"


def test_multi_send__where_the_release_stands__is_found(
    safe_chain: SafeChain, version: str
) -> None:
    address = multi_send_address(safe_chain.state(), version)

    assert address == KNOWN["MultiSendCallOnly", version].address
    assert check_multi_send(safe_chain.state(), address) is KNOWN["MultiSendCallOnly", version]


def test_multi_send__unknown_release__is_refused(safe_chain: SafeChain) -> None:
    with pytest.raises(ConfigurationError, match=r"expected 1\.4\.1 or 1\.5\.0, got 1\.3\.0"):
        multi_send_address(safe_chain.state(), "1.3.0")


@pytest.mark.parametrize("address", [COUNTER, b"\xdd" * 20], ids=["other code", "no code"])
def test_multi_send__other_code_or_none__is_refused(safe_chain: SafeChain, address: bytes) -> None:
    with pytest.raises(ConfigurationError, match=r"expected MultiSendCallOnly 1\.4\.1 or"):
        check_multi_send(safe_chain.state(), address)


def test_multi_send__known_contract_of_another_kind__is_refused(
    safe_chain: SafeChain, version: str
) -> None:
    singleton = KNOWN["SafeL2", version].address
    assert singleton is not None

    with pytest.raises(ConfigurationError, match=f"got code of SafeL2 {version}"):
        check_multi_send(safe_chain.state(), singleton)


def test_multi_send__of_a_chain_that_has_none__is_refused() -> None:
    with Anvil() as anvil:
        state = ContractState(anvil.endpoint, anvil.endpoint.head().reference)
        with pytest.raises(ConfigurationError, match="got no code"):
            multi_send_address(state, "1.4.1")


def test_deploy__contracts_that_stand_already__is_no_success(
    safe_chain: SafeChain, version: str
) -> None:
    with pytest.raises(RuntimeError, match="expected success"):
        deploy_safe_contracts(safe_chain.anvil, version)
