"""Checks whether a node's HTTP address answers. The request goes to a stranger, so it is short."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from http.client import BadStatusLine
from typing import Final

import requests

from chainkit.chain.session import EndpointSession, deadline, public_addresses_only
from chainkit.text.hosts import has_private_host

PATIENCE_SECONDS: Final = 5.0
"""How long a node may take to begin its answer, in seconds."""

NOT_ASKED: Final = "loopback, link-local or private"
"""Why an address was not asked."""

_AT_ONCE: Final = 32
_SETTINGS: Final = re.compile(r"...\x04.\0{4}", re.DOTALL)
"""Header of the frame that begins HTTP/2 (RFC 9113 §3.4, §4.1)."""
_LOWEST_FAULT: Final = 500
"""From this HTTP status on, the server itself reports that it cannot answer."""


def find_silent(
    http_addresses: Sequence[str],
    patience_seconds: float = PATIENCE_SECONDS,
    *,
    asks_private: bool = False,
) -> dict[str, str]:
    """Return why some HTTP addresses do not answer; addresses that answer are left out.

    A stranger's URL may name a machine of the reader's own network: loopback, link-local and
    private addresses are asked only with ``asks_private``, and else found to be NOT_ASKED.

    Any answer but a server's fault suffices: only its status is read, no redirect is followed, and
    no password that this machine keeps for the host is sent.
    """
    urls = list(dict.fromkeys(http_addresses))
    # A thread's late answer is still stored here, and harmless.
    found = dict.fromkeys(urls, f"no answer within {patience_seconds:g} s")
    for start in range(0, len(urls), _AT_ONCE):
        some = urls[start : start + _AT_ONCE]
        _ask(some, found, partial(_reason, patience_seconds, asks_private), patience_seconds)
    return {url: reason for url, reason in found.items() if reason}


def _ask(
    urls: Sequence[str],
    found: dict[str, str],
    reason_of: Callable[[str], str],
    patience_seconds: float,
) -> None:
    """Ask several at once. Nobody waits for a thread whose resolver takes longer than that."""

    def ask(url: str) -> None:
        found[url] = reason_of(url)

    threads = [threading.Thread(target=ask, args=(url,), daemon=True) for url in urls]
    for thread in threads:
        thread.start()
    patience_ends = time.monotonic() + patience_seconds + 1
    for thread in threads:
        thread.join(max(0.0, patience_ends - time.monotonic()))


def _reason(patience_seconds: float, asks_private: bool, url: str) -> str:
    """Return why a URL does not answer; nothing where it answers."""
    if asks_private:
        return _answer(url, patience_seconds)
    if has_private_host(url):
        return NOT_ASKED
    with public_addresses_only() as refused:
        reason = _answer(url, patience_seconds)
    return NOT_ASKED if refused and reason else reason


def _answer(url: str, patience_seconds: float) -> str:
    timeouts = (patience_seconds, patience_seconds)
    try:
        with EndpointSession() as session, deadline(patience_seconds):
            # An authentication that adds nothing: without any, requests looks into .netrc.
            session.auth = lambda request: request
            answer = session.get(url, timeout=timeouts, allow_redirects=False, stream=True)
            answer.close()
    except requests.exceptions.SSLError:
        return "no valid certificate"
    except requests.Timeout:
        return f"no answer within {patience_seconds:g} s"
    except (requests.RequestException, ValueError) as error:
        return "" if _speaks_http2(error) else "no connection, or no HTTP"
    return f"HTTP status {answer.status_code}" if answer.status_code >= _LOWEST_FAULT else ""


def _speaks_http2(error: BaseException | None) -> bool:
    """Return whether an answer was no HTTP/1.1 because the server speaks gRPC alone."""
    while error is not None and not isinstance(error, BadStatusLine):
        error = error.__context__
    return error is not None and _SETTINGS.match(str(error.args[0])) is not None
