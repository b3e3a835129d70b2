"""The chain that is indexed: anvil with the real contracts, in blocks of a few messages each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

from benchmarks.index.job import Stretch
from benchmarks.index.payloads import PAYLOAD_BYTES, message_calls
from chainkit.contracts.deployment import DeploymentRecord, read_deployment_record
from chainkit.errors import InconsistentAnswer
from chainkit.text.hexadecimal import parse_bytes
from localnet.accounts import development_account
from localnet.anvil import Anvil
from localnet.deployment import deploy

_PRUNED: Final = ("--prune-history", "500")
"""How many states a long chain keeps: on disk, each block's takes some 200 kB."""

_OPTIONS: Final = ("--gas-limit", "300000000", "--base-fee", "0", "--gas-price", "0")
_GAS: Final = hex(200_000)
_SENDERS: Final = 5
_DIFFERENT_MESSAGES: Final = 1_000
"""They repeat after that, under other sequence ids and in other transactions."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A chain to be mined."""

    blocks: int
    events_per_block: int

    def figures(self) -> dict[str, int]:
        """Return it as a report names it."""
        return asdict(self) | {"payload_bytes": PAYLOAD_BYTES}


USUAL: Final = Shape(blocks=2_500, events_per_block=20)
LONG: Final = Shape(blocks=25_000, events_per_block=40)


class BenchmarkChain:
    """A chain that mines when it is told to; ``record_path`` is where its deployment stands."""

    def __init__(self, anvil: Anvil, record_path: Path) -> None:
        """Deploy the contracts to a fresh anvil."""
        deploy(anvil.url, record_path)
        self.anvil = anvil
        self.url = anvil.url
        self.record_path = record_path
        self.record: DeploymentRecord = read_deployment_record(record_path)
        anvil.request("evm_setAutomine", False)
        self._senders = [development_account(number).address for number in range(_SENDERS)]
        self._calls = cycle(message_calls(_DIFFERENT_MESSAGES))

    def mine(self, blocks: int, events: int, mined: Callable[[int], None]) -> Stretch:
        """Mine so many blocks of so many events; ``mined`` is told of each."""
        first = self.head() + 1
        for _ in range(blocks):
            self.post(events)
            self.mine_block()
            mined(1)
        return self._checked(Stretch(first, self.head(), blocks * events))

    def post(self, events: int) -> list[bytes]:
        """Send so many messages, which wait for a block; return their transactions' hashes."""
        calls: list[tuple[str, Sequence[Any]]] = [
            ("eth_sendTransaction", [transaction])
            for transaction in islice(self._transactions(), events)
        ]
        return [parse_bytes(answer) for answer in self.anvil.endpoint.batch(calls)]

    def mine_block(self) -> None:
        """Mine what waits into one block."""
        self.anvil.request("evm_mine")

    def head(self) -> int:
        """Return the height of the newest block."""
        return self.anvil.endpoint.head().number

    def reorg(self, depth: int) -> bytes:
        """Mine the last blocks' messages again, in another order; return the new head's hash."""
        head = self.head()
        listed = [
            [raw, offset]
            for offset, number in enumerate(range(head - depth + 1, head + 1))
            for raw in self._regrouped(number)
        ]
        self.anvil.request("anvil_reorg", depth, listed)
        return self.anvil.endpoint.head().hash

    def _transactions(self) -> Iterator[dict[str, str]]:
        to = "0x" + self.record.group_messages.address.hex()
        for sender, call in zip(cycle(self._senders), self._calls, strict=False):
            yield {"from": sender, "to": to, "gas": _GAS, "data": "0x" + call.hex()}

    def _regrouped(self, number: int) -> list[str]:
        """Return a block's transactions by sender: nonces keep their order, most others do not."""
        block = self.anvil.request("eth_getBlockByNumber", hex(number), True)
        by_sender = sorted(block["transactions"], key=lambda each: each["from"])
        calls = [("eth_getRawTransactionByHash", [each["hash"]]) for each in by_sender]
        return self.anvil.endpoint.batch(calls)

    def _checked(self, stretch: Stretch) -> Stretch:
        blocks = stretch.last_block - stretch.first_block + 1
        expected = stretch.events // blocks
        for number in (stretch.first_block, stretch.last_block):
            block = self.anvil.request("eth_getBlockByNumber", hex(number), False)
            if (found := len(block["transactions"])) != expected:
                raise InconsistentAnswer(f"block {number}", f"{expected} transactions", found)
        return stretch


@contextmanager
def benchmark_chain(folder: Path, keeps_old_states: bool = True) -> Iterator[BenchmarkChain]:
    """Start anvil with the contracts; the folder takes the deployment record and old states."""
    states = ("--cache-path", str(folder / "states")) if keeps_old_states else _PRUNED
    with Anvil(*_OPTIONS, *states) as anvil:
        yield BenchmarkChain(anvil, folder / "deployment.json")
