"""``client device``: the installations of the person's inbox, and how a lost one is revoked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import click

from chainkit.errors import ConfigurationError
from chainkit.identity.writing import WalletSigner
from chainkit.signatures import SigningKey
from chainkit.terminal.command import CompleteGroup
from chainkit.terminal.facts import echo_fact, echo_notice
from chainkit.terminal.keystore import open_keystore
from chainkit.terminal.options import echo_json, json_option
from chainkit.terminal.tables import columns
from chainkit.terminal.waiting import told_while_waiting
from chainkit_client.cli.home import Home, home_options
from chainkit_client.cli.names import NAME, found_index, short
from chainkit_client.cli.opened import check_done, run, settled
from chainkit_client.cli.pages import time_of
from chainkit_client.home import Client
from chainkit_client.messenger import REGISTER_SECONDS, Messenger, NotSettled
from chainkit_client.network.devices import Device, is_backup, read_devices
from chainkit_client.network.inboxes import updates_of
from chainkit_client.network.revoking import revoke

_THIS: Final = "--this-device"


@click.group("device", cls=CompleteGroup)
def device() -> None:
    """List your devices, and revoke one that you lost.

    \b
    Example:
      chainkit client device list --home laptop
      chainkit client device revoke 6f0c1e5d --home laptop
    """


@device.command("list")
@click.option("--all", "is_all", is_flag=True, help="List revoked devices, too.")
@home_options
@json_option
def list_(is_all: bool, home: Home, as_json: bool) -> int:
    """List the devices of your inbox, by the chain.

    A device is an installation; the time of its addition is by the clock that it then had.

    \b
    Example:
      chainkit client device list --home laptop
    """

    async def do(client: Client) -> int:
        with told_while_waiting(lambda: "reading your inbox …"):
            devices = await read_own(client.messenger)
            shown = [each for each in devices if is_all or each.revoked_ns is None]
            backups = await _backups(client, shown)
        own = client.messenger.installation.public_key
        if as_json:
            echo_json([as_content(each, own, backups) for each in shown])
        else:
            click.echo("\n".join(lines(shown, own, backups)))
        return 0

    return run(home, do)


@device.command("revoke")
@click.argument("device_texts", nargs=-1, required=True, metavar="DEVICE…")
@click.option(
    "--wallet",
    "wallet_path",
    metavar="KEYSTORE",
    type=click.Path(path_type=Path),
    help="The keystore of the inbox's recovery wallet, with the client's password; the home's own "
    "if not given.",
)
@click.option(_THIS, "is_this_allowed", is_flag=True, help="Allow this device among the DEVICEs.")
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask whether you are sure.")
@home_options
@json_option
def revoke_command(
    device_texts: tuple[str, ...],
    wallet_path: Path | None,
    is_this_allowed: bool,
    is_sure: bool,
    home: Home,
    as_json: bool,
) -> int:
    """Take devices out of your inbox, and out of the groups that this device is in.

    DEVICE is a device's id in hex, or the beginning of one, as `device list --all` has it. Only the
    inbox's recovery wallet revokes: the one that made the inbox, unless it was changed. A revoked
    device is invited by nobody, gets no history, and leaves each group with the next commit of a
    member. It keeps what it has read, and the wallet's key where it has one.

    Call it again where it was interrupted: what is done stays done.

    \b
    Example:
      chainkit client device revoke 6f0c1e5d --home laptop
    """
    wallet = _wallet(home, wallet_path)

    async def do(client: Client) -> int:
        messenger = client.messenger
        with told_while_waiting(lambda: "reading your inbox …"):
            devices = await read_own(messenger)
            await messenger.sync()
        own = None if is_this_allowed else messenger.installation.public_key
        wanted = chosen(devices, device_texts, own, _in_groups(messenger))
        if not is_sure and not _is_sure(wanted):
            echo_notice("nothing was revoked")
            return 1
        await _revoke(messenger, wallet, wanted)
        groups = await _leave_groups(messenger, wanted)
        if as_json:
            echo_json({"revoked": [each.hex() for each in wanted], "groups": groups})
            return 0
        for each in wanted:
            echo_fact("revoked", f"device {short(each)}")
        echo_fact("groups", f"{groups} that this device is in, without them from now on")
        return 0

    return run(home, do)


def chosen(
    devices: Sequence[Device],
    texts: Iterable[str],
    own: bytes | None,
    in_groups: Collection[bytes],
) -> list[bytes]:
    """Return the keys of devices that texts name, each once.

    ``own`` is this device where it must not be revoked. One that was revoked is refused unless it
    is still in a group. Raises ConfigurationError.
    """
    found: dict[bytes, None] = {}
    for text in texts:
        each = devices[found_index("DEVICE", "device", [each.key for each in devices], text)]
        subject = f"device {short(each.key)}"
        if each.key == own:
            raise ConfigurationError(subject, f"another device, or {_THIS}", "this one")
        if each.revoked_ns is not None and each.key not in in_groups:
            got = f"one that was revoked: {time_of(each.revoked_ns)} UTC"
            raise ConfigurationError(subject, "one that is in the inbox", got)
        found[each.key] = None
    return list(found)


def lines(devices: Sequence[Device], own: bytes, backups: Collection[bytes]) -> list[str]:
    """Return a table of devices for people."""
    rows = [
        (each.key.hex()[:NAME], time_of(each.added_ns), ", ".join(_notes(each, own, backups)))
        for each in devices
    ]
    return columns(("device", "added", "is"), rows)


def as_content(each: Device, own: bytes, backups: Collection[bytes]) -> dict[str, Any]:
    """Return a device for a script."""
    return {
        "device": each.key.hex(),
        "added_ns": each.added_ns,
        "revoked_ns": each.revoked_ns,
        "is_this": each.key == own,
        "is_backup": each.key in backups,
    }


def _notes(each: Device, own: bytes, backups: Collection[bytes]) -> list[str]:
    found = ["this device"] if each.key == own else []
    if each.key in backups:
        found.append("backup")
    if each.revoked_ns is not None:
        found.append(f"revoked {time_of(each.revoked_ns)}")
    return found


async def read_own(messenger: Messenger) -> list[Device]:
    """Return all devices that the own inbox has, and had. Raises the network's errors."""
    await messenger.session.refresh()
    inbox_id = messenger.inbox_id
    return read_devices(inbox_id, await updates_of(messenger.session, inbox_id))


async def _backups(client: Client, devices: Iterable[Device]) -> set[bytes]:
    """Return the devices that only read, as far as nodes have their key packages."""
    session, engine = client.messenger.session, client.engine
    keys = [each.key for each in devices if each.revoked_ns is None]
    return {each for each in keys if await is_backup(session, engine, each)}


def _wallet(home: Home, path: Path | None) -> SigningKey:
    if path is None and not home.wallet_path.exists():
        expected = "a wallet: name its keystore by --wallet"
        raise ConfigurationError(f"home {home.home_path}", expected, "none")
    return open_keystore(path or home.wallet_path, home.password())


def _is_sure(wanted: Sequence[bytes]) -> bool:
    for each in wanted:
        echo_notice(f"device {short(each)} will be out of your inbox")
    return click.confirm("Revoke?", err=True)


async def _revoke(messenger: Messenger, wallet: SigningKey, keys: Sequence[bytes]) -> None:
    given = messenger.session, WalletSigner(wallet), messenger.inbox_id, keys, REGISTER_SECONDS
    with told_while_waiting(lambda: "revoking; Ctrl-C and the same command go on later …"):
        is_done = await revoke(*given)
    if not is_done:
        expected = f"a node that serves the revocation after {REGISTER_SECONDS:g} s"
        raise NotSettled("inbox", expected, "none yet: call the command again")


def _in_groups(messenger: Messenger) -> set[bytes]:
    """Return the keys of all members of the groups that this device is in."""
    ids = _joined(messenger)
    return {member.public_key for each in ids for member in messenger.members(each)}


def _joined(messenger: Messenger) -> list[bytes]:
    return [each.id for each in messenger.groups() if each.is_joined]


async def _leave_groups(messenger: Messenger, keys: Sequence[bytes]) -> int:
    """Remove devices from the groups that this one is in; return how many groups had them.

    This device does not remove itself: another member does.
    """
    others = {each for each in keys if each != messenger.installation.public_key}
    intents: list[tuple[bytes, int]] = []
    for group_id in _joined(messenger):
        there = others & {each.public_key for each in messenger.members(group_id)}
        if there:
            names = [each.hex() for each in sorted(there)]
            intents.append((group_id, await messenger.remove(group_id, names)))
    await settled(messenger)
    for group_id, intent_id in intents:
        done = [each for each in messenger.intents(group_id) if each.id == intent_id]
        check_done(done, f"removal from group {short(group_id)}")
    return len(intents)
