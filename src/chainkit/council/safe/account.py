"""A Safe at one block: its code, its owners, and everything else that may act or interfere.

An owner or a module can be hidden: a Safe's first transaction may run any code on its storage, and
so keep an owner out of the lists that the contract returns. A council creates its own Safe, or
checks the transaction that created the Safe.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from eth_utils.address import to_checksum_address

from chainkit.contracts.state import ContractState
from chainkit.council.safe.releases import (
    HANDLERS,
    MULTI_SEND,
    PROXY,
    SINGLETONS,
    KnownContract,
    identify,
    known_contracts,
    known_versions,
)
from chainkit.council.safe.transaction import SafeTransaction
from chainkit.errors import ConfigurationError
from chainkit.ethereum.delegation import delegate_of
from chainkit.signatures import keccak256
from chainkit.types import ADDRESS_LENGTH

SINGLETON_SLOT: Final = 0
"""The slot where a proxy keeps the address of its code."""

_LIST_END: Final = "0x0000000000000000000000000000000000000001"
_MODULES_PER_PAGE: Final = 20


def _named_slot(name: str) -> int:
    return int.from_bytes(keccak256(name.encode()), "big")


GUARD_SLOT: Final = _named_slot("guard_manager.guard.address")
MODULE_GUARD_SLOT: Final = _named_slot("module_manager.module_guard.address")
FALLBACK_HANDLER_SLOT: Final = _named_slot("fallback_manager.handler.address")


@dataclass(frozen=True, slots=True)
class SafeAccount:
    """A Safe of known code at one block; addresses are checksummed."""

    address: str
    proxy: KnownContract
    singleton: KnownContract
    """The address of the Safe's code: the release of this code is the Safe's."""
    singleton_address: str
    owners: tuple[str, ...]
    """In the order of the Safe's list."""
    threshold: int
    """Owners that must sign: from 1 to all."""
    nonce: int
    """The nonce of the next transaction."""
    modules: tuple[str, ...]
    """Each module acts for the Safe without any owner's signature."""
    guard: str | None
    """The contract that is asked before and after each transaction, and may refuse it."""
    module_guard: str | None
    """Likewise for the modules' transactions; 1.4.1 knows none."""
    fallback_handler: str | None
    """The contract that answers calls which the Safe itself does not know, such as about
    signatures."""
    known_handler: KnownContract | None
    """The fallback handler's name, None if its code is not known."""
    contract_owners: tuple[str, ...]
    """The contracts among ``owners``, such as another Safe: no key signs for them."""

    @property
    def version(self) -> str:
        """Release of the Safe, such as 1.4.1."""
        return self.singleton.version

    @property
    def cautions(self) -> tuple[str, ...]:
        """Other parts than the owners that may act, a line each; empty where there are none."""
        found = [f"module {module} acts without any owner" for module in self.modules]
        if self.guard is not None:
            found.append(f"guard {self.guard} may refuse transactions")
        if self.module_guard is not None:
            found.append(f"module guard {self.module_guard} may refuse those of modules")
        if self.fallback_handler is not None and self.known_handler is None:
            found.append(f"fallback handler {self.fallback_handler} has no known handler's code")
        return tuple(found)


def is_safe(state: ContractState, address: bytes) -> bool:
    """Return whether an account is a Safe of known code; an account without code acts by its key.

    Raises ConfigurationError, which names what was found, for all else: other code, a Safe of an
    unknown release, or an account that lets other code act for it (EIP-7702).
    """
    if not state.code(address):
        return False
    _identify_account(state, address)
    return True


def read_account(state: ContractState, address: bytes) -> SafeAccount:
    """Read all settings of a Safe at the block.

    Raises ConfigurationError where the account is no Safe of known code, its threshold asks for
    more owners than there are, or for none, or its list of modules has a loop.
    """
    proxy, singleton, singleton_address = _identify_account(state, address)
    owners: tuple[str, ...] = tuple(
        map(to_checksum_address, state.ask("Safe", address, "getOwners"))
    )
    threshold = int(state.ask("Safe", address, "getThreshold"))
    if not 1 <= threshold <= len(owners):
        expected = f"a threshold from 1 to its {len(owners)} owners"
        raise ConfigurationError(_subject(address), expected, f"threshold {threshold}")
    handler = _address_in(state, address, FALLBACK_HANDLER_SLOT)
    return SafeAccount(
        address=to_checksum_address(address),
        proxy=proxy,
        singleton=singleton,
        singleton_address=to_checksum_address(singleton_address),
        owners=owners,
        threshold=threshold,
        nonce=int(state.ask("Safe", address, "nonce")),
        modules=_modules(state, address),
        guard=_checksummed(_address_in(state, address, GUARD_SLOT)),
        module_guard=_checksummed(_address_in(state, address, MODULE_GUARD_SLOT)),
        fallback_handler=_checksummed(handler),
        known_handler=None if handler is None else _known_handler(state, handler),
        contract_owners=tuple(each for each in owners if state.is_contract(_bytes(each))),
    )


def hash_by_contract(state: ContractState, transaction: SafeTransaction) -> bytes:
    """Return the hash of a transaction as the Safe itself computes it, for comparison with ours."""
    arguments = transaction.arguments
    answer: bytes = state.ask("Safe", transaction.safe, "getTransactionHash", *arguments)
    return answer


def multi_send_address(state: ContractState, version: str) -> bytes:
    """Return the address of a release's MultiSendCallOnly, after a check of its code.

    Raises ConfigurationError for an unknown release, or where there is other code or none.
    """
    known = known_contracts().get((MULTI_SEND, version))
    if known is None or known.address is None:
        raise ConfigurationError("release of the Safe", " or ".join(known_versions()), version)
    check_multi_send(state, known.address)
    return known.address


def check_multi_send(state: ContractState, address: bytes) -> KnownContract:
    """Return the release of the MultiSendCallOnly at an address.

    Raises ConfigurationError for other code: a Safe that delegates to other code gives it full
    control.
    """
    code = state.code(address)
    known = identify(code)
    if known is None or known.name != MULTI_SEND:
        expected = f"{MULTI_SEND} {' or '.join(known_versions())}"
        raise ConfigurationError(_subject(address, "contract"), expected, _code_words(code))
    return known


def _identify_account(
    state: ContractState, address: bytes
) -> tuple[KnownContract, KnownContract, bytes]:
    """Return proxy, singleton, and the singleton's address. Raises ConfigurationError."""
    expected = f"a Safe {' or '.join(known_versions())}"
    code = state.code(address)
    proxy = identify(code)
    if proxy is None or proxy.name != PROXY:
        raise ConfigurationError(_subject(address), expected, _code_words(code))
    singleton_address = state.word(address, SINGLETON_SLOT).to_bytes(32, "big")[-ADDRESS_LENGTH:]
    code = state.code(singleton_address)
    singleton = identify(code)
    if singleton is None or singleton.name not in SINGLETONS:
        place = to_checksum_address(singleton_address)
        got = f"a Safe's proxy that runs {_code_words(code)} at {place}"
        raise ConfigurationError(_subject(address), expected, got)
    return proxy, singleton, singleton_address


def _modules(state: ContractState, address: bytes) -> tuple[str, ...]:
    """Return the modules, page by page."""
    found: dict[str, None] = {}
    start = _LIST_END
    while True:
        arguments = (start, _MODULES_PER_PAGE)
        page, following = state.ask("Safe", address, "getModulesPaginated", *arguments)
        modules = [to_checksum_address(module) for module in page]
        following = to_checksum_address(following)
        is_last = following == _LIST_END
        # Storage that was tampered with can make the list a ring.
        if any(module in found for module in modules) or not (is_last or modules):
            got = f"one that leads back to {following}"
            raise ConfigurationError(_subject(address), "a list of modules that ends", got)
        found |= dict.fromkeys(modules)
        if is_last:
            return tuple(found)
        start = following


def _address_in(state: ContractState, account: bytes, slot: int) -> bytes | None:
    """Return the 20-byte address in a slot, None if it is zero."""
    found = state.word(account, slot).to_bytes(32, "big")[-ADDRESS_LENGTH:]
    return found if any(found) else None


def _known_handler(state: ContractState, handler: bytes) -> KnownContract | None:
    known = identify(state.code(handler))
    # Another Safe has known code as well, but answers as its owners want.
    return known if known and known.name in HANDLERS else None


def _checksummed(address: bytes | None) -> str | None:
    return None if address is None else to_checksum_address(address)


def _bytes(address: str) -> bytes:
    return bytes.fromhex(address[2:])


def _subject(address: bytes, kind: str = "account") -> str:
    return f"{kind} {to_checksum_address(address)}"


def _code_words(code: bytes) -> str:
    """Describe code, by its name if it is known, else by its size and hash."""
    if not code:
        return "no code"
    if known := identify(code):
        return f"code of {known}"
    if (delegate := delegate_of(code)) is not None:
        return f"an account that lets {to_checksum_address(delegate)} act for it (EIP-7702)"
    return f"{len(code)} bytes of code, hash 0x{keccak256(code).hex()}"
