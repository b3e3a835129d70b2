"""``client init`` and ``client whoami``: the identity of this client."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import click
from eth_account import Account

from chainkit.errors import ConfigurationError
from chainkit.protocol.retention import LEAST_RETENTION_DAYS, MAXIMUM_RETENTION_DAYS
from chainkit.signatures import SigningKey, address_of
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.facts import echo_fact
from chainkit.terminal.keystore import open_keystore, write_keystore
from chainkit.terminal.options import echo_json, file_option, json_option
from chainkit.terminal.waiting import told_while_waiting
from chainkit_client.cli.home import Home, home_options
from chainkit_client.cli.opened import open_store
from chainkit_client.home import Client, Settings, opened
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
@json_option
def init_command(
    home: Home,
    gateway_url: str | None,
    rpc_url: str | None,
    deployment_path: Path | None,
    wallet_path: Path | None,
    nonce: int,
    retention_days: int | None,
    as_json: bool,
) -> int:
    """Make a home folder, register an inbox for a wallet, and offer a key package.

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
    settings = Settings(gateway, rpc, deployment, address_of(wallet.public_key).lower(), days)
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
                    await client.messenger.register(wallet, nonce)
            except TimeoutError as error:
                expected = f"to be done within {_REGISTER_SECONDS:g} s; call it again"
                got = "a network that does not show the new inbox"
                raise ConfigurationError("registration", expected, got) from error
        _tell(client, settings, as_json)
    return 0


def _tell(client: Client, settings: Settings, as_json: bool) -> None:
    installation = client.messenger.installation
    _show(installation.credential.decode(), settings.address, installation.public_key, as_json)


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
    _show(installation.credential.decode(), settings.address, installation.public_key, as_json)
    return 0


def _show(inbox_id: str, address: str, installation: bytes, as_json: bool) -> None:
    content = {"inbox_id": inbox_id, "address": address, "installation": installation.hex()}
    if as_json:
        echo_json(content)
        return
    for name, value in content.items():
        echo_fact(name.replace("_", " "), value)
