"""``client init`` and ``client whoami``: the identity of this client."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click
from eth_account import Account

from chainkit.errors import ConfigurationError
from chainkit.protocol.retention import LEAST_RETENTION_DAYS, MAXIMUM_RETENTION_DAYS
from chainkit.service.log_lines import one_line
from chainkit.signatures import SigningKey, address_of
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.facts import echo_fact, echo_notice
from chainkit.terminal.keystore import open_keystore, write_keystore
from chainkit.terminal.options import echo_json, file_option, json_option
from chainkit.terminal.waiting import told_while_waiting
from chainkit_client.cli.history_requests import ask, asked_as_json, tell_asked
from chainkit_client.cli.home import Home, home_options
from chainkit_client.cli.opened import PASSING, open_store
from chainkit_client.exchange.errors import ExchangeError
from chainkit_client.home import Client, Settings, opened
from chainkit_client.messenger import NotSettled
from chainkit_client.storage.exchange_rows import OwnRequest
from chainkit_client.storage.own import read_installation

_REGISTER_SECONDS: Final = 120.0


@click.command("init", cls=CompleteCommand)
@home_options
@click.option("--gateway", "gateway_url", metavar="URL", help="The application's gateway (gRPC).")
@click.option(
    "--rpc",
    "rpc_url",
    envvar="CHAINKIT_RPC",
    show_envvar=True,
    metavar="URL",
    help="JSON-RPC endpoint of the chain.",
)
@file_option(
    "--deployment",
    "deployment_path",
    "CHAINKIT_DEPLOYMENT",
    "Deployment record of the contracts.",
)
@click.option(
    "--wallet",
    "wallet_path",
    metavar="KEYSTORE",
    type=click.Path(path_type=Path),
    help="The wallet's keystore, with the client's password; one is made where none is given.",
)
@click.option(
    "--nonce",
    type=click.IntRange(0, 2**64 - 1),
    default=0,
    show_default=True,
    metavar="N",
    help="Which of the wallet's inboxes.",
)
@click.option(
    "--retention-days",
    type=click.IntRange(LEAST_RETENTION_DAYS, MAXIMUM_RETENTION_DAYS),
    metavar="DAYS",
    help="For how long nodes keep your texts, within the gateway's bounds; without it the gateway "
    "decides. Members who read later do not get them.",
)
@click.option(
    "--storage",
    "storage_url",
    metavar="URL",
    help="Storage service that carries history between your devices; without it history is off.",
)
@json_option
def init_command(
    home: Home,
    gateway_url: str | None,
    rpc_url: str | None,
    deployment_path: Path | None,
    wallet_path: Path | None,
    nonce: int,
    retention_days: int | None,
    storage_url: str | None,
    as_json: bool,
) -> int:
    """Make a home folder, register an inbox for a wallet, and offer a key package.

    Where the inbox has other devices and --storage is given, it asks them for their messages, and
    says what to type there.

    Call it again where it was interrupted: what is done stays done. Options that are not given are
    then taken from the folder's settings, and another URL replaces the one there.

    \b
    Example:
      chainkit client init --home alice --gateway http://127.0.0.1:5050 \\
        --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
    before = home.read_settings() if home.settings_path.exists() else None
    gateway = gateway_url or (before and before.gateway)
    rpc = rpc_url or (before and before.rpc)
    deployment = (
        str(deployment_path.absolute()) if deployment_path else before and before.deployment
    )
    given = {"--gateway": gateway, "--rpc": rpc, "--deployment": deployment}
    if not (gateway and rpc and deployment):
        missing = ", ".join(name for name, value in given.items() if not value)
        raise click.UsageError(f"missing {missing}")
    is_new = not home.database_path.exists() and not home.wallet_path.exists()
    password = home.password(confirm=is_new)
    home.make()
    wallet = _wallet(home, wallet_path, password)
    days = retention_days or (before.retention_days if before else None)
    storage = storage_url or (before.storage if before else None)
    address = address_of(wallet.public_key).lower()
    settings = Settings(gateway, rpc, deployment, address, days, storage)
    _check_same_wallet(home, before, settings)
    home.write_settings(settings)
    return asyncio.run(_register(home, settings, password, wallet, nonce, as_json))


def _wallet(home: Home, path: Path | None, password: str) -> SigningKey:
    """Return the wallet's key, from the given keystore or from one made at the first call."""
    if path is not None:
        return open_keystore(path, password)
    if not home.wallet_path.exists():
        write_keystore(home.wallet_path, bytes(Account.create().key), password)
    return open_keystore(home.wallet_path, password)


def _check_same_wallet(home: Home, before: Settings | None, now: Settings) -> None:
    if before is not None and before.address != now.address and home.database_path.exists():
        expected = f"the wallet of {before.address}"
        raise ConfigurationError(f"home {home.home_path}", expected, now.address)


async def _register(
    home: Home, settings: Settings, password: str, wallet: SigningKey, nonce: int, as_json: bool
) -> int:
    async with opened(home, password, settings) as client:
        with told_while_waiting(lambda: "registering; Ctrl-C and the same command go on later …"):
            try:
                async with asyncio.timeout(_REGISTER_SECONDS):
                    inbox = await client.messenger.register(wallet, nonce)
            except TimeoutError as error:
                expected = f"to be done within {_REGISTER_SECONDS:g} s; call it again"
                got = "a network that does not show the new inbox"
                raise ConfigurationError("registration", expected, got) from error
        await _tell(client, settings, len(inbox.installations) - 1, as_json)
    return 0


async def _tell(client: Client, settings: Settings, others: int, as_json: bool) -> None:
    """Print who this is; ask the inbox's other devices for history, or say how that is done."""
    installation, history = client.messenger.installation, client.history
    asked: list[OwnRequest] = []
    if others and history.is_on and not history.requester.requests():
        try:
            asked = await ask(history)
        except (ExchangeError, *PASSING, NotSettled) as error:
            echo_notice(f"history was not asked for: {one_line(str(error))}")
    content = _identity(installation.credential.decode(), settings.address, installation.public_key)
    if as_json:
        found = asked_as_json(history, asked) if asked else None
        told = {"other_devices": others, "history": found} if others else {}
        echo_json(content | told)
        return
    _print(content)
    if asked:
        echo_fact("history", "waits for another device of yours: approve the request there")
        tell_asked(history, asked, as_json)
    elif others:
        how = "chainkit client history storage URL, then chainkit client history request"
        echo_fact("history", f"your other devices have it: {how}")


@click.command("whoami", cls=CompleteCommand)
@home_options
@json_option
def whoami_command(home: Home, as_json: bool) -> int:
    """Print inbox id, address and installation: what others add you to a group by.

    It asks nobody.

    \b
    Example:
      chainkit client whoami --home alice
    """
    settings = home.read_settings()
    store = open_store(home)
    try:
        with store.reading() as connection:
            installation = read_installation(connection, store.seal)
    finally:
        store.close()
    content = _identity(installation.credential.decode(), settings.address, installation.public_key)
    if as_json:
        echo_json(content)
    else:
        _print(content)
    return 0


def _identity(inbox_id: str, address: str, installation: bytes) -> dict[str, str]:
    return {"inbox_id": inbox_id, "address": address, "installation": installation.hex()}


def _print(content: Mapping[str, str]) -> None:
    for name, value in content.items():
        echo_fact(name.replace("_", " "), value)
