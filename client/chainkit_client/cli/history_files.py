"""``client history save`` and others: messages in an encrypted file that a person carries."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Final

import click

from chainkit.documents.files import open_regular, read_regular, write_new
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.facts import echo_fact
from chainkit.terminal.options import echo_json, json_option
from chainkit.terminal.waiting import told_while_waiting
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_client.cli.history_requests import days_option
from chainkit_client.cli.home import Home, home_options
from chainkit_client.cli.loaded import tell_loaded
from chainkit_client.cli.opened import open_store, run
from chainkit_client.history.loading import load
from chainkit_client.history.packing import new_key, recipient_of
from chainkit_client.history.saving import Saved, save
from chainkit_client.home import Client
from chainkit_client.storage.store import Store

_DAY_NS: Final = 86_400 * NANOSECONDS_PER_SECOND
_MOST_KEY: Final = 4096

_file = click.argument("file_path", metavar="FILE", type=click.Path(path_type=Path))


@click.command("save", cls=CompleteCommand)
@_file
@click.option(
    "--key",
    "key_path",
    metavar="KEY",
    required=True,
    type=click.Path(path_type=Path),
    help="Where to write the file's key: a new file, which only you can read.",
)
@days_option
@home_options
@json_option
def save_command(
    file_path: Path, key_path: Path, days: int | None, home: Home, as_json: bool
) -> int:
    """Write all messages to an encrypted file, and its key to another one.

    The file tells neither how many messages it has nor how long they are. Both files together open
    all of it: carry them on different ways, and delete the key once it was used. It asks nobody.

    \b
    Example:
      chainkit client history save past.age --key past.key --home laptop
    """
    since_ns = 0 if days is None else time.time_ns() - days * _DAY_NS
    store = open_store(home)
    try:
        with told_while_waiting(lambda: "writing what was said …"):
            saved = _saved(store, file_path, key_path, since_ns)
    finally:
        store.close()
    if as_json:
        names = ("groups", "messages", "length")
        echo_json({name: getattr(saved, name) for name in names})
        return 0
    echo_fact("messages", f"{saved.messages:,} of {saved.groups} groups")
    echo_fact("file", f"{file_path}, {saved.length:,} bytes")
    echo_fact("key", str(key_path))
    return 0


def _saved(store: Store, file_path: Path, key_path: Path, since_ns: int) -> Saved:
    key = new_key()
    # Written first: a file without its key would be of no use.
    write_new(key_path, f"{key}\n".encode(), f"key {key_path}", is_private=True)
    try:
        return save(store, file_path, recipient_of(key), since_ns)
    except BaseException:
        key_path.unlink(missing_ok=True)
        raise


@click.command("key", cls=CompleteCommand)
@click.argument("key_path", metavar="KEY", type=click.Path(path_type=Path))
@json_option
def key_command(key_path: Path, as_json: bool) -> int:
    """Make a key for a history file that is written elsewhere, and print its recipient.

    Only this key opens a file that is encrypted to the recipient, which is no secret. Delete the
    key once it was used. It asks nobody.

    \b
    Example:
      chainkit client history key past.key
    """
    key = new_key()
    write_new(key_path, f"{key}\n".encode(), f"key {key_path}", is_private=True)
    if as_json:
        echo_json({"recipient": recipient_of(key)})
    else:
        echo_fact("recipient", recipient_of(key))
    return 0


@click.command("load", cls=CompleteCommand)
@_file
@click.option(
    "--key",
    "key_path",
    metavar="KEY",
    required=True,
    type=click.Path(path_type=Path),
    help="The file's key.",
)
@home_options
@json_option
def load_command(file_path: Path, key_path: Path, home: Home, as_json: bool) -> int:
    """Read the messages of a file that another device of yours wrote.

    The device must be in your inbox now. A file that was cut or altered is refused whole, and a
    message that is there already stays as it is. `read` marks the messages: nobody but that device
    says that their senders wrote these words.

    \b
    Example:
      chainkit client history load past.age --key past.key --home phone
    """
    key = _read_key(key_path)

    async def do(client: Client) -> int:
        messenger = client.messenger
        inbox = await messenger.find_inbox(messenger.inbox_id.hex())
        with (
            told_while_waiting(lambda: "reading the file …"),
            open_regular(file_path, f"file {file_path}") as file,
        ):
            store, devices = client.store, inbox.installations
            loaded = await asyncio.to_thread(load, store, file, key, inbox.id, devices)
        tell_loaded(loaded, as_json)
        return 0

    return run(home, do)


def _read_key(path: Path) -> str:
    """Return the key in a file, beside which age's own tool may have written comments."""
    lines = read_regular(path, f"key {path}", _MOST_KEY).decode("utf-8", "replace").splitlines()
    return next((each.strip() for each in lines if each and not each.startswith("#")), "")
