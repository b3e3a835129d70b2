"""Measures the gas of publishing a message, on contracts deployed as on a real chain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from tools.gas_study.cases import (
    FLOOR_HARDFORKS,
    GROUP_ID,
    MESSAGE_CASES,
    PUBLISHED_CASES,
    PUBLISHED_SIZES,
    SIZES,
    MessageCase,
    counting_payload,
    random_payload,
)
from tools.gas_study.compiling import Bytecodes
from tools.gas_study.measuring_chain import MeasuringChain, call_data, floor_gas
from tools.gas_study.rows import Row

Payload = Callable[[int], bytes]

_HASH_SIZE: Final = 32
_LARGEST_PAYLOAD: Final = 1024 * 1024


def message_rows(chain: MeasuringChain, codes: Bytecodes) -> Iterator[Row]:
    """Measure every case at every size, with random payloads; one row each."""
    addresses = _deploy_all(chain, codes)
    for case in MESSAGE_CASES:
        yield from _rows(chain, "messages", case, addresses[case.contract], SIZES, random_payload)


def published_rows(chain: MeasuringChain, codes: Bytecodes) -> Iterator[Row]:
    """Measure XIP-49 §2.1.3's eight cells with its own sizes, payload and compiler settings."""
    for case in PUBLISHED_CASES:
        address = chain.create(codes[case.contract])
        yield from _rows(chain, "published", case, address, PUBLISHED_SIZES, counting_payload)


def publishing_call(case: MessageCase, size: int, payload: Payload) -> bytes:
    """Return the calldata that publishes a message of ``size`` bytes, or the message's hash."""
    return call_data(case.function, GROUP_ID, payload(_HASH_SIZE if case.hashed else size))


def _rows(
    chain: MeasuringChain,
    table: str,
    case: MessageCase,
    address: str,
    sizes: Iterable[int],
    payload: Payload,
) -> Iterator[Row]:
    has_floor = chain.hardfork in FLOOR_HARDFORKS
    for size in sizes:
        data = publishing_call(case, size, payload)
        with chain.undone():
            if not case.first:
                chain.gas_of(address, publishing_call(case, SIZES[0], payload))
            gas = chain.gas_of(address, data)
        floor = floor_gas(data) if has_floor else None
        published = case.published.get(size)
        yield Row(table, case.name, size, None, chain.hardfork, gas, published, floor)


def _deploy_all(chain: MeasuringChain, codes: Bytecodes) -> Mapping[str, str]:
    """Return the address to call for each ``contract`` of the cases."""
    plain = {case.contract for case in MESSAGE_CASES} & codes.keys()
    study = {name: chain.create(codes[name]) for name in sorted(plain - _SEQUENCED.keys())}
    first_message = call_data("addMessage(bytes32,bytes)", GROUP_ID, b"")
    implementation = study["CompleteMessageWithEvent"]
    proxy = _proxy(chain, codes, implementation, first_message)
    return study | _deploy_sequenced(chain, codes) | {"CompleteMessageWithEventProxy": proxy}


_SEQUENCED: Final = {"GroupMessages": 0, "IdentityUpdates": 1, "CountedGroupMessages": 2}
"""The contracts that ask for the shared sequence, with the order of their proxies."""


def _deploy_sequenced(chain: MeasuringChain, codes: Bytecodes) -> dict[str, str]:
    # The sequence names its callers, which do not exist yet: the deployer's nonce fixes their
    # addresses.
    callers = chain.addresses_to_come(first=1 + len(_SEQUENCED), count=2)
    sequence = chain.create(codes["OriginatorSequence"], ("address", "address"), *callers)
    implementations = [chain.create(codes[name], ("address",), sequence) for name in _SEQUENCED]
    signature = "initialize(address,uint32,uint32)"
    initialize = call_data(signature, chain.accounts[0], 1, _LARGEST_PAYLOAD)
    return {
        name: _proxy(chain, codes, implementation, initialize)
        for name, implementation in zip(_SEQUENCED, implementations, strict=True)
    }


def _proxy(chain: MeasuringChain, codes: Bytecodes, implementation: str, first_call: bytes) -> str:
    types = ("address", "bytes")
    return chain.create(codes["SequencedLogProxy"], types, implementation, first_call)
