"""`make localnet`: a private chain with contracts and a Safe, and the services of a network."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import click

from localnet.anvil import Anvil
from localnet.commands import Settings
from localnet.council import DEPLOYER, PAYER, create_council, keystore
from localnet.deployment import PROJECT, deploy
from localnet.network import Network, running_network
from localnet.private_file import write_private
from localnet.process import interrupt
from localnet.storage import start_storage

FOLDER: Final = PROJECT / "build" / "localnet"
PASSWORD: Final = "localnet"
_RECORD: Final = "deployment.json"
_PASSWORD: Final = "password"
_LOCK: Final = ".lock"


class InUse(click.ClickException):
    """Another localnet runs in the folder; as the `chainkit` command, it exits with 2."""

    exit_code = 2


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--folder",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    default=FOLDER,
    show_default="build/localnet",
    help="Where its files go.",
)
def main(folder: Path) -> None:
    """Run a private chain with the contracts, a Safe of three owners, and a network's services.

    These are a node, a gateway and a storage service. They run until Ctrl-C.

    A second one needs a folder of its own.

    It says what to export, and how to make traffic and a reorg. Each start is a new chain: what was
    indexed, or proposed, of another one is of no use with it.

    \b
    Example:
      python -m localnet
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with _held(folder), Anvil() as anvil:
            (folder / _RECORD).unlink(missing_ok=True)
            deploy(anvil.url, folder / _RECORD)
            safe = create_council(anvil, folder, PASSWORD)
            write_private(folder / _PASSWORD, PASSWORD + "\n")
            settings = Settings(anvil.url, folder / _RECORD, folder / _PASSWORD)
            owner = keystore(folder, DEPLOYER)
            with ExitStack() as stack:
                storage = start_storage(stack, settings, folder)
                options = storage.gateway_options
                network = stack.enter_context(
                    running_network(settings, folder, owner, PASSWORD, *options)
                )
                _explain(anvil.url, folder, safe, network, storage.url)
                while True:
                    time.sleep(3600)
    except KeyboardInterrupt:
        click.echo("\nstopped", err=True)


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Lock a folder for this run: another run would replace its record, and keep our keys.

    Raises ClickException where another run holds the lock; the system releases the lock of a killed
    run.
    """
    # Not the folder itself: the deployment into the folder locks that.
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        words = f"{folder} belongs to a localnet that runs; choose another with --folder FOLDER"
        raise InUse(words) from error
    finally:
        os.close(descriptor)


def _explain(url: str, folder: Path, safe: str, network: Network, storage_url: str) -> None:
    settings = {
        "CHAINKIT_RPC": url,
        "CHAINKIT_DEPLOYMENT": folder / _RECORD,
        "CHAINKIT_PASSWORD_FILE": folder / _PASSWORD,
        "SAFE": safe,
        "KEYS": folder,
        "GATEWAY": network.gateway_url,
        "STORAGE": storage_url,
        "APE_DATA_FOLDER": PROJECT / ".cache" / "ape",
        "SOLCX_BINARY_PATH": PROJECT / ".cache" / "solcx",
    }
    click.echo(
        "A private chain with the contracts, a Safe, a node, a gateway and a storage service;"
    )
    click.echo("Ctrl-C ends it.")
    click.echo("In another terminal, in this folder:\n")
    click.echo(f'export PATH="{PROJECT}/.cache/bin:{PROJECT}/.venv/bin:$PATH"')
    for name, value in settings.items():
        click.echo(f"export {name}={value}")
    click.echo("\nSomething to index, and a reorg:\n")
    click.echo(
        "ape run traffic --network $CHAINKIT_RPC --record $CHAINKIT_DEPLOYMENT --per-block 10"
    )
    click.echo("ape run reorg --network $CHAINKIT_RPC --depth 3 --drop 2")
    click.echo(
        f"\nNode {network.node_id} serves {network.node_url} (gRPC). The gateway for today's"
    )
    click.echo(
        "clients, which they call gatewayHost, is $GATEWAY. Logs: $KEYS/node.log, gateway.log."
    )
    click.echo("$STORAGE carries history between a person's devices (docs/client.md); storage.log.")
    click.echo("\nThe owner of the registry, who also administers the logs, signs with:\n")
    click.echo(f"--broadcast --keystore {keystore(Path('$KEYS'), DEPLOYER)}")
    click.echo(
        "\n$SAFE is a Safe of ann, ben and cleo, two of whom must sign; their keystores are in"
    )
    click.echo(f"$KEYS, and {PAYER}'s, who executes. docs/council.md has a rehearsal.")


if __name__ == "__main__":
    main(prog_name="python -m localnet")
