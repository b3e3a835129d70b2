"""The time of the chain's envelopes by ADR 45, written another way than the product's."""


def chain_ns(seconds: int, sequence_id: int) -> int:
    return int(f"{seconds + 1}{sequence_id % 10**6:06}000")
