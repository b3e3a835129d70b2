"""The topic under which a payload is served, by SQL alone: chainkit.protocol.served_topic.

Only a group message whose identifier ends with padding can have a shorter topic than its posted
topic. The payload contains the topic, and SQL reads it in the form that clients write: an aad of a
topic and at most a last_seen, then the message, with nothing else. Other forms are not read here.
"""

from __future__ import annotations

import secrets
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as sf

from chainkit.protocol.served_topic import PADDING
from chainkit.types import TopicKind

_TOPIC_LENGTH: Final = 33
"""Bytes of a topic with an identifier as long as the contract's."""
_AAD_TAG: Final = 0x0A
_TOPIC_TAG: Final = 0x12
_LAST_SEEN_TAG: Final = 0x1A
_MESSAGE_TAG: Final = 0x12
_TOPIC_START: Final = 4
"""Bytes before the topic: two tags and two lengths."""


def served_topic(posted: Column, payload: Column) -> Column:
    """Return the topic of a payload that is not in quarantine.

    ``posted`` is a kind byte and the identifier. A payload of a form that is not read here has a
    random topic, which no table can contain: a row about it is never taken to be right unseen.
    """
    is_group = sf.substring(posted, 1, 1) == sf.lit(TopicKind.GROUP_MESSAGE.topic(b""))
    is_padded = sf.substring(posted, _TOPIC_LENGTH, 1) == sf.lit(PADDING)
    named = sf.substring(payload, sf.lit(_TOPIC_START + 1), _byte(payload, 3))
    is_named = sf.rpad(named, sf.lit(_TOPIC_LENGTH), sf.lit(PADDING)) == posted
    readable = sf.when(~_is_usual(payload), sf.lit(secrets.token_bytes(_TOPIC_LENGTH))).when(
        is_named, named
    )
    return sf.when(is_group & is_padded, sf.coalesce(readable, posted)).otherwise(posted)


def _is_usual(payload: Column) -> Column:
    aad, topic = _byte(payload, 1), _byte(payload, 3)
    last_seen = _TOPIC_START + topic
    is_topic_alone = aad == topic + 2
    is_last_seen = (_byte(payload, last_seen) == _LAST_SEEN_TAG) & (
        aad == topic + 4 + _byte(payload, last_seen + 1)
    )
    is_aad = (_byte(payload, 0) == _AAD_TAG) & (aad < 0x80) & (is_topic_alone | is_last_seen)
    is_topic = (_byte(payload, 2) == _TOPIC_TAG) & topic.between(2, _TOPIC_LENGTH)
    is_message = (_byte(payload, aad + 2) == _MESSAGE_TAG) & _is_last(payload, aad + 3)
    return sf.coalesce(is_aad & is_topic & is_message, sf.lit(False))


def _is_last(payload: Column, at: Column) -> Column:
    """Return whether a field whose length stands at a position ends where the payload ends."""
    rest = sf.octet_length(payload) - at
    first, second, third = (_byte(payload, at + each) for each in range(3))
    medium = first % 0x80 + second * 0x80
    long = first % 0x80 + second % 0x80 * 0x80 + third * 0x4000
    return (
        sf.when(first < 0x80, rest == first + 1)
        .when(second < 0x80, rest == medium + 2)
        .when(third < 0x80, rest == long + 3)
        .otherwise(sf.lit(False))
    )


def _byte(payload: Column, at: Column | int) -> Column:
    position = (sf.lit(at) if isinstance(at, int) else at) + 1
    digits = sf.hex(sf.substring(payload, position, sf.lit(1)))
    return sf.conv(digits, 16, 10).cast("int")
