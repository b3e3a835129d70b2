"""Warns of URLs that do not answer, before they are written into the registry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click

from chainkit.contracts.registry import NOT_ASKED, find_silent
from chainkit.terminal.facts import echo_notice
from chainkit.terminal.options import gathered, several
from chainkit.text.printable import printable


@dataclass(frozen=True, slots=True)
class UrlCheck:
    """Whether new URLs are asked for an answer, and which."""

    check_url: bool
    check_private_url: bool

    def warn_of_silence(self, http_addresses: Sequence[str]) -> None:
        """Warn on standard error of HTTP addresses without an answer, or not asked, and why."""
        if not self.check_url:
            return
        silent = find_silent(http_addresses, asks_private=self.check_private_url)
        for url, reason in silent.items():
            words = f"does not answer: {reason}"
            if reason == NOT_ASKED:
                words = f"is not asked for an answer: it is {reason}; --check-private-url asks it"
            echo_notice(f"warning: {printable(url)} {words}")


url_check_options = several(
    click.option(
        "--no-check-url",
        "check_url",
        is_flag=True,
        flag_value=False,
        default=True,
        help="Do not ask a new URL for an answer; one that is silent is only warned of.",
    ),
    click.option(
        "--check-private-url",
        is_flag=True,
        help="Ask a new URL also where it leads to a loopback, link-local or private one.",
    ),
    gathered(UrlCheck, "url_check"),
)
"""Decorator: the command takes ``url_check``, a UrlCheck."""
