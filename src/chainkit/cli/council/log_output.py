"""The output of ``chainkit council log``: a paragraph for each transaction, the newest last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import click
from eth_utils.address import to_checksum_address

from chainkit.cli.change.proposal_output import echo_free_text, moment
from chainkit.contracts.interface import render
from chainkit.council.log.calls import TrailCall
from chainkit.council.log.events import TrailEvent
from chainkit.council.log.executions import Act
from chainkit.council.log.proposals import KeptProposals
from chainkit.council.log.signers import Signer
from chainkit.council.log.trail import Trail
from chainkit.council.log.transactions import Entry
from chainkit.council.proposal import AddressBook, Council
from chainkit.council.proposal.file import argument_content
from chainkit.terminal.facts import LABEL_WIDTH, LINE_WIDTH, echo_fact, echo_quoted
from chainkit.text.hexadecimal import hex0x
from chainkit.text.json_values import reference_as_json

WARNING: Final = "WARNING"
_KINDS: Final = {
    "council": "by the council's account",
    "holder": "by a node's holder",
    "deployment": "by the deployment",
    "others": "past the council's account",
}
_LARGEST_ARGUMENT: Final = 200
"""Characters of an argument that a screen shows; `--json` shows the whole argument."""


def echo_trail(
    trail: Trail, address_book: AddressBook, council: Council, kept: KeptProposals
) -> None:
    """Print a trail for a person."""
    echo_fact("account", address_book.described(council.address))
    echo_fact("read", f"blocks {trail.first} to {trail.block}")
    for caution in trail.cautions:
        echo_fact("caution", caution)
    for unread in kept.unread:
        echo_fact("not read", unread)
    for entry in trail.entries:
        click.echo()
        _echo_entry(entry, address_book, council)
    click.echo()
    counts = Counter[str](entry.kind for entry in trail.entries)
    words = [f"{counts[kind]} {words}" for kind, words in _KINDS.items() if counts[kind]]
    echo_fact("transactions", "; ".join(words) or "none")
    for alarm in trail.alarms:
        echo_fact(WARNING, alarm)
    number = len(trail.alarms) + sum(len(entry.alarms) for entry in trail.entries)
    echo_fact("warnings", str(number) if number else "none")


def trail_json(trail: Trail, council: Council, kept: KeptProposals) -> dict[str, Any]:
    """Return a trail as scripts read it."""
    return {
        "chain_id": council.chain_id,
        "account": council.address,
        "from_block": trail.first,
        "block": reference_as_json(trail.block),
        "transactions": [_entry_json(entry) for entry in trail.entries],
        "cautions": list(trail.cautions),
        "warnings": list(trail.alarms),
        "proposals_not_read": list(kept.unread),
        "clean": trail.is_clean,
    }


def _echo_entry(entry: Entry, address_book: AddressBook, council: Council) -> None:
    echo_fact("block", f"{entry.block}, {moment(entry.timestamp)}, {_KINDS[entry.kind]}")
    echo_fact("transaction", hex0x(entry.transaction_hash))
    for alarm in entry.alarms:
        echo_fact(WARNING, alarm)
    for caution in entry.cautions:
        echo_fact("caution", caution)
    echo_fact("sent by", address_book.described(entry.executor))
    for act in entry.acts:
        _echo_act(act, address_book, is_safe=council.safe is not None)
    # The actor, where neither the first line of the paragraph nor the sender names it.
    implied: tuple[str, ...] = (council.address, entry.executor)
    account = None
    for event in entry.events:
        if event.account not in (None, account, *implied):
            account, implied = event.account, ()
            echo_fact("by", address_book.described(str(account)))
        echo_fact("changed", f"{event.contract}: {event.words}")


def _echo_act(act: Act, address_book: AddressBook, is_safe: bool) -> None:
    outcome = "success" if act.succeeded else "FAILURE, it changed nothing"
    nonce = "unknown" if act.nonce is None else str(act.nonce)
    echo_fact("nonce", f"{nonce}, {outcome}" if is_safe else nonce)
    if is_safe:
        echo_fact("SafeTx hash", hex0x(act.hash))
    for signer in act.signers:
        echo_fact("signed by", _signer_words(signer, address_book))
    for call in act.calls:
        _echo_call(call, address_book)
    _echo_grounds(act)
    for caution in act.cautions:
        echo_fact("caution", caution)


def _echo_grounds(act: Act) -> None:
    if act.trailer is None:
        if act.source is not None:
            echo_fact("grounds", "none: it was proposed by other means")
        return
    echo_fact("grounds", hex0x(act.trailer.digest))
    echo_fact("valid until", moment(act.trailer.expires))
    if act.grounds is not None:
        echo_free_text(act.grounds)


def _signer_words(signer: Signer, address_book: AddressBook) -> str:
    remarks = [signer.remark] if signer.remark else []
    remarks += [] if signer.was_owner else ["NO OWNER THEN"]
    return ", ".join([address_book.described(signer.address), *remarks])


def _echo_call(found: TrailCall, address_book: AddressBook) -> None:
    call = found.call
    if call is None:
        selector = hex0x(found.selector) if found.selector else "none"
        words = f"selector {selector}, {len(found.data)} bytes: {found.remark}"
        echo_fact("call", f"{_named(found.target, address_book)}, {words}")
        return
    name = f"{call.contract}.{call.function}"
    texts = {each for each, value in call.arguments.items() if _is_text(value)}
    shown = {each: _argument(value, address_book) for each, value in call.arguments.items()}
    line = f"{name}({', '.join(f'{each}={value}' for each, value in shown.items())})"
    if not texts and LABEL_WIDTH + len(line) <= LINE_WIDTH:
        echo_fact("call", line)
        return
    echo_fact("call", name)
    for each, value in call.arguments.items():
        if each in texts:
            echo_quoted(f"  {each}", value[:_LARGEST_ARGUMENT])
            if len(value) > _LARGEST_ARGUMENT:
                echo_fact("", _cut(value))
        else:
            echo_fact(f"  {each}", shown[each])


def _is_text(value: Any) -> bool:
    """Return whether an argument is a text, which a stranger may have written, and no address."""
    return isinstance(value, str) and value != render(value)


def _argument(value: Any, address_book: AddressBook) -> str:
    text = render(value)
    if isinstance(value, str) and value == text:
        return address_book.described(value)
    return f"{text[:_LARGEST_ARGUMENT]}{_cut(text)}" if len(text) > _LARGEST_ARGUMENT else text


def _cut(text: str) -> str:
    return f"… ({len(text)} characters; --json shows all)"


def _named(address: bytes, address_book: AddressBook) -> str:
    return address_book.described(to_checksum_address(address))


def _entry_json(entry: Entry) -> dict[str, Any]:
    return {
        "block": reference_as_json(entry.block),
        "timestamp": entry.timestamp,
        "transaction_hash": hex0x(entry.transaction_hash),
        "by": entry.kind,
        "executor": entry.executor,
        "acts": [_act_json(act) for act in entry.acts],
        "events": [_event_json(event) for event in entry.events],
        "cautions": list(entry.cautions),
        "warnings": list(entry.alarms),
    }


def _act_json(act: Act) -> dict[str, Any]:
    trailer, grounds = act.trailer, act.grounds
    return {
        "hash": hex0x(act.hash),
        "nonce": act.nonce,
        "succeeded": act.succeeded,
        "calls_found_in": act.source,
        "calls": [_call_json(call) for call in act.calls],
        "signers": [
            {
                "address": signer.address,
                "proved": signer.is_proved,
                "was_owner": signer.was_owner,
                "remark": signer.remark,
            }
            for signer in act.signers
        ],
        "grounds": trailer and {"digest": hex0x(trailer.digest), "expires": trailer.expires},
        "reason": grounds and grounds.reason,
        "evidence": grounds
        and [{"name": each.name, "sha256": each.sha256} for each in grounds.evidence],
        "cautions": list(act.cautions),
    }


def _call_json(found: TrailCall) -> dict[str, Any]:
    call = found.call
    arguments = call and {name: argument_content(each) for name, each in call.arguments.items()}
    return {
        "target": hex0x(found.target),
        "calldata": hex0x(found.data),
        "value": str(found.value),
        "contract": call and call.contract,
        "function": call and call.function,
        "arguments": arguments,
        "remark": found.remark,
    }


def _event_json(event: TrailEvent) -> dict[str, Any]:
    return {
        "contract": event.contract,
        "event": event.name,
        "arguments": _plain(event.arguments),
        "account": event.account,
        "words": event.words,
        "log_index": event.log_index,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return argument_content(value)
