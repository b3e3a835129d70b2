"""JSON-RPC, typed and doubted: the only module that talks to an endpoint.

web3's provider carries the bytes; retries, back-off and the sorting of errors into retryable
and fatal happen here and nowhere else. Nothing here reads "latest" but ``head``, which says
what to pin the other reads to.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import requests
from web3 import HTTPProvider
from web3.providers.base import JSONBaseProvider
from web3.types import RPCEndpoint

from chainkit.deployment import DeploymentRecord
from chainkit.errors import (
    ChainError,
    ConfigurationError,
    EndpointUnavailable,
    InconsistentAnswer,
    RateLimited,
    RefusedRequest,
    RetryableChainError,
    WrongChain,
)
from chainkit.types import BlockHeader, BlockReference, Log

Parsed = TypeVar("Parsed")

BATCH_SIZE: Final = 100
"""Requests in one JSON-RPC batch: providers commonly refuse more."""

_RATE_LIMIT_CODES: Final = frozenset({-32005, 429})
_REVERT_CODE: Final = 3
_CALLER_FAULT_CODES: Final = frozenset({_REVERT_CODE, -32600, -32601, -32602, -32000, -32003})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often, and with which pauses, an unanswered request is sent again."""

    attempts: int = 4
    first_pause_seconds: float = 0.2
    longest_pause_seconds: float = 5.0

    def pause(self, attempt: int, retry_after: float | None) -> float:
        """Seconds to wait after a failed attempt (from 0): exponential, with jitter."""
        if retry_after is not None:
            return min(retry_after, self.longest_pause_seconds)
        ceiling = min(self.first_pause_seconds * 2.0**attempt, self.longest_pause_seconds)
        return ceiling * (0.5 + random.random() / 2)


class Endpoint:
    """One JSON-RPC endpoint. ``name`` is what errors show: never a path, it may hold a key."""

    def __init__(
        self, provider: JSONBaseProvider, name: str, retry: RetryPolicy | None = None
    ) -> None:
        """Wrap a web3 provider; tests pass one that answers from memory."""
        self.provider = provider
        self.name = name
        self._retry = retry or RetryPolicy()

    def __repr__(self) -> str:
        """Show the host only."""
        return f"Endpoint({self.name})"

    @classmethod
    def connect(cls, url: str, timeout_seconds: float = 20.0) -> Endpoint:
        """Return the endpoint at an http(s) URL; nothing is sent yet."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError("RPC endpoint", "an http:// or https:// URL", repr(url))
        provider = HTTPProvider(
            url, request_kwargs={"timeout": timeout_seconds}, exception_retry_configuration=None
        )
        port = f":{parts.port}" if parts.port else ""
        return cls(provider, f"{parts.scheme}://{parts.hostname}{port}")

    # ------------------------------------------------------------------ requests

    def request(self, method: str, *params: Any) -> Any:
        """Return the result of one call; null is None."""
        answer = self._send(lambda: self.provider.make_request(RPCEndpoint(method), list(params)))
        return self._result(method, answer)

    def batch(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        """Return the results of many calls, in their order, in as few requests as allowed."""
        results: list[Any] = []
        for start in range(0, len(calls), BATCH_SIZE):
            results.extend(self._one_batch(calls[start : start + BATCH_SIZE]))
        return results

    def _one_batch(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> Iterator[Any]:
        requests_ = [(RPCEndpoint(method), list(params)) for method, params in calls]
        answers = self._send(lambda: self.provider.make_batch_request(requests_))
        if not isinstance(answers, list):
            # An endpoint that refuses the whole batch answers with one error object.
            self._result("batch", answers)
            raise self._inconsistent("batch", f"{len(calls)} answers", "a single one")
        if len(answers) != len(calls):
            raise self._inconsistent("batch", f"{len(calls)} answers", len(answers))
        return (
            self._result(method, answer) for (method, _), answer in zip(calls, answers, strict=True)
        )

    def _send(self, send: Callable[[], Any]) -> Any:
        for attempt in range(self._retry.attempts):
            try:
                return self._sent_once(send)
            except RetryableChainError as error:
                if attempt + 1 == self._retry.attempts:
                    raise
                time.sleep(self._retry.pause(attempt, getattr(error, "retry_after", None)))
        raise AssertionError("a retry policy has at least one attempt")

    def _sent_once(self, send: Callable[[], Any]) -> Any:
        try:
            answer = send()
        except requests.HTTPError as error:
            raise self._http_error(error) from error
        except requests.RequestException as error:
            raise EndpointUnavailable(self.name, "an answer", _reason(error)) from error
        except ValueError as error:
            raise self._inconsistent("answer", "JSON", error) from error
        if isinstance(answer, dict) and _error_code(answer) in _RATE_LIMIT_CODES:
            raise RateLimited(self.name, "an answer", answer["error"].get("message"))
        return answer

    def _http_error(self, error: requests.HTTPError) -> ChainError:
        status = error.response.status_code
        if status == 429:
            limited = RateLimited(self.name, "an answer", "HTTP 429")
            limited.retry_after = _seconds(error.response.headers.get("Retry-After"))
            return limited
        if status >= 500:
            return EndpointUnavailable(self.name, "an answer", f"HTTP {status}")
        return RefusedRequest(self.name, "HTTP 200", f"HTTP {status}")

    def _result(self, method: str, answer: Any) -> Any:
        if not isinstance(answer, dict):
            raise self._inconsistent(method, "a JSON-RPC object", type(answer).__name__)
        if answer.get("error") is not None:
            raise self._rpc_error(method, answer)
        if "result" not in answer:
            raise self._inconsistent(method, "a result or an error", "neither")
        return answer["result"]

    def _rpc_error(self, method: str, answer: dict[str, Any]) -> ChainError:
        error = answer["error"]
        message = error.get("message", error) if isinstance(error, dict) else error
        if _error_code(answer) not in _CALLER_FAULT_CODES:
            return EndpointUnavailable(f"{method} at {self.name}", "a result", message)
        refused = RefusedRequest(f"{method} at {self.name}", "a result", message)
        refused.data = error.get("data")
        return refused

    def _inconsistent(self, subject: str, expected: object, got: object) -> InconsistentAnswer:
        return InconsistentAnswer(f"{subject} at {self.name}", expected, got)

    # ------------------------------------------------------------------ reads

    def chain_id(self) -> int:
        """Return the chain id (EIP-155)."""
        return self._parsed("eth_chainId", parse_integer, self.request("eth_chainId"))

    def head(self) -> BlockHeader:
        """Return the newest block: the one read that is not pinned."""
        return self.header("latest")

    def header(self, block: int | str) -> BlockHeader:
        """Return a header by height or tag. Raises InconsistentAnswer if there is none."""
        header = self.find_header(block)
        if header is None:
            raise self._inconsistent(f"block {block}", "a block", "nothing")
        return header

    def find_header(self, block: int | str) -> BlockHeader | None:
        """Return a header by height or tag, or None above the head."""
        return self.headers([block])[0]

    def headers(self, blocks: Sequence[int | str]) -> list[BlockHeader | None]:
        """Return headers by height or tag, None where the endpoint has no such block.

        Raises InconsistentAnswer where a header is of another height than asked for.
        """
        answers = self.batch(
            [("eth_getBlockByNumber", (_block_parameter(block), False)) for block in blocks]
        )
        return [self._header(block, answer) for block, answer in zip(blocks, answers, strict=True)]

    def _header(self, block: int | str, answer: Any) -> BlockHeader | None:
        if answer is None:
            return None
        header = self._parsed(f"block {block}", parse_header, answer)
        if isinstance(block, int) and header.number != block:
            raise self._inconsistent(f"block {block}", f"height {block}", header.number)
        return header

    def logs(
        self,
        first_block: int,
        last_block: int,
        addresses: Sequence[bytes],
        topics: Sequence[bytes] = (),
    ) -> list[Log]:
        """Return the logs of some contracts in a range, both ends included, in chain order.

        ``topics`` are alternatives for the first topic. Raises InconsistentAnswer for a log
        outside the range, of another contract, taken back, or given twice; and also where the
        endpoint refuses the range, because a replica that lags behind the head does so.
        """
        query = {
            "fromBlock": hex(first_block),
            "toBlock": hex(last_block),
            "address": [_hex(address) for address in addresses],
            **({"topics": [[_hex(topic) for topic in topics]]} if topics else {}),
        }
        subject = f"logs of blocks {first_block} to {last_block}"
        try:
            answer = self.request("eth_getLogs", query)
        except RefusedRequest as error:
            raise self._inconsistent(subject, "logs", error.got) from error
        logs = self._parsed(subject, lambda values: [parse_log(value) for value in values], answer)
        for log in logs:
            self._check_log(log, first_block, last_block, addresses)
        logs.sort(key=lambda log: (log.block_number, log.log_index))
        for earlier, later in pairwise(logs):
            if (earlier.block_number, earlier.log_index) == (later.block_number, later.log_index):
                raise self._inconsistent(subject, "each log once", f"two at {later.place}")
        return logs

    def _check_log(self, log: Log, first: int, last: int, addresses: Sequence[bytes]) -> None:
        if not first <= log.block_number <= last:
            raise self._inconsistent("log", f"a block from {first} to {last}", log.place)
        if log.address not in addresses:
            raise self._inconsistent("log", "a contract asked for", f"{_hex(log.address)}")
        if log.removed:
            raise self._inconsistent("log", "removed false", f"removed true at {log.place}")

    def call(self, address: bytes, data: bytes, block: BlockReference, sender: str = "") -> bytes:
        """Return what a contract answers to a call at a block, and nothing is changed.

        Raises RefusedRequest with the revert data in ``data`` where the contract reverts.
        """
        call = {"to": _hex(address), "data": _hex(data), **({"from": sender} if sender else {})}
        pinned = {"blockHash": _hex(block.hash), "requireCanonical": True}
        return self._parsed("eth_call", parse_bytes, self.request("eth_call", call, pinned))

    def code(self, address: bytes, block: BlockReference) -> bytes:
        """Return the runtime code at an address at a block; empty if there is no contract."""
        pinned = {"blockHash": _hex(block.hash), "requireCanonical": True}
        return self._parsed(
            "eth_getCode", parse_bytes, self.request("eth_getCode", _hex(address), pinned)
        )

    def receipt(self, transaction_hash: bytes) -> dict[str, Any] | None:
        """Return a transaction's receipt as the endpoint gave it, or None."""
        answer = self.request("eth_getTransactionReceipt", _hex(transaction_hash))
        if answer is not None and not isinstance(answer, dict):
            raise self._inconsistent("receipt", "an object", type(answer).__name__)
        return answer

    def _parsed(self, subject: str, parse: Callable[[Any], Parsed], answer: Any) -> Parsed:
        try:
            return parse(answer)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._inconsistent(subject, "well-formed fields", repr(error)) from error


def check_deployment(endpoint: Endpoint, record: DeploymentRecord) -> BlockHeader:
    """Prove that an endpoint serves the chain that a record was written for.

    Compares chain id and the hash of block 0, and that each contract has code at the head,
    which is returned. Raises WrongChain with what differs.
    """
    chain_id = endpoint.chain_id()
    if chain_id != record.chain_id:
        raise WrongChain(f"chain id at {endpoint.name}", record.chain_id, chain_id)
    genesis = endpoint.header(0)
    if genesis.hash != record.genesis_hash:
        raise WrongChain(
            f"block 0 at {endpoint.name}", _hex(record.genesis_hash), _hex(genesis.hash)
        )
    head = endpoint.head()
    for contract in record.contracts:
        if not endpoint.code(contract.address, head.reference):
            raise WrongChain(
                f"{contract.name} at {_hex(contract.address)}", "a contract", "no code"
            )
    return head


# ---------------------------------------------------------------------- parsing


def parse_header(value: Any) -> BlockHeader:
    """Build a header from an endpoint's block object."""
    return BlockHeader(
        number=parse_integer(value["number"]),
        hash=parse_bytes(value["hash"], 32),
        parent_hash=parse_bytes(value["parentHash"], 32),
        timestamp=parse_integer(value["timestamp"]),
    )


def parse_log(value: Any) -> Log:
    """Build a log from an endpoint's log object."""
    return Log(
        address=parse_bytes(value["address"], 20),
        topics=tuple(parse_bytes(topic, 32) for topic in value["topics"]),
        data=parse_bytes(value["data"]),
        block_number=parse_integer(value["blockNumber"]),
        block_hash=parse_bytes(value["blockHash"], 32),
        transaction_hash=parse_bytes(value["transactionHash"], 32),
        transaction_index=parse_integer(value["transactionIndex"]),
        log_index=parse_integer(value["logIndex"]),
        removed=bool(value.get("removed", False)),
    )


def parse_integer(value: Any) -> int:
    """Return the integer of a 0x-prefixed string. Raises ValueError or TypeError."""
    return int(value, 16)


def parse_bytes(value: str, length: int | None = None) -> bytes:
    """Return the bytes of a 0x-prefixed string. Raises ValueError for another length."""
    if not value.startswith("0x"):
        raise ValueError(f"expected 0x and hex digits, got {value[:20]!r}")
    decoded = bytes.fromhex(value[2:])
    if length is not None and len(decoded) != length:
        raise ValueError(f"expected {length} bytes, got {len(decoded)}")
    return decoded


def _block_parameter(block: int | str) -> str:
    return hex(block) if isinstance(block, int) else block


def _hex(value: bytes) -> str:
    return "0x" + value.hex()


def _error_code(answer: dict[str, Any]) -> int | None:
    error = answer.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) else None


def _seconds(header: str | None) -> float | None:
    return float(header) if header and header.isdigit() else None


def _reason(error: requests.RequestException) -> str:
    """Say in a few words why no answer came; the full text names the URL, which may hold a key."""
    if isinstance(error, requests.Timeout):
        return "a time-out"
    if "Name or service not known" in str(error) or "resolve" in str(error):
        return "no such host"
    return "connection refused" if "refused" in str(error) else type(error).__name__
