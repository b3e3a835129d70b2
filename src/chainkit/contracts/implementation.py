"""Whether the contract at an address is this package's implementation of a log."""

from __future__ import annotations

from eth_utils.address import to_checksum_address

from chainkit.contracts.artifacts import runtime_code
from chainkit.contracts.comparison import code_words
from chainkit.contracts.state import INITIALIZABLE_SLOT, LOCKED, ContractState
from chainkit.errors import ConfigurationError


def implementation_code(name: str, address: bytes, sequence: bytes) -> bytes:
    """Return the runtime code of this package's implementation at an address.

    ``sequence`` is the address of the deployment's OriginatorSequence, 20 bytes.
    """
    return runtime_code(name, {"__self": address, "originatorSequence": sequence})


def check_implementation(state: ContractState, name: str, address: bytes, sequence: bytes) -> None:
    """Raise ConfigurationError unless this package's creation code made the contract there."""
    subject, found = f"code at {to_checksum_address(address)}", state.code(address)
    expected = implementation_code(name, address, sequence)
    if found != expected:
        words = f"this package's {name}, {code_words(expected)}"
        raise ConfigurationError(subject, words, code_words(found), f"block {state.block}")
    # The same runtime code can be created without the constructor, which locks the implementation.
    word = state.word(address, INITIALIZABLE_SLOT)
    if word != LOCKED:
        words = initialization_words(word)
        raise ConfigurationError(f"initialization of {subject}", "locked", words)


def initialization_words(word: int) -> str:
    """Describe the value of the slot of OpenZeppelin's Initializable."""
    if word > LOCKED:
        return "being initialized"
    return {0: "not initialized", LOCKED: "locked"}.get(word, f"initialized, version {word}")
