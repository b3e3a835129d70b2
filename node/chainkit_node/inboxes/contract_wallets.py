"""Asks chains for the signatures of contract wallets (ERC-1271, ERC-6492), at the named block.

One ``eth_call`` is one question: it carries the code of ``node/solidity/SignatureValidator.sol``,
whose constructor asks the wallet and returns the answer. Nothing is deployed for it.

An update's own time decides what its block may be, so that all nodes answer the same whenever they
ask: a block that is later than the update, or was not there yet, makes the signature invalid. Two
chains count time for themselves, so a block may seem a little later than it is.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Final

from eth_abi.abi import encode

from chainkit.chain import Endpoint
from chainkit.documents.package_data import read_package_json
from chainkit.errors import ChainError, WalletUnanswered, WrongChain
from chainkit.identity.wallets import Wallets, WalletSignature
from chainkit.text.hexadecimal import hex0x
from chainkit.types import NANOSECONDS_PER_SECOND, BlockHeader

LONGEST_SIGNATURE: Final = 2**15
"""Bytes. With the validator's code it has to fit into what EIP-3860 allows: 49,152."""

EARLIEST_TIMESTAMP: Final = 1_532_476_800
"""Seconds since 1970: the day that ERC-1271 was proposed. The machine of older blocks lacks
instructions that the question needs, and would leave an update undecided for ever."""

MOST_SECONDS_AHEAD: Final = 15
"""By how much a block's time may be later than that of the update, which another chain counts."""

_HIGHEST_BLOCK: Final = 2**63 - 1
_GAS: Final = 25_000_000
"""The validator spends up to three times 6 million on foreign code."""
_MOST_SECONDS: Final = 8.0
"""An update's questions begin within this time; the indexer's thread waits for them."""
_REMEMBERED: Final = 500
_VALID, _INVALID, _TOO_LITTLE_GAS = b"\x01", b"\x00", b"\x02"


class ContractWallets:
    """The chains that are asked, each by one endpoint or several. For one thread at a time."""

    def __init__(
        self,
        endpoints: Mapping[int, Sequence[Endpoint]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take endpoints by chain id (EIP-155), in order of preference; ``clock`` is in seconds.

        Nothing is sent yet. An endpoint should try once and give up within seconds.
        """
        self._endpoints = {chain_id: list(some) for chain_id, some in endpoints.items()}
        self._clock = clock
        self._checked: set[Endpoint] = set()
        self._answers: OrderedDict[tuple[WalletSignature, bytes], bool] = OrderedDict()

    def at(self, originator_ns: int) -> Wallets:
        """Return the wallets for an update that was published at a time, in ns since 1970.

        ``is_valid`` raises WalletUnanswered where no endpoint gave an answer, or the update's time
        for questions is over: answers are remembered for the next attempt.
        """
        deadline = self._clock() + _MOST_SECONDS
        return Wallets(self._endpoints.keys(), partial(self._is_valid, originator_ns, deadline))

    def _is_valid(self, originator_ns: int, deadline: float, signature: WalletSignature) -> bool:
        if signature.block_number > _HIGHEST_BLOCK:
            return False
        if len(signature.signature) > LONGEST_SIGNATURE:
            return False
        failed: ChainError | None = None
        endpoints = self._endpoints[signature.chain_id]
        for endpoint in list(endpoints):
            if self._clock() >= deadline:
                break
            try:
                answer = self._ask(endpoint, originator_ns, signature)
            except ChainError as error:
                failed = failed or error
            else:
                # The next question need not wait for an endpoint that does not answer.
                endpoints.remove(endpoint)
                endpoints.insert(0, endpoint)
                return answer
        got = f"none in {_MOST_SECONDS:g} s" if failed is None else str(failed)
        raise WalletUnanswered(_subject(signature), "an answer of the chain", got) from failed

    def _ask(self, endpoint: Endpoint, originator_ns: int, signature: WalletSignature) -> bool:
        self._check_chain(endpoint, signature.chain_id)
        block = _block_of(endpoint, originator_ns, signature)
        if block is None or not _is_of_time(block, originator_ns):
            return False
        key = (signature, block.hash)
        answer = self._answers.pop(key, None)
        if answer is None:
            answer = _ask_wallet(endpoint, signature, block)
        self._answers[key] = answer
        if len(self._answers) > _REMEMBERED:
            self._answers.popitem(last=False)
        return answer

    def _check_chain(self, endpoint: Endpoint, chain_id: int) -> None:
        if endpoint in self._checked:
            return
        if (served := endpoint.chain_id()) != chain_id:
            raise WrongChain(f"chain id at {endpoint.name}", chain_id, served)
        self._checked.add(endpoint)


def _block_of(
    endpoint: Endpoint, originator_ns: int, signature: WalletSignature
) -> BlockHeader | None:
    """Return the header that a signature names, None where the block was not there at the time.

    Raises WalletUnanswered where the endpoint does not have the block, and may only lag behind.
    """
    # Asked together: the next request may meet a replica that knows other blocks.
    number = signature.block_number
    block, head = endpoint.headers([number, "latest"])
    if block is not None:
        return block
    subject = f"block {number} at {endpoint.name}"
    if head is None or head.number >= number:
        raise endpoint.inconsistent(f"block {number}", "a block below the head", "nothing")
    if not _is_until(head, originator_ns):
        return None
    raise WalletUnanswered(subject, "a block, or a head later than the update", head.reference)


def _is_of_time(block: BlockHeader, originator_ns: int) -> bool:
    return block.timestamp >= EARLIEST_TIMESTAMP and _is_until(block, originator_ns)


def _is_until(block: BlockHeader, originator_ns: int) -> bool:
    latest = originator_ns + MOST_SECONDS_AHEAD * NANOSECONDS_PER_SECOND
    return block.timestamp * NANOSECONDS_PER_SECOND <= latest


def _ask_wallet(endpoint: Endpoint, signature: WalletSignature, block: BlockHeader) -> bool:
    arguments = (signature.address, signature.digest, signature.signature)
    data = _validator() + encode(["address", "bytes32", "bytes"], arguments)
    # Without a receiver the data is run as creation code.
    message = {"data": hex0x(data), "gas": hex(_GAS)}
    answer = endpoint.call_message(message, block.reference)
    if answer == _TOO_LITTLE_GAS:
        raise WalletUnanswered(f"call at {endpoint.name}", f"{_GAS} gas", "less")
    if answer not in (_VALID, _INVALID):
        raise endpoint.inconsistent("eth_call", "one byte, 0 or 1", f"{len(answer)} bytes")
    return answer == _VALID


def _subject(signature: WalletSignature) -> str:
    return f"wallet {hex0x(signature.address)} of chain {signature.chain_id}"


@cache
def _validator() -> bytes:
    content = read_package_json("chainkit_node.inboxes", "signature_validator.json")
    return bytes.fromhex(content["creation_code"][2:])
