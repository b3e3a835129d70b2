"""Checks the deployment record once, before the first block, and the endpoints at each start.

A wrong height in the record would look like an endpoint that hides logs, for ever; a wrong address
or event like a chain on which nobody posts.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from chainkit.chain import Endpoint, EndpointPool
from chainkit.chain.block_receipts import receipts_of_blocks
from chainkit.contracts.counter import read_counter
from chainkit.contracts.followed import FollowedDeployment, SequenceCounter
from chainkit.errors import (
    AccessRefused,
    ChainError,
    ConfigurationError,
    MalformedLog,
    MethodUnavailable,
    OversizedAnswer,
    RangeRefused,
    RefusedRequest,
)
from chainkit.protocol.events import decode_payload_event
from chainkit.protocol.payload_contract import EVENT_NAMES, PayloadContract
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.types import HASH_LENGTH, BlockHeader, BlockReference, Log

_LOOKED_AT: Final = (1000, 100)
"""Blocks that are searched for payloads at each end of the chain: fewer where so many are
refused."""


def check_can_prove(pool: EndpointPool, trusts_one_endpoint: bool) -> None:
    """Refuse to begin where nothing could ever be signed: one host, which offers no receipts.

    A host that does not answer now may offer receipts. Raises ConfigurationError.
    """
    if trusts_one_endpoint or pool.hosts > 1:
        return
    for endpoint in pool.available():
        try:
            _ask_for_receipts(endpoint)
        except AccessRefused:
            return
        except (MethodUnavailable, RefusedRequest):
            continue
        except ChainError:
            return
        else:
            return
    raise ConfigurationError(
        "RPC endpoints",
        "one that offers eth_getBlockReceipts or eth_getTransactionReceipt, or two of different "
        "hosts",
        "one host without receipts",
        "give another --rpc, or take its word with --trust-one-endpoint",
    )


def _ask_for_receipts(endpoint: Endpoint) -> None:
    number = endpoint.head().number
    # No transaction has this hash: null is the answer where the method is offered.
    receipts_of_blocks(
        endpoint,
        lambda: endpoint.block_receipts([number]),
        lambda: endpoint.receipts([bytes(HASH_LENGTH)]),
    )


def check_record(pool: EndpointPool, deployment: FollowedDeployment) -> None:
    """Check the record by the endpoints in their order, until an endpoint confirms the record.

    One endpoint may lie about a correct record. Raises the first endpoint's ConfigurationError
    where no endpoint confirms the record, and ChainError where none answers. A contract that emits
    nothing only causes a warning: it may be new.
    """
    refusal: ConfigurationError | None = None
    for endpoint in pool.available():
        try:
            _check(endpoint, deployment)
        except ConfigurationError as error:
            refusal = refusal or error
        except ChainError as error:
            pool.failed(endpoint, error)
        else:
            return
    if refusal is not None:
        raise refusal
    pool.first_answer(lambda endpoint: _check(endpoint, deployment))


def _check(endpoint: Endpoint, deployment: FollowedDeployment) -> None:
    check_first_block(endpoint, deployment)
    # An endpoint that gives no logs here is found out by the first page.
    with suppress(ChainError):
        _warn_of_silence(endpoint, deployment)


def check_first_block(endpoint: Endpoint, deployment: FollowedDeployment) -> None:
    """Prove that contracts exist, and counters begin, at the blocks of the record, and not before.

    A block whose state the endpoint does not keep is not checked. Raises ConfigurationError that
    names the contract and its block.
    """
    for name, address, block in _deployed(deployment):
        # Raises InconsistentAnswer where there is none: a replica may lag.
        header = endpoint.header(block)
        if _has_code(endpoint, address, header) is False:
            raise _not_deployed_at(name, f"no code at block {block}")
        before = endpoint.find_header(block - 1) if block else None
        if before and _has_code(endpoint, address, before):
            raise _not_deployed_at(name, f"code at block {block - 1} already")
    start = endpoint.header(max(deployment.first_block - 1, 0)).reference
    for originator_id, counter in deployment.counters.items():
        if given := _given(endpoint, counter, start):
            raise ConfigurationError(
                "deployment record",
                f"the block before the first payload of originator {originator_id}",
                f"block {start.number}, at which {given} were posted already",
            )


def _deployed(deployment: FollowedDeployment) -> Iterator[tuple[str, bytes, int]]:
    """Yield name, address and block of each contract, and of counters that are contracts apart."""
    for contract in deployment.contracts:
        yield contract.name, contract.address, contract.block
    addresses = {contract.address for contract in deployment.contracts}
    for originator_id, counter in deployment.counters.items():
        if counter is not None and counter.address not in addresses:
            yield f"counter of originator {originator_id}", counter.address, counter.block


def _has_code(endpoint: Endpoint, address: bytes, header: BlockHeader) -> bool | None:
    """Return whether a contract is there at a block; None where the endpoint lacks the state."""
    try:
        return bool(endpoint.code(address, header.reference))
    except ChainError:
        return None


def _given(
    endpoint: Endpoint, counter: SequenceCounter | None, block: BlockReference
) -> int | None:
    """Return how many payloads were posted up to a block; None where no counter is readable."""
    try:
        return None if counter is None else read_counter(endpoint, counter, block)
    except ChainError:
        return None


def _not_deployed_at(name: str, got: str) -> ConfigurationError:
    return ConfigurationError(f"deployment record, {name}", "the block of its deployment", got)


def _warn_of_silence(endpoint: Endpoint, deployment: FollowedDeployment) -> None:
    """Warn of contracts that emit nothing that fits, though sequence ids were given out."""
    head = endpoint.head()
    for originator_id, counter in deployment.counters.items():
        given = _given(endpoint, counter, head.reference)
        contracts = [c for c in deployment.contracts if c.originator_id == originator_id]
        if given != 0:
            for contract in _silent(endpoint, contracts, given, head.number):
                log_event(_silence(contract, head.number))


def _silent(
    endpoint: Endpoint, contracts: Sequence[PayloadContract], given: int | None, head: int
) -> list[PayloadContract]:
    """Return those of an originator's contracts that should have emitted an event, and did not.

    A contract without payloads yet is not returned: its siblings' payloads then have all sequence
    ids.
    """
    first = min(contract.block for contract in contracts)
    newest = _find(endpoint, contracts, first, head, is_newest=True)
    silent = [contract for contract in contracts if contract.address not in newest.addresses]
    if not silent or newest.has_all_up_to(given):
        return []
    oldest = _find(endpoint, contracts, first, head, is_newest=False)
    if not newest.addresses and oldest.has_all_up_to(None):
        return []
    return [contract for contract in silent if contract.address not in oldest.addresses]


@dataclass(frozen=True, slots=True)
class _Found:
    """The payloads of one originator's contracts in a range of blocks."""

    addresses: frozenset[bytes]
    sequence_ids: Sequence[int]
    """In chain order."""
    is_from_start: bool
    """Whether nothing can have been posted before the range."""

    def has_all_up_to(self, given: int | None) -> bool:
        """Return whether no sequence id is missing between ids, nor up to a last one, if known."""
        ids = self.sequence_ids
        if not ids or (self.is_from_start and ids[0] != 1):
            return False
        return list(ids) == [*range(ids[0], ids[-1] + 1)] and given in (None, ids[-1])


def _find(
    endpoint: Endpoint,
    contracts: Sequence[PayloadContract],
    first: int,
    head: int,
    is_newest: bool,
) -> _Found:
    """Search the newest or the oldest blocks. Raises RangeRefused where even few are refused."""
    of_address = {contract.address: contract for contract in contracts}
    topics = sorted({contract.topic for contract in contracts})
    for blocks in _LOOKED_AT:
        low = max(first, head - blocks + 1) if is_newest else first
        try:
            logs = endpoint.logs(low, min(low + blocks - 1, head), list(of_address), topics)
        except (RangeRefused, OversizedAnswer):
            if blocks == _LOOKED_AT[-1]:
                raise
            continue
        break
    found = [(log.address, id_) for log in logs for id_ in _fitting(log, of_address[log.address])]
    addresses, sequence_ids = frozenset(each[0] for each in found), [each[1] for each in found]
    return _Found(addresses, sequence_ids, low == first)


def _fitting(log: Log, contract: PayloadContract) -> Iterator[int]:
    with suppress(MalformedLog):
        yield decode_payload_event(log, contract).sequence_id


def _silence(contract: PayloadContract, head: int) -> LogEvent:
    address, event = f"0x{contract.address.hex()}", f"{EVENT_NAMES[contract.kind]}{contract.layout}"
    text = (
        f"deployment record, {contract.name}: {address} emitted no {event} in the first and newest "
        f"blocks up to {head}; if it has payloads, the record has another event, or the address "
        "of an implementation instead of its proxy"
    )
    fields = {"contract": contract.name, "address": address, "head": head, "expected": event}
    return LogEvent("record_doubtful", text, fields, logging.WARNING)
