"""A private chain on which every transaction is alone in its block, and the gas of each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Self

from eth_abi.abi import encode
from eth_typing import HexAddress, HexStr
from web3.types import Nonce
from web3.utils.address import get_create_address

from chainkit.errors import TransactionFailed
from chainkit.signatures import keccak256
from localnet.anvil import Anvil

GAS_LIMIT: Final = 1_000_000_000
"""For a block and for each transaction: far above any real chain's, so that all can be measured."""

_INTRINSIC_GAS: Final = 21_000


class MeasuringChain:
    """An anvil under one hardfork; use as a context manager."""

    def __init__(self, hardfork: str) -> None:
        """Start anvil."""
        self.hardfork = hardfork
        self._anvil = Anvil(
            *("--hardfork", hardfork, "--gas-limit", str(GAS_LIMIT)),
            *("--no-mining", "--base-fee", "0"),
            caps_gas=False,
        )
        self.accounts: list[str] = self._anvil.request("eth_accounts")

    def __enter__(self) -> Self:
        """Return this object: anvil runs already."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self._anvil.stop()

    def create(self, bytecode: bytes, types: tuple[str, ...] = (), *arguments: Any) -> str:
        """Deploy a contract; return its address."""
        data = bytecode + encode(types, arguments)
        return str(self._receipt(self.submit(None, data))["contractAddress"])

    def addresses_to_come(self, first: int, count: int) -> list[str]:
        """Return the addresses of the deployments after the next ``first`` ones."""
        deployer = HexAddress(HexStr(self.accounts[0]))
        nonce = int(self._anvil.request("eth_getTransactionCount", deployer, "latest"), 16)
        numbers = range(nonce + first, nonce + first + count)
        return [get_create_address(deployer, Nonce(number)) for number in numbers]

    def gas_of(self, to: str, data: bytes, sender: int = 0) -> int:
        """Send a transaction; return the receipt's ``gasUsed``, refunds deducted.

        Raises TransactionFailed if it reverted.
        """
        return int(self._receipt(self.submit(to, data, sender))["gasUsed"], 16)

    def submit(self, to: str | None, data: bytes, sender: int = 0, gas: int = GAS_LIMIT) -> str:
        """Put a transaction into the pool, without mining it; return its hash."""
        transaction = {"from": self.accounts[sender], "data": f"0x{data.hex()}", "gas": hex(gas)}
        return str(
            self._anvil.request("eth_sendTransaction", transaction | ({"to": to} if to else {}))
        )

    def mine(self) -> None:
        """Put what is in the pool into a block."""
        self._anvil.request("anvil_mine", "0x1")

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Take back at the end of the block what happened in it."""
        snapshot = self._anvil.request("evm_snapshot")
        yield
        self._anvil.request("evm_revert", snapshot)

    def _receipt(self, transaction: str) -> dict[str, Any]:
        self.mine()
        receipt: dict[str, Any] | None = self._anvil.request(
            "eth_getTransactionReceipt", transaction
        )
        if receipt is None or receipt["status"] != "0x1":
            state = "none" if receipt is None else "a reverted transaction"
            raise TransactionFailed(f"transaction {transaction}", "success", state, self.hardfork)
        return receipt


def call_data(signature: str, *arguments: Any) -> bytes:
    """Encode a call, the function given as ``name(type,…)``."""
    inside = signature[signature.index("(") + 1 : -1]
    types = inside.split(",") if inside else []
    return keccak256(signature.encode())[:4] + encode(types, arguments)


def calldata_gas(data: bytes) -> int:
    """Return the gas of a transaction's calldata without the floor: 4 or 16 gas a byte."""
    return 4 * _tokens(data)


def floor_gas(data: bytes) -> int:
    """Return the least that a transaction with this calldata costs under EIP-7623."""
    return _INTRINSIC_GAS + 10 * _tokens(data)


def _tokens(data: bytes) -> int:
    zeros = data.count(0)
    return zeros + 4 * (len(data) - zeros)
