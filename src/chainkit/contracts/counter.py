"""The contracts' own counter: shows whether an endpoint left out logs at an end of a range.

Operator and auditor compare an endpoint's answers with the same number, read in the same way.
"""

from __future__ import annotations

from typing import Final

from chainkit.chain import Endpoint
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.followed import LAST_SELECTOR, SequenceCounter
from chainkit.errors import AccessRefused, InconsistentAnswer, RefusedRequest, StateUnavailable
from chainkit.types import BlockReference

_WORD_BYTES: Final = 32


def read_counter(endpoint: Endpoint, counter: SequenceCounter, block: BlockReference) -> int | None:
    """Return the last sequence id given out up to a block, 0 below the counter's deployment.

    None where the endpoint knows the block but no longer keeps its state, which is no fault: then
    the endpoint's answers must be compared with other data. Raises InconsistentAnswer where the
    endpoint does not know the block (a replica that lags, or is on a fork), or where the answer is
    no uint64, as from a contract without a counter. AccessRefused passes.
    """
    if block.number < counter.block:
        return 0
    try:
        answer = endpoint.call(counter.address, counter.selector, block)
    except AccessRefused:
        raise
    except StateUnavailable:
        return None
    except RefusedRequest as error:
        subject, expected = f"counter at {endpoint.name}", f"its state at block {block}"
        raise InconsistentAnswer(subject, expected, error.got) from error
    return parse_counter(endpoint, answer, block)


def parse_counter(endpoint: Endpoint, answer: bytes, block: BlockReference) -> int:
    """Return the number that a counter answered at a block. Raises InconsistentAnswer as above."""
    value = int.from_bytes(answer, "big")
    if len(answer) != _WORD_BYTES or value >= 2**64:
        subject = f"counter at {endpoint.name}"
        raise InconsistentAnswer(subject, "a uint64", f"0x{answer.hex()}", f"block {block}")
    return value


def require_counter(endpoint: Endpoint, counter: SequenceCounter, block: BlockReference) -> int:
    """Return the number that a counter gave out last up to a block.

    Raises InconsistentAnswer as ``read_counter`` does, and also where the endpoint has no state of
    the block: without the number, missing logs at an end would go unnoticed.
    """
    value = read_counter(endpoint, counter, block)
    if value is None:
        subject = f"counter at {endpoint.name}"
        raise InconsistentAnswer(subject, f"its state at block {block}", "none (not kept)")
    return value


def read_own_counter(endpoint: Endpoint, record: DeploymentRecord, block: BlockReference) -> int:
    """Return the number of our contracts' shared sequence; see ``require_counter``."""
    sequence = record.originator_sequence
    counter = SequenceCounter(sequence.address, LAST_SELECTOR, sequence.block)
    return require_counter(endpoint, counter, block)
