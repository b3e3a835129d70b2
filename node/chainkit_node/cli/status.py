"""``node status``: one look at a node, at its database or at its monitor."""

from __future__ import annotations

import time
from typing import Final
from urllib.parse import urlsplit

import click
import requests

from chainkit.chain.failures import unanswered_reason
from chainkit.chain.session import EndpointSession, deadline
from chainkit.documents.fields import parse_json
from chainkit.errors import ChainkitError, ConfigurationError, EndpointUnavailable, MalformedAnswer
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.options import echo_json, is_on_command_line, json_option
from chainkit.terminal.waiting import told_while_waiting
from chainkit_indexer.service.opening import existing
from chainkit_indexer.service.options import optional_database_option
from chainkit_node.inspection.attention import find_attention, page_path
from chainkit_node.inspection.building import build_status
from chainkit_node.inspection.json_form import as_json as status_as_json
from chainkit_node.inspection.json_form import parse_status
from chainkit_node.inspection.page import STATUS_PATH
from chainkit_node.inspection.snapshot import NO_LIVE, NodeStatus
from chainkit_node.inspection.text_form import as_text
from chainkit_node.inspection.words import shown

PATIENCE_SECONDS: Final = 10.0
_MOST_BYTES: Final = 8 << 20
"""Length of an answer: a snapshot is bounded, and far below."""
_CHUNK_BYTES: Final = 1 << 16

_DOWN: Final = page_path("indexer-down")


@click.command("status", cls=CompleteCommand)
@optional_database_option
@click.option(
    "--url",
    metavar="URL",
    help="The running node's monitor instead, `http://HOST:PORT` of its --listen.",
)
@json_option
def status_command(database: str | None, url: str | None, as_json: bool) -> int:
    """Show originators, peers, gaps, reorgs and reports, and whether anything needs attention.

    Each reason for attention has the page of the runbook that says what to do. Ends with 1 where
    something needs attention, such as an envelope that its originator leaves out, a peer
    that does not answer, or a proof against this node. By --database it needs no running node, and
    says nothing of streams and peers' answers; the same page is at / of --listen. `node watch`
    shows whether others reach this node.

    \b
    Example:
      chainkit node status --database node.db
    """
    if url is not None and is_on_command_line("database"):
        raise click.UsageError("give either --database or --url")
    if url is not None:
        status = ask_monitor(url)
    elif database is not None:
        with existing(database) as store:
            status = build_status(store, time.time(), None, NO_LIVE)
    else:
        raise click.UsageError("missing --database FILE|URL, or --url URL of a running node")
    if as_json:
        echo_json(status_as_json(status))
    else:
        click.echo(as_text(status))
    return 1 if find_attention(status) else 0


def ask_monitor(url: str) -> NodeStatus:
    """Return the snapshot that a node's monitor answers.

    Raises ConfigurationError for another URL, EndpointUnavailable where nobody answers or the node
    cannot, and MalformedAnswer where another server answers.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/"):
        raise ConfigurationError("--url", "http://HOST:PORT", "another URL")
    # Without a user and his password.
    name = f"monitor at {shown(parts.netloc.rpartition('@')[2])}"
    try:
        with told_while_waiting(lambda: f"waiting for the {name}, up to {PATIENCE_SECONDS:g} s"):
            status, body = _fetch(f"{url.rstrip('/')}{STATUS_PATH}", name)
    except requests.RequestException as error:
        got = unanswered_reason(error)
        raise EndpointUnavailable(name, "an answer", got, _DOWN) from error
    except ValueError as error:
        kind = type(error).__name__
        raise EndpointUnavailable(name, "an answer", f"none ({kind})", _DOWN) from error
    content = _parsed(body, name)
    if status == 503 and isinstance(content, dict) and "error" in content:
        page = page_path("database-unavailable")
        raise EndpointUnavailable(name, "a snapshot", shown(str(content["error"])), page)
    if status != 200:
        expected = f"a node's {STATUS_PATH}"
        raise MalformedAnswer(name, expected, f"HTTP status {status}")
    return parse_status(content)


def _fetch(url: str, name: str) -> tuple[int, bytes]:
    with EndpointSession() as session, deadline(PATIENCE_SECONDS):
        # An authentication that adds nothing: without any, requests looks into .netrc.
        session.auth = lambda request: request
        timeouts = (PATIENCE_SECONDS, PATIENCE_SECONDS)
        answer = session.get(url, timeout=timeouts, allow_redirects=False, stream=True)
        body = b""
        for chunk in answer.iter_content(_CHUNK_BYTES):
            body += chunk
            if len(body) > _MOST_BYTES:
                raise MalformedAnswer(name, f"at most {_MOST_BYTES} bytes", "more")
        return answer.status_code, body


def _parsed(body: bytes, name: str) -> object:
    try:
        content: object = parse_json(body, name)
    except ChainkitError:
        return None
    return content
