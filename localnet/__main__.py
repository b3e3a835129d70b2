"""`make localnet`: a private chain with the contracts deployed, to try the commands on."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Final, NoReturn

import click

from localnet.accounts import write_council_keystore
from localnet.anvil import Anvil
from localnet.deployment import PROJECT, deploy

FOLDER: Final = PROJECT / "build" / "localnet"
PASSWORD: Final = "localnet"


def main() -> None:
    """Run until interrupted; what it wrote is of no use after that."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
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
    click.echo(
        "A private chain with the contracts deployed; Ctrl-C ends it. In another terminal:\n"
    )
    click.echo('export PATH="$PWD/.cache/bin:$PWD/.venv/bin:$PATH"')
    click.echo(f"export CHAINKIT_RPC={url}")
    click.echo(f"export CHAINKIT_DEPLOYMENT={_shown(record)}")
    click.echo(f"export CHAINKIT_PASSWORD_FILE={_shown(password)}")
    click.echo(f"\nThe council's keystore is {_shown(keystore)}.")


def _shown(path: Path) -> str:
    return str(path.relative_to(PROJECT))


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
