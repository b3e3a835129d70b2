"""``client accept``, ``send``, ``read`` and ``intents``: what people do in a group."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Final

import click

from chainkit.errors import ConfigurationError
from chainkit.service.log_lines import one_line
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.facts import echo_fact, echo_notice
from chainkit.terminal.options import echo_json, json_option
from chainkit_client.cli import pages
from chainkit_client.cli.home import Home, home_options
from chainkit_client.cli.names import find_group, find_joined, short
from chainkit_client.cli.opened import PASSING, brought_up_to_date, check_done, run, settled
from chainkit_client.home import Client
from chainkit_client.messenger import Messenger
from chainkit_client.storage.schema import DeliveryStatus

_FOLLOW_SECONDS: Final = 0.5
_group = click.argument("group_text", metavar="GROUP")


@click.command("accept", cls=CompleteCommand)
@_group
@click.option("--reject", "is_rejected", is_flag=True, help="Refuse it: it is read no more.")
@home_options
def accept_command(group_text: str, is_rejected: bool, home: Home) -> int:
    """Agree to be in a group that somebody else put you into.

    \b
    Example:
      chainkit client accept 3fa2 --home bob
    """

    async def do(client: Client) -> int:
        messenger = client.messenger
        await brought_up_to_date(messenger)
        found = find_group(messenger.groups(), group_text)
        (messenger.reject if is_rejected else messenger.accept)(found.id)
        click.echo(f"{'rejected' if is_rejected else 'accepted'} group {found.id.hex()}")
        return 0

    return run(home, do)


@click.command("send", cls=CompleteCommand)
@_group
@click.argument("text", metavar="TEXT")
@home_options
@json_option
def send_command(group_text: str, text: str, home: Home, as_json: bool) -> int:
    """Send a message, wait until it is read back, and print its id.

    TEXT may be - for standard input: other users of the machine see what is on a command line.

    \b
    Example:
      chainkit client send 3fa2 "hello, Bob" --home alice
    """
    words = sys.stdin.read().rstrip("\n") if text == "-" else text
    if not words:
        raise ConfigurationError("TEXT", "a message", "nothing")

    async def do(client: Client) -> int:
        return await send(client.messenger, group_text, words, as_json)

    return run(home, do)


async def send(messenger: Messenger, group_text: str, words: str, as_json: bool) -> int:
    """Queue a message first, so that it is stored; then wait for the network."""
    try:
        found = find_joined(messenger.groups(), group_text)
    except ConfigurationError:
        # The group may be one that this client has not read of yet.
        await messenger.sync()
        found = find_joined(messenger.groups(), group_text)
    message_id = messenger.send(found.id, words)
    await settled(messenger)
    intents = [each for each in messenger.intents(found.id) if each.message_id == message_id]
    check_done(intents, f"message {short(message_id)}")
    [sent] = [each for each in messenger.messages(found.id) if each.id == message_id]
    if as_json:
        echo_json(pages.message_as_json(sent))
        return 0
    echo_fact("message", message_id.hex())
    if sent.place is None:
        echo_fact("kept", "nobody else is in the group yet")
    else:
        echo_fact("originator", f"{sent.place[0]}, sequence id {sent.place[1]}")
    return 0


@click.command("read", cls=CompleteCommand)
@_group
@click.option("--follow", is_flag=True, help="Go on, until you interrupt it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@home_options
def read_command(group_text: str, follow: bool, home: Home, as_json: bool) -> int:
    """Print the messages of a group, and who came and went.

    Each line has the beginning of the message's id, its originator's time, sender and words.

    \b
    Example:
      chainkit client read 3fa2 --follow --home bob
    """

    async def do(client: Client) -> int:
        await brought_up_to_date(client.messenger)
        reader = Reader(client.messenger, group_text, as_json)
        reader.tell(is_last=not follow)
        while follow:
            await asyncio.sleep(_FOLLOW_SECONDS)
            await reader.follow()
        return 0

    return run(home, do)


class Reader:
    """Prints each message of a group once."""

    def __init__(self, messenger: Messenger, group_text: str, as_json: bool) -> None:
        """Take the group by its id or the beginning of its id. Raises ConfigurationError."""
        self._messenger = messenger
        groups = [*messenger.groups(), *messenger.imported_groups()]
        self._group_id = find_group(groups, group_text).id
        self._own = messenger.inbox_id.hex()
        self._as_json = as_json
        self._told: set[bytes] = set()
        self._is_followed = any(each.id == self._group_id for each in messenger.groups())
        self._gone = 0
        self._trouble = ""

    async def follow(self) -> None:
        """Sync, and print new messages. An error of the network is reported once."""
        trouble = ""
        try:
            await self._messenger.sync()
        except PASSING as error:
            trouble = one_line(str(error))
        if trouble != self._trouble:
            echo_notice(f"trying again: {trouble}" if trouble else "the network answers again")
        self._trouble = trouble
        self.tell(is_last=False)

    def tell(self, is_last: bool) -> None:
        """Print new messages; waiting own messages only where this is the last call."""
        for each in self._messenger.messages(self._group_id):
            waits = each.delivery is DeliveryStatus.UNPUBLISHED
            if each.id in self._told or (waits and not is_last):
                continue
            self._told.add(each.id)
            if self._as_json:
                click.echo(json.dumps(pages.message_as_json(each), sort_keys=True))
            else:
                click.echo(pages.message_line(each, self._own, time.time_ns()))
        sys.stdout.flush()
        self._tell_gap()

    def _tell_gap(self) -> None:
        """Say that payloads are missing for ever, on the standard error, where it is news."""
        gone = len(self._messenger.expired(self._group_id)) if self._is_followed else 0
        if gone > self._gone:
            echo_notice(pages.gap_line(gone))
        self._gone = gone


@click.command("intents", cls=CompleteCommand)
@_group
@home_options
@json_option
def intents_command(group_text: str, home: Home, as_json: bool) -> int:
    """List what you queued in a group, and how far it is; it is done when it is PROCESSED.

    \b
    Example:
      chainkit client intents 3fa2 --home alice
    """

    async def do(client: Client) -> int:
        messenger = client.messenger
        await brought_up_to_date(messenger)
        intents = messenger.intents(find_group(messenger.groups(), group_text).id)
        if as_json:
            echo_json([pages.intent_as_json(each) for each in intents])
        else:
            click.echo("\n".join(pages.intents_lines(intents)))
        return 0

    return run(home, do)
