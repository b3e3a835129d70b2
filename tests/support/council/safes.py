"""Owners of a Safe and what they sign, and Safes of every known release on a real anvil."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from hypothesis import strategies as st

from chainkit.chain import Endpoint
from chainkit.contracts.interface import shipped_interface
from chainkit.contracts.state import ContractState
from chainkit.council.safe import (
    InnerCall,
    Operation,
    SafeTransaction,
    known_contracts,
    known_versions,
)
from chainkit.council.safe.account import SafeAccount, read_account
from chainkit.errors import RefusedRequest
from chainkit.signatures import SECP256K1_ORDER, SigningKey, address_of, keccak256
from chainkit.text.hexadecimal import hex0x
from chainkit.types import Receipt
from localnet.anvil import Anvil
from localnet.safe import create_safe, deploy_safe_contracts, send_unsigned
from support.chains.chain import dev_address

CHAIN_ID = 31337
EXECUTOR = dev_address(8)
"""Sends what the owners signed, and is no owner."""

addresses = st.binary(min_size=20, max_size=20)
targets = addresses.filter(any)
words = st.integers(0, 2**256 - 1)
calls = st.builds(InnerCall, targets, st.binary(max_size=200))
transactions = st.builds(
    SafeTransaction,
    chain_id=st.integers(0, 2**64),
    safe=addresses,
    to=addresses,
    value=words,
    data=st.binary(max_size=300),
    operation=st.sampled_from(Operation),
    safe_tx_gas=words,
    base_gas=words,
    gas_price=words,
    gas_token=addresses,
    refund_receiver=addresses,
    nonce=words,
)


@dataclass(frozen=True)
class Owner:
    """Somebody with a key, by a number from 1."""

    key: SigningKey = field(repr=False)

    @property
    def address(self) -> str:
        return address_of(self.key.public_key)

    def sign(self, hash_: bytes) -> bytes:
        """As for EIP-712: V is 27 or 28."""
        return with_v(self.key.sign(hash_), 27)

    def eth_sign(self, hash_: bytes) -> bytes:
        """As a wallet that knows only messages: V is 31 or 32."""
        prefixed = keccak256(b"\x19Ethereum Signed Message:\n32" + hash_)
        return with_v(self.key.sign(prefixed), 31)


def owner(number: int) -> Owner:
    return Owner(SigningKey(keccak256(b"owner %d of a Safe" % number)))


def owners_of(count: int) -> tuple[Owner, ...]:
    return tuple(owner(number) for number in range(1, count + 1))


def with_v(signature: bytes, first: int) -> bytes:
    """Return a signature whose V is 0 or 1 with the V that begins at ``first``."""
    return signature[:64] + bytes([signature[64] + first])


def second_form(signature: bytes) -> bytes:
    """Return the other signature of the same key over the same hash: a high S, V flipped."""
    s = SECP256K1_ORDER - int.from_bytes(signature[32:64], "big")
    flipped = {27: 28, 28: 27, 31: 32, 32: 31}[signature[64]]
    return signature[:32] + s.to_bytes(32, "big") + bytes([flipped])


def joined(signers: Sequence[tuple[str, bytes]]) -> bytes:
    """Put signatures one behind the other by ascending address, without any check."""
    return b"".join(signature for _, signature in sorted(signers, key=lambda one: int(one[0], 16)))


def unpack(signatures: bytes) -> tuple[bytes, ...]:
    """Return the concatenated signatures one by one."""
    return tuple(signatures[start : start + 65] for start in range(0, len(signatures), 65))


# Counts its calls in slot 0; keeps the sender in slot 1 and the first word of calldata in slot 2.
COUNTER = bytes(19) + b"\xc0"
_COUNTER_CODE = "0x5f546001015f55336001555f3560025500"
# Reverts with the calldata that it was sent.
REFUSER = bytes(19) + b"\xc1"
_REFUSER_CODE = "0x365f5f37365ffd"


@dataclass(frozen=True)
class SafeChain:
    """An anvil with the contracts of every known release, and something that Safes can call."""

    anvil: Anvil

    @property
    def endpoint(self) -> Endpoint:
        return self.anvil.endpoint

    def state(self) -> ContractState:
        return ContractState(self.endpoint, self.endpoint.head().reference)

    def safe(
        self, version: str, count: int, threshold: int, singleton: str = "SafeL2"
    ) -> SafeOnChain:
        """Create a fresh Safe of the first owners."""
        owners = owners_of(count)
        addresses = [one.address for one in owners]
        # No two of one chain may be created with the same salt.
        salt = self.endpoint.head().number
        created = create_safe(
            self.anvil, version, addresses, threshold, singleton=singleton, salt=salt
        )
        return SafeOnChain(self, created, version, owners)

    def counted(self) -> tuple[int, str, bytes]:
        """Return what the counter holds: calls, last sender, first word of the last calldata."""
        calls, sender, word = (self.state().word(COUNTER, slot) for slot in range(3))
        return calls, f"0x{sender:040x}", word.to_bytes(32, "big")


@dataclass(frozen=True)
class SafeOnChain:
    """A Safe, and the keys of its owners."""

    chain: SafeChain
    address: bytes
    version: str
    owners: tuple[Owner, ...]

    @property
    def multi_send(self) -> bytes:
        address = known_contracts()["MultiSendCallOnly", self.version].address
        assert address is not None
        return address

    def read(self) -> SafeAccount:
        return read_account(self.chain.state(), self.address)

    def transaction(self, *inner: InnerCall) -> SafeTransaction:
        return SafeTransaction.of_calls(
            chain_id=CHAIN_ID,
            safe=self.address,
            nonce=self.read().nonce,
            calls=inner,
            multi_send=self.multi_send,
        )

    def refusal(self, calldata: bytes, sender: str = EXECUTOR) -> str | None:
        """Return in its own words why the Safe would refuse a call, None where it would not."""
        state = self.chain.state()
        try:
            state.endpoint.call(self.address, calldata, state.block, sender)
        except RefusedRequest as error:
            return shipped_interface("Safe").revert_words(error)
        return None

    def send(self, calldata: bytes) -> Receipt:
        """Send the transaction as the executor, whether it succeeds or not."""
        return send_unsigned(self.chain.anvil, EXECUTOR, self.address, calldata)

    def act(self, calldata: bytes) -> None:
        """Make the Safe call itself, as its owners could: to enable a module, for instance."""
        anvil, address = self.chain.anvil, hex0x(self.address)
        anvil.request("anvil_impersonateAccount", address)
        anvil.request("anvil_setBalance", address, hex(10**18))
        assert send_unsigned(anvil, address, self.address, calldata).succeeded


@contextmanager
def safe_chain() -> Iterator[SafeChain]:
    """Start an anvil with all that Safes need."""
    with Anvil() as anvil:
        for version in known_versions():
            deploy_safe_contracts(anvil, version)
        anvil.request("anvil_setCode", hex0x(COUNTER), _COUNTER_CODE)
        anvil.request("anvil_setCode", hex0x(REFUSER), _REFUSER_CODE)
        yield SafeChain(anvil)
