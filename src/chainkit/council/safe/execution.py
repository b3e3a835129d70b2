"""Finds an execution of a Safe on the chain, and whether the Safe reports its success."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from chainkit.contracts.interface import shipped_interface
from chainkit.council.safe.transaction import Operation, SafeTransaction
from chainkit.errors import MalformedData, MalformedLog
from chainkit.types import Log

Outcome = Literal["success", "failure"]


@dataclass(frozen=True, slots=True)
class Execution:
    """A call of ``execTransaction``: all that the owners signed but Safe, chain and nonce."""

    to: bytes
    """20 bytes."""
    value: int
    """Wei."""
    data: bytes
    operation: Operation
    safe_tx_gas: int
    base_gas: int
    gas_price: int
    gas_token: bytes
    """20 bytes."""
    refund_receiver: bytes
    """20 bytes."""
    signatures: bytes
    """All signatures, concatenated; the Safe itself checks only as many as its threshold."""

    def of(self, *, chain_id: int, safe: bytes, nonce: int) -> SafeTransaction:
        """Return the transaction that was executed if the Safe's nonce was this before."""
        return SafeTransaction(
            chain_id=chain_id,
            safe=safe,
            to=self.to,
            value=self.value,
            data=self.data,
            operation=self.operation,
            safe_tx_gas=self.safe_tx_gas,
            base_gas=self.base_gas,
            gas_price=self.gas_price,
            gas_token=self.gas_token,
            refund_receiver=self.refund_receiver,
            nonce=nonce,
        )


def parse_exec_calldata(calldata: bytes) -> Execution:
    """Return the execution in calldata of ``execTransaction``, in any encoding.

    Raises MalformedData where the calldata calls something else or does not decode.
    """
    arguments = shipped_interface("Safe").arguments("execTransaction", calldata)
    if (operation := arguments["operation"]) not in tuple(Operation):
        raise MalformedData("calldata of execTransaction", "operation 0 or 1", operation)
    return Execution(
        to=_address(arguments["to"]),
        value=arguments["value"],
        data=arguments["data"],
        operation=Operation(operation),
        safe_tx_gas=arguments["safeTxGas"],
        base_gas=arguments["baseGas"],
        gas_price=arguments["gasPrice"],
        gas_token=_address(arguments["gasToken"]),
        refund_receiver=_address(arguments["refundReceiver"]),
        signatures=arguments["signatures"],
    )


def find_execution(logs: Iterable[Log], safe: bytes, hash_: bytes) -> Outcome | None:
    """Return a Safe's report of the execution of a hash; None where there is none.

    ``logs`` are those of one receipt. Raises MalformedLog where the Safe reports the hash twice,
    which its own code never does: a delegatecall emitted one of the reports.
    """
    outcomes: dict[str, Outcome] = {"ExecutionSuccess": "success", "ExecutionFailure": "failure"}
    found: Outcome | None = None
    for log in logs:
        event = shipped_interface("Safe").decode_event(log) if log.address == safe else None
        if event is None or event[0] not in outcomes or event[1]["txHash"] != hash_:
            continue
        if found is not None:
            subject = f"execution of 0x{hash_.hex()}"
            raise MalformedLog(subject, "one event of the Safe", "another", log.place)
        found = outcomes[event[0]]
    return found


def _address(checksummed: str) -> bytes:
    return bytes.fromhex(checksummed[2:])
