"""A manifest's statements besides the tables: the chain proves few of them."""

from __future__ import annotations

from collections.abc import Iterator

from chainkit.exports import Manifest
from chainkit_jobs.proof.result import MANIFEST_TABLE, Gap, GapCode, Unproved


def unproved_claims(manifest: Manifest, is_chain_signed: bool) -> Iterator[Unproved]:
    """Return the claims that only the manifest makes.

    ``is_chain_signed`` means that some transaction was signed for the manifest's chain.
    """
    if not is_chain_signed:
        yield _claim("chain_id", str(manifest.chain_id))
    if manifest.from_block > 0:
        yield _claim("genesis_hash", manifest.genesis_hash)
    for name in sorted(manifest.contracts):
        yield _claim("contracts", f"{name} at {manifest.contracts[name]}")
    for column in ("first_block", "first_payload_block", "sequence_before", "sequence_after"):
        value = getattr(manifest, column)
        if value is not None:
            yield _claim(column, str(value))
    for contract in manifest.payload_contracts or ():
        yield _claim("payload_contracts", ", ".join(f"{n} {v}" for n, v in contract.items()))
    for originator_id, numbers in sorted((manifest.counters or {}).items()):
        detail = f"originator {originator_id}: {numbers['before']} to {numbers['after']}"
        yield _claim("counters", detail)
    if manifest.source is not None:
        yield _claim("source", manifest.source)


def _claim(column: str, detail: str) -> Unproved:
    return Unproved(Gap(GapCode.MANIFEST, MANIFEST_TABLE, column, detail), 1, None, None)
