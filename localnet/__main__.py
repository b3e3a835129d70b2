"""`make localnet`: a private chain with the contracts deployed, to try the commands on."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Final

import click

from localnet.accounts import write_council_keystore
from localnet.anvil import Anvil
from localnet.deployment import PROJECT, deploy
from localnet.process import interrupt

FOLDER: Final = PROJECT / "build" / "localnet"
PASSWORD: Final = "localnet"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Run a private chain with the contracts deployed, until Ctrl-C.

    It says what to export, and how to make traffic and a reorg. Each start is a new chain: what was
    indexed of another one is of no use with it.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    FOLDER.mkdir(parents=True, exist_ok=True)
    record, keystore, password = (FOLDER / name for name in _FILES)
    record.unlink(missing_ok=True)
    try:
        with Anvil() as anvil:
            deploy(anvil.url, record)
            write_council_keystore(keystore, PASSWORD)
            password.write_text(PASSWORD + "\n")
            _explain(anvil.url, record, keystore, password)
            while True:
                time.sleep(3600)
    except KeyboardInterrupt:
        click.echo("\nstopped", err=True)


_FILES: Final = ("deployment.json", "council.json", "password")


def _explain(url: str, record: Path, keystore: Path, password: Path) -> None:
    settings = {
        "CHAINKIT_RPC": url,
        "CHAINKIT_DEPLOYMENT": record,
        "CHAINKIT_PASSWORD_FILE": password,
        "APE_DATA_FOLDER": PROJECT / ".cache" / "ape",
        "SOLCX_BINARY_PATH": PROJECT / ".cache" / "solcx",
    }
    click.echo("A private chain with the contracts deployed; Ctrl-C ends it.")
    click.echo("In another terminal, in this folder:\n")
    click.echo(f'export PATH="{PROJECT}/.cache/bin:{PROJECT}/.venv/bin:$PATH"')
    for name, value in settings.items():
        click.echo(f"export {name}={value}")
    click.echo("\nSomething to index, and a reorg:\n")
    click.echo(
        "ape run traffic --network $CHAINKIT_RPC --record $CHAINKIT_DEPLOYMENT --per-block 10"
    )
    click.echo("ape run reorg --network $CHAINKIT_RPC --depth 3 --drop 2")
    click.echo("\nThe registry's owner signs with:\n")
    click.echo(f"--broadcast --keystore {keystore}")


if __name__ == "__main__":
    main(prog_name="python -m localnet")
