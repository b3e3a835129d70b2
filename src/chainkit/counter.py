"""The contracts' own counter: logs cut off at an end of a range leave no gap within it.

Operator and auditor hold what an endpoint answers to the same number, read in the same way.
"""

from __future__ import annotations

from typing import Final

from chainkit.chain import Endpoint
from chainkit.deployment import DeploymentRecord
from chainkit.errors import AccessRefused, InconsistentAnswer, RefusedRequest
from chainkit.signatures import keccak256
from chainkit.types import BlockReference

_LAST_SELECTOR: Final = keccak256(b"last()")[:4]
_WORD_BYTES: Final = 32


def read_counter(endpoint: Endpoint, record: DeploymentRecord, block: BlockReference) -> int:
    """Return the last sequence id given out up to a block, 0 below the counter's deployment.

    Raises InconsistentAnswer where the endpoint has no state of the block or answers no uint64:
    without the number nobody could tell that logs are missing at an end. AccessRefused passes.
    """
    sequence = record.originator_sequence
    if block.number < sequence.block:
        return 0
    try:
        answer = endpoint.call(sequence.address, _LAST_SELECTOR, block)
    except AccessRefused:
        raise
    except RefusedRequest as error:
        subject, expected = f"counter at {endpoint.name}", f"its state at block {block}"
        raise InconsistentAnswer(subject, expected, error.got) from error
    value = int.from_bytes(answer, "big")
    if len(answer) != _WORD_BYTES or value >= 2**64:
        subject = f"counter at {endpoint.name}"
        raise InconsistentAnswer(subject, "a uint64", f"0x{answer.hex()}", f"block {block}")
    return value
