"""Which payloads of a batch may be served: topics of the usual form are compared all at once."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from chainkit.protocol import envelope
from chainkit.types import TopicKind
from chainkit_jobs.reconcile.screening.expected_bytes import (
    Bytes2D,
    Flags,
    Integers,
    fixed,
    offsets,
    pieces,
)

_TOPIC_LENGTHS: Final = (33, 17)
"""Bytes of a topic whose identifier is as long as the contract's, and of today's groups."""
_AAD_TAG: Final = 0x0A
_TOPIC_TAG: Final = 0x12
_LAST_SEEN_TAG: Final = 0x1A
_GROUP_MESSAGE_TAG: Final = 0x12
_IDENTITY_UPDATE_TAG: Final = 0x2A
_LENGTH_BYTES: Final = 3
"""Bytes of the length of a payload of up to two mebibytes; a longer one is unusual."""


def are_servable(payloads: pa.BinaryArray, topics: Bytes2D) -> Flags:
    """Return for payloads of originator 0 whether ``quarantine_reason`` would be None.

    ``topics`` are the topics of the events, a kind byte and an identifier: shape (n, 33).
    """
    is_usual = np.zeros(len(payloads), dtype=np.bool_)
    for length in _TOPIC_LENGTHS:
        is_usual |= _is_usual(payloads, topics, length)
    servable = is_usual.copy()
    usual = pieces(payloads.filter(pa.array(is_usual)))
    servable[is_usual] = [envelope.unread_reason(each) is None for each in usual]
    others = payloads.filter(pa.array(~is_usual))
    each_topic = (topic.tobytes() for topic in topics[~is_usual])
    servable[~is_usual] = envelope.are_servable(pieces(others), each_topic)
    return servable


def _is_usual(payloads: pa.BinaryArray, topics: Bytes2D, topic_length: int) -> Flags:
    """Return which payloads are an aad of the right topic and a payload of its kind, by fields.

    The topic has ``topic_length`` bytes: where it is shorter than the posted topic, it is a
    group's, and only the padding is missing. The aad may contain a last_seen, and names no
    originator: 0 is not written.
    """
    aad_head = 2 + topic_length
    # Up to the bytes of a last_seen, where there is one.
    head_length = 2 + aad_head + 2
    is_message = topics[:, 0] == TopicKind.GROUP_MESSAGE
    is_padding = (topics[:, topic_length:] == 0).all(axis=1)
    is_named: Flags = is_padding & (is_message | (topic_length == topics.shape[1]))
    places = offsets(payloads)
    sizes, places = np.diff(places), places[:-1]
    data = np.frombuffer(payloads.buffers()[2] or b"", dtype=np.uint8)
    if not len(data) or not is_named.any():
        return np.zeros(len(payloads), dtype=np.bool_)

    def byte(at: Integers) -> Integers:
        # Bytes behind a payload are read only where the payload is found to be too short.
        found: Integers = data[np.minimum(places + at, len(data) - 1)].astype(np.int64)
        return found

    # One that is shorter is none of the usual.
    head = fixed(payloads, head_length)
    aad, last_seen = head[:, 1].astype(np.int64), head[:, head_length - 1].astype(np.int64)
    is_usual: Flags = is_named & (head[:, 0] == _AAD_TAG) & (head[:, 2] == _TOPIC_TAG)
    is_usual &= head[:, 3] == topic_length
    is_usual &= (head[:, 4 : 4 + topic_length] == topics[:, :topic_length]).all(axis=1)
    has_last_seen = head[:, head_length - 2] == _LAST_SEEN_TAG
    is_usual &= (aad == aad_head) | (has_last_seen & (aad == aad_head + 2 + last_seen))
    is_usual &= aad < 0x80
    is_usual &= byte(2 + aad) == np.where(is_message, _GROUP_MESSAGE_TAG, _IDENTITY_UPDATE_TAG)
    length, width = np.zeros_like(sizes), np.zeros_like(sizes)
    goes_on = np.ones(len(sizes), dtype=np.bool_)
    for number in range(_LENGTH_BYTES):
        group = byte(3 + aad + number)
        length += np.where(goes_on, (group & 0x7F) << (7 * number), 0)
        width += goes_on
        goes_on &= group >= 0x80
    is_usual &= ~goes_on & (3 + aad + width + length == sizes)
    return is_usual
