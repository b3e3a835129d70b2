"""Well-formed and untrue: what lagging, mixed up and lying endpoints answer.

Each fault is one named function over the honest answer. Answers that are not even well-formed
stand in ``support.endpoints.broken_answers``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.endpoints.fault_proxy import Answer, Call, Fault

LOGS = frozenset({"eth_getLogs"})
HEADERS = frozenset({"eth_getBlockByNumber", "eth_getBlockByHash"})
COUNTER = frozenset({"eth_call"})
READS = LOGS | HEADERS | COUNTER

NO_BLOOM, FULL_BLOOM = "0x" + "00" * 256, "0x" + "ff" * 256


def error(code: int, message: str, **more: Any) -> Callable[[Call, Answer], Answer]:
    """Answer a call with a JSON-RPC error."""

    def change(_: Call, answer: Answer) -> Answer:
        about = {"code": code, "message": message} | more
        return {"jsonrpc": "2.0", "id": answer["id"], "error": about}

    return change


def result_changed(change: Callable[[Call, Any], Any]) -> Callable[[Call, Answer], Answer]:
    """Change the result of a call that has one; null and errors stay."""

    def changed(call: Call, answer: Answer) -> Answer:
        if answer.get("result") is None:
            return answer
        return answer | {"result": change(call, answer["result"])}

    return changed


# ------------------------------------------------------------------------- logs


def logs_fault(name: str, change: Callable[[list[Answer]], Any]) -> Fault:
    def changed(_: Call, logs: list[Answer]) -> Any:
        # An answer without logs can lose none.
        return change(logs) if logs else logs

    return Fault(f"logs: {name}", result_changed(changed), methods=LOGS)


def _each(**fields: Any) -> Callable[[list[Answer]], list[Answer]]:
    return lambda logs: [log | fields for log in logs]


def _without_the_last_block(logs: list[Answer]) -> list[Answer]:
    return [log for log in logs if log["blockNumber"] != logs[-1]["blockNumber"]]


def _middle_missing(logs: list[Answer]) -> list[Answer]:
    third = max(len(logs) // 3, 1)
    return logs[:third] + logs[2 * third :]


def _logs_of_the_other_branch(call: Call, logs: list[Answer]) -> Any:
    (query,) = call.params
    if (block_hash := query.get("blockHash")) is None:
        return call.ask_other("eth_getLogs", query) or []
    header = call.ask("eth_getBlockByHash", block_hash, False)
    query = {name: value for name, value in query.items() if name != "blockHash"}
    height = {"fromBlock": header["number"], "toBlock": header["number"]}
    return call.ask_other("eth_getLogs", query | height) or []


LOG_FAULTS = (
    logs_fault("none of them", lambda logs: []),
    logs_fault("first missing", lambda logs: logs[1:]),
    logs_fault("first three missing", lambda logs: logs[3:]),
    logs_fault("last missing", lambda logs: logs[:-1]),
    logs_fault("last three missing", lambda logs: logs[:-3]),
    logs_fault("middle missing", _middle_missing),
    logs_fault("one missing", lambda logs: logs[: len(logs) // 2] + logs[len(logs) // 2 + 1 :]),
    logs_fault("those of the last block missing", _without_the_last_block),
    logs_fault("removed", _each(removed=True)),
    logs_fault("one removed", lambda logs: [*logs[:-1], logs[-1] | {"removed": True}]),
    logs_fault("given twice", lambda logs: [*logs, *logs]),
    logs_fault("one given twice", lambda logs: [logs[0], *logs]),
    logs_fault("of another contract", _each(address="0x" + "77" * 20)),
    logs_fault("with another event", _each(topics=["0x" + "77" * 32])),
    logs_fault("without a topic", _each(topics=[])),
    logs_fault("of a block beyond the range", _each(blockNumber="0xffffff")),
    logs_fault("of a block without a hash", _each(blockHash=None)),
    logs_fault("with another block hash", _each(blockHash="0x" + "77" * 32)),
    logs_fault("with data cut", lambda logs: [log | {"data": log["data"][:-64]} for log in logs]),
    logs_fault("with an index of 64 bits", _each(logIndex="0xffffffffffffffff")),
    Fault("logs: of the other branch", result_changed(_logs_of_the_other_branch), methods=LOGS),
)

HARMLESS = (
    logs_fault("in reverse order", lambda logs: logs[::-1]),
    logs_fault("with a field that nobody knows", _each(blockTimestamp="soon", more={"of": []})),
)
"""Answers in unusual shape that are as true as the usual ones."""


# ---------------------------------------------------------------------- headers


def _header_fault(name: str, change: Callable[[Call, Answer], Any]) -> Fault:
    return Fault(f"header: {name}", result_changed(change), methods=HEADERS)


def _numbered(**fields: Any) -> Callable[[Call, Answer], Answer]:
    """Change fields of blocks that were asked for by height, not of the newest one."""

    def change(call: Call, header: Answer) -> Answer:
        return header | fields if str(call.params[0]).startswith("0x") else header

    return change


def _head_behind(blocks: int) -> Callable[[Call, Answer], Answer]:
    def change(call: Call, header: Answer) -> Answer:
        if call.params[0] != "latest":
            return header
        return call.ask("eth_getBlockByNumber", _minus(header["number"], blocks), False)

    return change


def _head_ahead(call: Call, header: Answer) -> Answer:
    if call.params[0] != "latest":
        return header
    return header | {"number": hex(int(header["number"], 16) + 1000), "hash": "0x" + "77" * 32}


def _of_the_other_branch(call: Call, header: Answer) -> Answer:
    return call.ask_other("eth_getBlockByNumber", header["number"], False) or header


def _head_of_the_other_branch(call: Call, header: Answer) -> Answer:
    if call.params[0] != "latest":
        return header
    return call.ask_other("eth_getBlockByNumber", "latest", False) or header


def _genesis(call: Call, header: Answer) -> Answer:
    return header | {"hash": "0x" + "77" * 32} if header["number"] == "0x0" else header


def _missing_header(_: Call, answer: Answer) -> Answer:
    return answer | {"result": None}


WITHOUT_BLOOM = _header_fault("no bloom although there are logs", _numbered(logsBloom=NO_BLOOM))
FULL_OF_BLOOM = _header_fault("full bloom without logs", _numbered(logsBloom=FULL_BLOOM))

HEADER_FAULTS = (
    Fault("header: null for a block that exists", _missing_header, methods=HEADERS),
    _header_fault("parent does not link", _numbered(parentHash="0x" + "77" * 32)),
    _header_fault("another hash", _numbered(hash="0x" + "77" * 32)),
    _header_fault("another height", _numbered(number="0x7777")),
    _header_fault("a time before 1970", _numbered(timestamp="-0x1")),
    _header_fault("a time in the year 2500", _numbered(timestamp=hex(2**34))),
    _header_fault("head goes backwards by one", _head_behind(1)),
    _header_fault("head goes backwards by five", _head_behind(5)),
    _header_fault("head a thousand blocks ahead", _head_ahead),
    _header_fault("of the other branch", _of_the_other_branch),
    _header_fault("head of the other branch", _head_of_the_other_branch),
    WITHOUT_BLOOM,
    FULL_OF_BLOOM,
)

OTHER_CHAIN = (
    Fault(
        "chain id of another chain",
        result_changed(lambda *_: "0x1"),
        methods=frozenset({"eth_chainId"}),
    ),
    _header_fault("block 0 of another chain", _genesis),
)


# ---------------------------------------------------------------------- counter


def _counter_changed_by(difference: int) -> Callable[[Call, Any], Any]:
    def change(_: Call, result: str) -> str:
        if len(result) != 66:
            return result
        return f"0x{max(int(result, 16) + difference, 0):064x}"

    return change


def _counter_of_the_other_branch(call: Call, result: Any) -> Any:
    return call.ask_other("eth_call", call.params[0], "latest") or result


COUNTER_FAULTS = (
    Fault("counter: stale", result_changed(_counter_changed_by(-1)), methods=COUNTER),
    Fault("counter: ahead", result_changed(_counter_changed_by(1)), methods=COUNTER),
    Fault("counter: empty", result_changed(lambda *_: "0x"), methods=COUNTER),
    Fault("counter: of 256 bits", result_changed(lambda *_: "0x" + "ff" * 32), methods=COUNTER),
    Fault("counter: newest", result_changed(_counter_of_the_other_branch), methods=COUNTER),
    Fault("counter: no state", error(-32000, "missing trie node"), methods=COUNTER),
    Fault("counter: no header", error(-32001, "header for hash not found"), methods=COUNTER),
)


# ---------------------------------------------------------------- lagging replica


def lagging_replica(blocks: int, methods: frozenset[str] = READS) -> Fault:
    """Some calls reach a replica that lacks the newest blocks, and says so in no way."""

    def change(call: Call, answer: Answer) -> Answer:
        head = int(call.ask("eth_blockNumber"), 16) - blocks
        if call.method == "eth_getLogs":
            logs = answer.get("result") or []
            known = [log for log in logs if int(log["blockNumber"], 16) <= head]
            return answer | {"result": known} if logs else answer
        if call.method == "eth_call":
            pinned = call.params[1]["blockHash"] if isinstance(call.params[1], dict) else None
            header = call.ask("eth_getBlockByHash", pinned, False)
            if header is None or int(header["number"], 16) <= head:
                return answer
            return error(-32000, "header not found")(call, answer)
        header = answer.get("result")
        if header is None or int(header["number"], 16) <= head:
            return answer
        if call.params[0] == "latest":
            return answer | {"result": call.ask("eth_getBlockByNumber", hex(head), False)}
        return answer | {"result": None}

    which = "all" if methods == READS else ", ".join(sorted(methods))
    return Fault(f"replica {blocks} blocks behind: {which}", change, methods=methods)


LAGGING = (
    lagging_replica(1),
    lagging_replica(6),
    lagging_replica(3, LOGS),
    lagging_replica(3, HEADERS),
    lagging_replica(3, COUNTER),
    lagging_replica(3, LOGS | COUNTER),
)


# ---------------------------------------------------------------------- range limit


def range_limit(
    name: str, refusal: Callable[[Call, Answer], Answer], blocks: int, results: int | None = None
) -> Fault:
    """An endpoint that really refuses more than so many blocks, or logs, at once."""

    def change(call: Call, answer: Answer) -> Answer:
        (query,) = call.params
        if "blockHash" in query:
            return answer
        count = int(query["toBlock"], 16) - int(query["fromBlock"], 16) + 1
        if results is None:
            return refusal(call, answer) if count > blocks else answer
        # Nobody can ask for less than a block.
        is_too_much = count > 1 and len(answer.get("result") or ()) > results
        return refusal(call, answer) if is_too_much else answer

    return Fault(f"range limit of {name}", change, methods=LOGS)


def _minus(number: str, blocks: int) -> str:
    return hex(max(int(number, 16) - blocks, 0))


STAYS_BEHIND = (
    "header: head goes backwards by one",
    "header: head goes backwards by five",
    "replica 1 blocks behind: all",
    "replica 6 blocks behind: all",
    "replica 3 blocks behind: eth_getBlockByHash, eth_getBlockByNumber",
)
"""Consistent with a chain that is merely shorter: no answer by itself contradicts another."""

UNTRUE = (*LOG_FAULTS, *HEADER_FAULTS, *COUNTER_FAULTS, *LAGGING)
