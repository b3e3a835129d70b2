"""The gateway's policy of retention: a file, its faults, and what a call may name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chainkit.errors import ConfigurationError
from chainkit.service.refusals import InvalidRequest
from chainkit.types import TopicKind
from chainkit_gateway.retention import RetentionPolicy

CHAT, WELCOME, KEYS = TopicKind.GROUP_MESSAGE, TopicKind.WELCOME, TopicKind.KEY_PACKAGE


def policy(folder: Path, content: Any) -> RetentionPolicy:
    path = folder / "retention.json"
    path.write_text(json.dumps(content))
    return RetentionPolicy.read(path)


def test_days__without_a_file__are_those_of_xip_69() -> None:
    found = RetentionPolicy()

    assert [found.days("ann", each, None) for each in (CHAT, WELCOME, KEYS)] == [30, 90, 90]
    assert [found.days("ann", CHAT, days) for days in (1, 30)] == [1, 30]


def test_days__terms_of_all_and_of_a_client__each_has_its_own(tmp_path: Path) -> None:
    found = policy(
        tmp_path,
        {
            "default": {"chat": {"days": 60, "least": 7, "most": 365}, "welcome": {"days": 14}},
            "clients": {"ann": {"chat": {"days": 3}}, "ben": {"chat": {"most": 90}}},
        },
    )

    assert [found.days(name, CHAT, None) for name in ("ann", "ben", "cleo")] == [3, 60, 60]
    assert [found.days(name, WELCOME, None) for name in ("ann", "cleo")] == [14, 14]
    assert found.days("cleo", KEYS, None) == 90
    assert [found.days("cleo", CHAT, days) for days in (7, 365)] == [7, 365]
    # Without bounds of their own, days move the bounds along.
    for name, bounds in (("ann", "3 to 3"), ("ben", "7 to 90"), ("cleo", "7 to 365")):
        for days in (2, 366):
            with pytest.raises(InvalidRequest, match=f"expected {bounds} for a group message"):
                found.days(name, CHAT, days)


@pytest.mark.parametrize(
    ("content", "expected", "place"),
    [
        ([], "an object", ""),
        ({"others": {}}, "one of default, clients", "others"),
        ({"default": {"commit": {}}}, "one of chat, welcome, key_package", "default.commit"),
        ({"default": {"chat": 30}}, "an object", "default.chat"),
        ({"default": {"chat": {"day": 1}}}, "one of days, least, most", "default.chat.day"),
        ({"default": {"chat": {"days": 0}}}, "1 to 365 days", "default.chat.days"),
        ({"default": {"chat": {"days": 366}}}, "1 to 365 days", "default.chat.days"),
        ({"default": {"chat": {"days": 1.5}}}, "an integer from 0", "default.chat.days"),
        (
            {"clients": {"ann": {"chat": {"days": 9, "most": 8}}}},
            "days from least to most",
            "clients.ann.chat.days",
        ),
    ],
)
def test_read__fault__is_named_by_its_path(
    tmp_path: Path, content: Any, expected: str, place: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        policy(tmp_path, content)

    assert (caught.value.expected, caught.value.place) == (expected, place)
