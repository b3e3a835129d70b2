"""The way to a node's MisbehaviorApi over gRPC: what it says of nodes that do not answer a page."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from chainkit.council.gathering.folder import ReportFolder
from chainkit.council.gathering.gatherer import Gathered, Gatherer, Host
from chainkit.council.gathering.node_answers import Share
from chainkit.council.gathering.transport import connect_for
from chainkit.errors import ConfigurationError
from chainkit.protocol.methods import MOST_MESSAGE_BYTES
from chainkit.types import Node
from support.audit.identities import key_of
from support.council.hosts import HonestHost, hosted, served

ESCAPE = "\x1b[2J\u202e"


def gathered(folder: Path, url: str, seconds: float = 60) -> Gathered:
    async def sleep(_: float) -> None:
        return None

    node = Node(100, key_of(100).public_key, url, True)
    share = Share(100, 1 << 30, seconds)
    gatherer = Gatherer(ReportFolder(folder), connect_for(seconds), share, sleep=sleep)
    (result,) = asyncio.run(gatherer.gather([Host(node, url)]))
    return result


def test_ask__honest_server__is_read_to_its_end(tmp_path: Path) -> None:
    host = HonestHost([hosted(100, 300, number) for number in range(1, 6)])
    with served(host.answer) as url:
        result = gathered(tmp_path, url)

    assert (result.fault, result.new) == (None, 5)


def test_ask__server_that_refuses__says_so_without_control_characters(tmp_path: Path) -> None:
    def refuse(_: bytes) -> bytes:
        raise ValueError(ESCAPE * 100)

    with served(refuse) as url:
        result = gathered(tmp_path, url)

    assert (result.fault or "").startswith(
        f"node at {url.removeprefix('http://')}: expected a page"
    )
    assert "got UNKNOWN" in (result.fault or "")
    assert (result.fault or "").isascii() and (result.fault or "").isprintable()
    assert len(result.fault or "") < 300


def test_ask__node_without_the_service__is_told(tmp_path: Path) -> None:
    with served(lambda _: b"", service="another.Service") as url:
        result = gathered(tmp_path, url)

    assert "got UNIMPLEMENTED" in (result.fault or "")


def test_ask__answer_larger_than_any__is_not_taken(tmp_path: Path) -> None:
    with served(lambda _: bytes(MOST_MESSAGE_BYTES + 1)) as url:
        result = gathered(tmp_path, url)

    assert "got RESOURCE_EXHAUSTED" in (result.fault or "")


def test_ask__server_of_plain_text_behind_https__is_away(tmp_path: Path) -> None:
    with served(lambda _: b"") as url:
        result = gathered(tmp_path, url.replace("http:", "https:"))

    assert "got UNAVAILABLE" in (result.fault or "")


@pytest.mark.parametrize("url", ["", "ftp://a", "http://a/path", "http://user@a", "unix:/tmp/a"])
def test_connect__other_url__is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="URL of the node"):
        connect_for(1)(url)
