"""Originators' last sequence ids as the tables hold them: JSON, by originator id, keys sorted."""

from __future__ import annotations

import json
from collections.abc import Mapping


def encode_sequence_ids(sequence_ids: Mapping[int, int]) -> str:
    """Write originators' last sequence ids as the tables hold them."""
    return json.dumps({str(key): sequence_ids[key] for key in sorted(sequence_ids)})


def decode_sequence_ids(text: str) -> dict[int, int]:
    """Read originators' last sequence ids that ``encode_sequence_ids`` wrote."""
    return {int(key): value for key, value in json.loads(text).items()}
