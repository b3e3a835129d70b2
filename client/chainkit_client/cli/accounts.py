"""``client history account``: a backup account file, for who lost all devices."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

import click

from chainkit.documents.files import open_regular, write_new
from chainkit.errors import ConfigurationError, MalformedData
from chainkit.identity.text import eip191_digest
from chainkit.signatures import SigningKey
from chainkit.terminal.command import CompleteGroup
from chainkit.terminal.facts import echo_fact, echo_notice
from chainkit.terminal.keystore import open_keystore
from chainkit.terminal.options import echo_json, json_option
from chainkit.terminal.passwords import read_password
from chainkit.terminal.waiting import told_while_waiting
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_client.accounts.account_file import (
    SALT_LENGTH,
    BackupAccount,
    SealedBy,
    open_account,
    read_sealed_account,
)
from chainkit_client.accounts.creating import new_account, register_account, write_account
from chainkit_client.accounts.page import read_page
from chainkit_client.accounts.passphrases import (
    check_passphrase,
    new_wallet_passphrase,
    wallet_passphrase,
)
from chainkit_client.accounts.restoring import (
    check_account,
    receive,
    restore,
    temporary_client,
)
from chainkit_client.cli.history_requests import days_option, find_ask, send_history, tell_asks
from chainkit_client.cli.home import Home, home_options
from chainkit_client.cli.loaded import tell_loaded
from chainkit_client.cli.opened import run
from chainkit_client.home import Client

_DAY_NS: Final = 86_400 * NANOSECONDS_PER_SECOND
_SIGNATURE_BYTES: Final = 65

_file = click.argument("file_path", metavar="FILE", type=click.Path(path_type=Path))
_passphrase_option = click.option(
    "--passphrase-file",
    "passphrase_path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="File with the account file's passphrase; asked for where it is not given.",
)
_wallet_option = click.option(
    "--wallet",
    "wallet_path",
    metavar="KEYSTORE",
    type=click.Path(path_type=Path),
    help="The wallet's keystore, with the client's password; the home's own if not given.",
)
_typed_option = click.option(
    "--type-signature",
    "is_typed",
    is_flag=True,
    help="The wallet is elsewhere: print the text that it signs, and ask for the signature.",
)


@click.group("account", cls=CompleteGroup)
def account() -> None:
    """Keep a file that reads your messages where all your devices are lost.

    \b
    Example:
      chainkit client history account create backup.account --home laptop
      chainkit client history account restore backup.account --home phone
      chainkit client history account convert backup.account --home laptop
    """


@account.command("create")
@_file
@click.option(
    "--sealed-by",
    type=click.Choice([each.value for each in SealedBy]),
    default=SealedBy.PASSPHRASE.value,
    show_default=True,
    help="The secret that opens the file: a passphrase, or a signature of your wallet.",
)
@_passphrase_option
@_wallet_option
@_typed_option
@days_option
@home_options
@json_option
def create_command(
    file_path: Path,
    sealed_by: str,
    passphrase_path: Path | None,
    wallet_path: Path | None,
    is_typed: bool,
    days: int | None,
    home: Home,
    as_json: bool,
) -> int:
    """Write a backup account file, and put its installation into your inbox and groups.

    The file has the messages of this device, and the keys of an installation that only reads: no
    client takes a message of it. Later messages are with the nodes, for as long as they keep
    them. Call it again with the same file where it was interrupted, once a month, and after you
    joined groups: it brings the installation to where it is missing.

    A wallet has to sign twice. One that signs the same text in two ways is refused.

    \b
    Example:
      chainkit client history account create backup.account --home laptop
    """
    since_ns = 0 if days is None else time.time_ns() - days * _DAY_NS
    wallet = open_keystore(wallet_path or home.wallet_path, home.password())
    secrets = _Secrets(home, passphrase_path, wallet_path, is_typed)
    kind = SealedBy(sealed_by)

    async def do(client: Client) -> int:
        is_new = not file_path.exists()
        if is_new:
            inbox_id, salt = client.messenger.inbox_id, os.urandom(SALT_LENGTH)
            made = new_account(client.engine, inbox_id)
            given = kind, salt, secrets.new(kind, salt)
            with told_while_waiting(lambda: "writing the file …"):
                write_account(made, file_path, *given, client.store, since_ns)
        else:
            made, file = _opened(file_path, secrets)
            file.close()
            await check_inbox(client, made)
        with told_while_waiting(lambda: "registering; the same command goes on later …"):
            groups = await register_account(client, wallet, made)
        key = made.installation.public_key.hex()
        if as_json:
            echo_json({"installation": key, "groups": groups, "is_new": is_new})
            return 0
        echo_fact("file", f"{file_path}: keep it, and what opens it, in two places")
        echo_fact("backup", f"device {key}")
        echo_fact("groups", f"{groups} that it reads from now on")
        return 0

    return run(home, do)


@account.command("restore")
@_file
@_passphrase_option
@_wallet_option
@_typed_option
@home_options
@json_option
def restore_command(
    file_path: Path,
    passphrase_path: Path | None,
    wallet_path: Path | None,
    is_typed: bool,
    home: Home,
    as_json: bool,
) -> int:
    """Read the messages of a backup account file, and those that nodes have for it.

    A client of the account is made in a folder of its own, and deleted with all that it read once
    this home has it. Where it is interrupted, the same command begins again. The account must be in
    your inbox now.

    \b
    Example:
      chainkit client history account restore backup.account --home phone
    """
    secrets = _Secrets(home, passphrase_path, wallet_path, is_typed)

    async def do(client: Client) -> int:
        found, past = _opened(file_path, secrets)
        with past, told_while_waiting(lambda: "reading what nodes have …"):
            settings = home.read_settings()
            loaded = await restore(client, settings, home.home_path, found, past)
        tell_loaded(loaded, as_json)
        return 0

    return run(home, do)


@account.command("convert")
@_file
@click.argument("request_text", required=False, metavar="[REQUEST]")
@_passphrase_option
@_wallet_option
@_typed_option
@days_option
@home_options
@json_option
def convert_command(
    file_path: Path,
    request_text: str | None,
    passphrase_path: Path | None,
    wallet_path: Path | None,
    is_typed: bool,
    days: int | None,
    home: Home,
    as_json: bool,
) -> int:
    """Answer the request of another device with what a backup account file reads.

    Without REQUEST it lists what other devices ask the account for. With one, it asks for the PIN
    that the other device shows. The file does not leave this machine, and nothing of the account
    stays in this home, which only names network and storage service.

    \b
    Example:
      chainkit client history account convert backup.account --home laptop
      chainkit client history account convert backup.account 3fa2 --home laptop
    """
    since_ns = 0 if days is None else time.time_ns() - days * _DAY_NS
    secrets = _Secrets(home, passphrase_path, wallet_path, is_typed)

    async def do(client: Client) -> int:
        settings = home.read_settings()
        found, past = _opened(file_path, secrets)
        await check_account(client.messenger, found)
        given = client.chain, settings, home.home_path, found, past
        with past:
            async with temporary_client(*given) as backup:
                with told_while_waiting(lambda: "reading what nodes have …"):
                    await receive(backup.messenger)
                    await backup.history.sync()
                asks = backup.history.provider.asks()
                if request_text is None:
                    tell_asks(asks, as_json)
                else:
                    found_ask = find_ask(asks, request_text)
                    await send_history(backup.history, found_ask, since_ns, as_json)
        return 0

    return run(home, do, tells_asked=False)


@account.command("page")
@click.argument("page_path", metavar="FILE", type=click.Path(path_type=Path))
def page_command(page_path: Path) -> int:
    """Write a page that makes a history file of a backup account file, for one other device.

    A browser opens the page, also without a network. It asks nobody, and the account file does not
    leave the machine. It reads the messages in the file: `convert` also reads the later ones.
    `history key` makes the key of the device on which `history load` reads the file.

    \b
    Example:
      chainkit client history account page convert.html
    """
    write_new(page_path, read_page(), f"page {page_path}")
    echo_fact("page", f"{page_path}: open it in a browser, without a network if you like")
    return 0


async def check_inbox(client: Client, found: BackupAccount) -> None:
    """Raise MalformedData where a file that is there is another person's."""
    if found.inbox_id != client.messenger.inbox_id:
        expected = f"one of inbox {client.messenger.inbox_id.hex()}"
        raise MalformedData("backup account", expected, f"one of {found.inbox_id.hex()}")


class _Secrets:
    """Asks for what opens a file: a passphrase, or a wallet's signature."""

    def __init__(
        self, home: Home, passphrase_path: Path | None, wallet_path: Path | None, is_typed: bool
    ) -> None:
        self._home = home
        self._passphrase_path = passphrase_path
        self._wallet_path = wallet_path
        self._is_typed = is_typed

    def new(self, kind: SealedBy, salt: bytes) -> str:
        if kind is SealedBy.PASSPHRASE:
            return check_passphrase(self._passphrase(confirm=True))
        address = self._home.read_settings().address
        return new_wallet_passphrase(salt, address, self._sign())

    def opening(self, kind: SealedBy, salt: bytes) -> str:
        if kind is SealedBy.PASSPHRASE:
            return self._passphrase(confirm=False)
        return wallet_passphrase(salt, self._home.read_settings().address, self._sign())

    def _passphrase(self, confirm: bool) -> str:
        if self._passphrase_path is not None:
            return read_password(self._passphrase_path)
        asked = "Passphrase of the account file"
        typed: str = click.prompt(asked, hide_input=True, confirmation_prompt=confirm, err=True)
        return typed

    def _sign(self) -> Callable[[bytes], bytes]:
        if self._is_typed:
            return _typed_signature
        path = self._wallet_path or self._home.wallet_path
        return _signature_of(open_keystore(path, self._home.password()))


def _signature_of(key: SigningKey) -> Callable[[bytes], bytes]:
    return lambda text: key.sign(eip191_digest(text))


def _typed_signature(text: bytes) -> bytes:
    echo_notice(f"sign this text with your wallet:\n\n{text.decode()}\n")
    typed: str = click.prompt("Signature", hide_input=True, err=True)
    try:
        signature = bytes.fromhex(typed.strip().removeprefix("0x"))
    except ValueError:
        signature = b""
    if len(signature) != _SIGNATURE_BYTES:
        expected = f"{_SIGNATURE_BYTES} bytes in hex"
        raise ConfigurationError("signature", expected, "another text")
    return signature


def _opened(path: Path, secrets: _Secrets) -> tuple[BackupAccount, BinaryIO]:
    """Return an account, and its file at the history behind the line; the caller closes it."""
    file = open_regular(path, f"file {path}")
    try:
        sealed = read_sealed_account(file)
        passphrase = secrets.opening(sealed.sealed_by, sealed.salt)
        with told_while_waiting(lambda: "opening the file …"):
            return open_account(sealed, passphrase), file
    except BaseException:
        file.close()
        raise
