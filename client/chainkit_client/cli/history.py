"""``client history``: messages for another device of the same person, as an encrypted file."""

from __future__ import annotations

from typing import Final

import click

from chainkit.terminal.command import LazyCommand, LazyGroup

_ACCOUNTS: Final = "chainkit_client.cli.accounts"
_FILES: Final = "chainkit_client.cli.history_files"
_REQUESTS: Final = "chainkit_client.cli.history_requests"

_COMMANDS: Final = {
    "account": LazyCommand(
        _ACCOUNTS,
        "account",
        "Keep a file that reads your messages where all your devices are lost.",
    ),
    "apply": LazyCommand(
        _REQUESTS,
        "apply_command",
        "Fetch and read the messages that another device of yours sent.",
    ),
    "approve": LazyCommand(
        _REQUESTS,
        "approve_command",
        "Send the messages of this device to another one of yours that asks for them.",
    ),
    "check": LazyCommand(
        "chainkit_client.cli.history_check",
        "check_command",
        "Compare what other devices sent with what nodes and chain still have.",
    ),
    "deny": LazyCommand(
        _REQUESTS,
        "deny_command",
        "Delete the request of another device.",
    ),
    "key": LazyCommand(
        _FILES,
        "key_command",
        "Make a key for a history file that is written elsewhere, and print its recipient.",
    ),
    "list": LazyCommand(
        _REQUESTS,
        "list_command",
        "List what other devices of yours ask this one for.",
    ),
    "load": LazyCommand(
        _FILES,
        "load_command",
        "Read the messages of a file that another device of yours wrote.",
    ),
    "request": LazyCommand(
        _REQUESTS,
        "request_command",
        "Ask your other devices for the messages that they have.",
    ),
    "save": LazyCommand(
        _FILES,
        "save_command",
        "Write all messages to an encrypted file, and its key to another one.",
    ),
    "status": LazyCommand(
        _REQUESTS,
        "status_command",
        "List what this device asked others for, and how far it is.",
    ),
    "storage": LazyCommand(
        _REQUESTS,
        "storage_command",
        "Show or change the storage service that carries history between your devices.",
    ),
}


@click.group("history", cls=LazyGroup, lazy_commands=_COMMANDS)
def history() -> None:
    """Carry messages to another device of yours, which joined after they were sent.

    \b
    Example:
      chainkit client history save past.age --key past.key --home laptop
      chainkit client history load past.age --key past.key --home phone
      chainkit client history check --home phone
      chainkit client history request --home phone
      chainkit client history approve 3fa2 --home laptop
      chainkit client history account create backup.account --home laptop
    """
