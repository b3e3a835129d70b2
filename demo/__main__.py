"""`python -m demo`: plays the story, shows it, and exits 1 if anything is not as it must be."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Final, NoReturn

import click

from chainkit.cli.doctor import JAVA_HINT, MINIMUM_JAVA, java_version
from chainkit.errors import ChainkitError
from demo.story import tell
from demo.summary import Summary
from localnet.deployment import PROJECT

RESULT: Final = PROJECT / "build" / "demo"


def main() -> None:
    """Play the story in a folder of its own, then show it under ``build/demo``."""
    signal.signal(signal.SIGTERM, _interrupt)
    found = java_version()
    if found is None or found < MINIMUM_JAVA:
        click.echo(f"the audit needs Java {MINIMUM_JAVA} or newer: {JAVA_HINT}", err=True)
        sys.exit(1)
    # Two demos may run side by side: each works in its own folder.
    folder = RESULT.with_name(f"demo.{os.getpid()}")
    folder.mkdir(parents=True)
    summary = Summary()
    try:
        tell(folder, summary)
    except ChainkitError as error:
        summary.faults.append(str(error))
        click.echo(f"\nerror: {error}", err=True)
    except KeyboardInterrupt:
        shutil.rmtree(folder)
        click.echo("\ninterrupted: everything was stopped and removed", err=True)
        sys.exit(130)
    summary.facts["html_report"] = str((RESULT / "audit" / "report.html").relative_to(PROJECT))
    summary.write(folder / "summary.json")
    _publish(folder)
    _conclude(summary)


def _publish(folder: Path) -> None:
    """Put the finished folder under the name that people look for."""
    retired = folder.with_name(f"{folder.name}.old")
    if RESULT.exists():
        RESULT.rename(retired)
    folder.rename(RESULT)
    shutil.rmtree(retired, ignore_errors=True)


def _conclude(summary: Summary) -> NoReturn:
    total = sum(summary.seconds.values())
    if summary.faults:
        click.secho(f"\nthe story did not hold ({total:.0f} s)", bold=True, fg="red")
        for fault in summary.faults:
            click.echo(f"  {fault}")
        sys.exit(1)
    click.secho(f"\nthe story holds ({total:.0f} s)", bold=True)
    summary.show()
    sys.exit(0)


def _interrupt(signal_number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
