"""``chainkit node status``: its forms, its exit codes, and what it refuses."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests
from click.testing import CliRunner, Result

from chainkit.errors import ConfigurationError, EndpointUnavailable, MalformedAnswer
from chainkit_node.cli import node as node_group
from chainkit_node.cli import status as status_module
from chainkit_node.cli.status import ask_monitor
from chainkit_node.inspection.json_form import as_json
from support.node_status import healthy, troubled
from support.reporting import OWN, Host, proof, register

URL = "http://127.0.0.1:9464"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "node.db"
    with closing(Host(path)) as host:
        register(host)
    return path


def command(*arguments: object, **environment: str) -> Result:
    words = ["status", *map(str, arguments)]
    # Its exit code is what the command returns, as the root command takes it.
    return CliRunner().invoke(node_group, words, env=environment, standalone_mode=False)


def test_status__healthy_database__ends_with_0_and_says_what_it_does_not_know(
    database: Path,
) -> None:
    result = command("--database", database)

    assert (result.return_value, result.exception) == (0, None)
    assert "attention    none" in result.output
    assert "running      not known: read from the database alone" in result.output
    found = json.loads(command("--database", database, "--json").output)
    assert (found["node_id"], found["attention"]) == (100, [])


def test_status__proof_against_this_node__ends_with_1(database: Path) -> None:
    path = database.with_name("accused.db")
    with closing(Host(path)) as host:
        register(host)
        host.submit(proof(5, OWN))

    result = command("--database", path, "--json")

    assert result.return_value == 1
    assert [each["reason"] for each in json.loads(result.output)["attention"]] == ["accused"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "missing --database FILE|URL, or --url URL"),
        (("--database", "node.db", "--url", URL), "give either --database or --url"),
    ],
)
def test_status__neither_or_both__is_refused(arguments: tuple[str, ...], said: str) -> None:
    result = command(*arguments)

    assert said in str(getattr(result.exception, "message", result.exception))


def answers(monkeypatch: pytest.MonkeyPatch, status: int, body: bytes) -> list[str]:
    """Have the monitor answer; return the URLs that are asked."""
    asked: list[str] = []

    def fetch(url: str, name: str) -> tuple[int, bytes]:
        asked.append(url)
        return status, body

    monkeypatch.setattr(status_module, "_fetch", fetch)
    return asked


@pytest.mark.parametrize(("status", "code"), [(healthy(), 0), (troubled(), 1)])
def test_status__by_url__asks_the_monitor_also_where_a_database_is_configured(
    monkeypatch: pytest.MonkeyPatch, status: Any, code: int
) -> None:
    asked = answers(monkeypatch, 200, json.dumps(as_json(status)).encode())

    result = command("--url", f"{URL}/", "--json", CHAINKIT_DATABASE="other.db")

    assert result.return_value == code
    assert asked == [f"{URL}/status.json"]
    assert json.loads(result.output) == json.loads(json.dumps(as_json(status)))


@pytest.mark.parametrize("url", ["ftp://host", "host:9464", "http://", "http://host/metrics"])
def test_ask_monitor__another_url__is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="http://HOST:PORT"):
        ask_monitor(url)


def test_ask_monitor__nobody_answers__says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(url: str, name: str) -> tuple[int, bytes]:
        raise requests.ConnectionError("Connection refused")

    monkeypatch.setattr(status_module, "_fetch", refuse)

    with pytest.raises(EndpointUnavailable) as caught:
        ask_monitor("http://user:secret@127.0.0.1:9464/")

    said = "monitor at 127.0.0.1:9464: expected an answer, got connection refused"
    assert str(caught.value).startswith(said)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "body", "kind", "said"),
    [
        (503, b'{"error": "away\\u001b"}', EndpointUnavailable, "a snapshot, got away\\\\x1b"),
        (503, b"busy", MalformedAnswer, "got HTTP status 503"),
        (404, b"expected one of /metrics", MalformedAnswer, "got HTTP status 404"),
        (200, b"<html>", MalformedAnswer, "JSON of format 4"),
        (200, b'{"format": 4}', MalformedAnswer, "a field taken_at"),
    ],
)
def test_ask_monitor__another_answer__is_told(
    monkeypatch: pytest.MonkeyPatch, status: int, body: bytes, kind: type[Exception], said: str
) -> None:
    answers(monkeypatch, status, body)

    with pytest.raises(kind, match=said):
        ask_monitor(URL)
