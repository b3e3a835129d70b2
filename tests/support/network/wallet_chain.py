"""A chain with contract wallets, and signatures that they accept."""

from __future__ import annotations

import time
from functools import cache

from eth_abi.abi import encode

from chainkit.identity.wallets import WalletSignature
from chainkit.signatures import SigningKey, keccak256
from chainkit.text.hexadecimal import hex0x, parse_bytes
from chainkit_node.inboxes.contract_wallets import ContractWallets, _validator
from localnet.anvil import Anvil
from support.chains.chain import dev_address
from tools.solidity import compiled_contracts

CHAIN_ID = 31337
DIGEST = keccak256(b"what was signed")
OWNER, OTHER = SigningKey(b"\x01" * 32), SigningKey(b"\x02" * 32)
SUFFIX = bytes.fromhex("6492" * 16)


def address_of(key: SigningKey) -> bytes:
    return keccak256(key.public_key[1:])[-20:]


def signed(key: SigningKey, digest: bytes = DIGEST) -> bytes:
    signature = key.sign(digest)
    return signature[:64] + bytes([27 + signature[64]])


def wrapped(factory: bytes, preparation: bytes, inner: bytes) -> bytes:
    """A signature in the form of ERC-6492."""
    return encode(["address", "bytes", "bytes"], [factory, preparation, inner]) + SUFFIX


@cache
def creation_code(name: str) -> bytes:
    return compiled_contracts("tests/solidity")[name].creation_code


class WalletChain:
    """An anvil that mines each transaction at once."""

    def __init__(self, anvil: Anvil) -> None:
        self.anvil = anvil
        self.endpoint = anvil.endpoint
        self.factory = self.deploy("OwnedWalletFactory")

    def send(self, to: bytes | None, data: bytes) -> bytes | None:
        """Return the address of what was deployed, if anything was."""
        message = {"from": dev_address(0), "data": hex0x(data), "gas": hex(5_000_000)}
        receiver = {"to": hex0x(to)} if to is not None else {}
        hash_ = self.anvil.request("eth_sendTransaction", message | receiver)
        while (receipt := self.endpoint.receipt(parse_bytes(hash_))) is None:
            time.sleep(0.01)
        assert receipt["status"] == "0x1"
        return parse_bytes(receipt["contractAddress"]) if to is None else None

    def deploy(self, name: str, types: tuple[str, ...] = (), *arguments: object) -> bytes:
        address = self.send(None, creation_code(name) + encode(types, arguments))
        assert address is not None
        return address

    def wallet(self, owner: SigningKey = OWNER) -> bytes:
        return self.deploy("OwnedWallet", ("address",), address_of(owner))

    def counterfactual(self, owner: SigningKey) -> bytes:
        """The address of a wallet that the factory has not deployed yet."""
        data = creation_code("OwnedWallet") + encode(["address"], [address_of(owner)])
        parts = b"\xff" + self.factory + bytes(32) + keccak256(data)
        return keccak256(parts)[-20:]

    def is_valid(
        self, wallet: bytes, signature: bytes, block: int | None = None, at_ns: int | None = None
    ) -> bool:
        """Ask at a block, the newest one if none is given, for an update of the next day."""
        number = self.endpoint.head().number if block is None else block
        wallets = ContractWallets({CHAIN_ID: [self.endpoint]})
        time_ns = time.time_ns() + 86_400 * 10**9 if at_ns is None else at_ns
        question = WalletSignature(CHAIN_ID, wallet, number, DIGEST, signature)
        return wallets.at(time_ns).is_valid(question)

    def answer(self, wallet: bytes, signature: bytes, gas: int) -> bytes:
        """The validator's own answer to a call with so much gas."""
        data = _validator() + encode(["address", "bytes32", "bytes"], [wallet, DIGEST, signature])
        head = self.endpoint.head().reference
        return self.endpoint.call_message({"data": hex0x(data), "gas": hex(gas)}, head)
