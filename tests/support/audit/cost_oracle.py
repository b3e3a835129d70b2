"""The answers that `chainkit audit cost` must give, in plain Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from chainkit.types import identity_update_created, message_sent
from chainkit_jobs.cost.cuts import PERCENTS
from chainkit_jobs.cost.functions import CREATION, INDIRECT, NO_SELECTOR, SEVERAL
from chainkit_jobs.cost.schema import CUTS
from chainkit_jobs.cost.variants import RULES, VARIANTS, column, variant_gas
from support.chains.cost_chain import CONTRACTS, GROUP, Paid, Row, call_data

FIRST, LAST = 1, 30
"""Blocks that the tests' chains hold."""
NAMES = {address: name for name, address in CONTRACTS.items()}
FUNCTIONS = {
    call_data(f"{name}(bytes32,bytes)", GROUP, b"")[:4]: f"{name}(bytes32,bytes)"
    for name in ("addMessage", "addIdentityUpdate")
} | {call_data("pause()"): "pause()"}


def contract_of(paid: Paid) -> str | None:
    address = paid.created if paid.to is None else paid.to
    if address in NAMES:
        return NAMES[address]
    senders = {sent.contract for sent in paid.sent} or set(paid.emits)
    return (SEVERAL if len(senders) > 1 else min(senders)) if senders else None


def function_of(paid: Paid) -> str:
    if paid.to is None:
        return CREATION
    if paid.to not in NAMES:
        return INDIRECT
    if len(paid.data) < 4:
        return NO_SELECTOR
    return FUNCTIONS.get(paid.data[:4], "0x" + paid.data[:4].hex())


def size_class(size: int) -> int:
    return 1 << size.bit_length() - 1 if size else 0


def keys_of(paid: Paid, blocks: Sequence[Row]) -> Row:
    second = blocks[paid.block - FIRST]["timestamp"]
    size = size_class(len(paid.sent[0].payload)) if len(paid.sent) == 1 else None
    return {
        "contract": contract_of(paid),
        "function": function_of(paid),
        "payer": paid.payer,
        "hour": second // 3600 * 3600,
        "day": second // 86400 * 86400,
        "size_from": size,
    }


def paid_wei(paid: Paid) -> int:
    return paid.gas * paid.price + (paid.l1_fee or 0)


def l1_wei(paid: Paid) -> int | None:
    if paid.l1_fee is None and paid.l1_gas is None:
        return None
    return (paid.l1_fee or 0) + (paid.l1_gas or 0) * paid.price


def rank(values: Iterable[int], percent: int) -> int | None:
    ordered = sorted(values)
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else None


def total(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def measures(group: Sequence[Paid]) -> Row:
    carrying = [paid for paid in group if paid.sent]
    alone = [paid for paid in group if len(paid.sent) == 1]
    shared = [paid for paid in group if len(paid.sent) > 1]
    failed = [paid for paid in group if paid.status == 0]
    row = {
        "transactions": len(group),
        "messages": sum(len(paid.sent) for paid in group),
        "payload_bytes": sum(len(sent.payload) for paid in group for sent in paid.sent),
        "calldata_bytes": sum(len(paid.data) for paid in group),
        "gas": sum(paid.gas for paid in group),
        "message_gas": sum(paid.gas for paid in carrying),
        "wei": sum(paid.gas * paid.price for paid in group),
        "l1_gas": total(paid.l1_gas for paid in group),
        "l1_wei": total(map(l1_wei, group)),
        "paid_wei": sum(map(paid_wei, group)),
        "failed": len(failed),
        "failed_gas": sum(paid.gas for paid in failed),
        "failed_wei": sum(map(paid_wei, failed)),
        "shared": len(shared),
        "shared_messages": sum(len(paid.sent) for paid in shared),
        "shared_bytes": sum(len(sent.payload) for paid in shared for sent in paid.sent),
        "shared_gas": sum(paid.gas for paid in shared),
        "shared_wei": sum(map(paid_wei, shared)),
    }
    for percent in PERCENTS:
        row[f"gas_p{percent}"] = rank([paid.gas for paid in alone], percent)
        row[f"wei_p{percent}"] = rank(map(paid_wei, alone), percent)
    return row


def expected_cut(name: str, paid: Sequence[Paid], blocks: Sequence[Row]) -> list[Row]:
    groups: dict[tuple[Any, ...], list[Paid]] = {}
    for each in paid:
        if contract_of(each) is not None:
            keys = keys_of(each, blocks)
            if name != "sizes" or keys["size_from"] is not None:
                groups.setdefault(tuple(keys[key] for key in CUTS[name]), []).append(each)
    return [
        dict(zip(CUTS[name], key, strict=True)) | measures(group)
        for key, group in sorted(groups.items(), key=lambda item: item[0])
    ]


def expected_variants(paid: Sequence[Paid]) -> dict[tuple[str, str, int | None], tuple[int, int]]:
    """Gas and wei by variant, rules and size class."""
    sums: dict[tuple[str, str, int | None], tuple[int, int]] = {}
    for each in paid:
        for sent in each.sent:
            size = size_class(len(sent.payload)) if len(each.sent) == 1 else None
            is_group = sent.contract == "GroupMessages"
            event = (message_sent if is_group else identity_update_created)(
                GROUP, sent.payload, sent.sequence_id
            )
            costs = variant_gas(event)
            for variant in VARIANTS:
                for rules in RULES:
                    gas, wei = sums.get((variant, rules, size), (0, 0))
                    more = costs[column(variant, rules)]
                    sums[variant, rules, size] = (gas + more, wei + more * each.price)
    return sums
