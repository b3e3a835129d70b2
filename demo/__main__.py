"""`python -m demo`: plays the story, shows it, and exits 1 if anything is not as it must be."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import traceback
from pathlib import Path
from typing import Final, NoReturn

import click

from chainkit.errors import ChainkitError
from chainkit.terminal.java import JAVA_HINT, MINIMUM_JAVA, java_version
from demo.story import tell
from demo.summary import Summary
from localnet.deployment import PROJECT
from localnet.process import interrupt

DEFAULT_RESULT: Final = PROJECT / "build" / "demo"


@click.command()
@click.option(
    "--out",
    "result",
    metavar="DIR",
    default=DEFAULT_RESULT,
    type=click.Path(path_type=Path),
    help="Folder for the result; what was there before is replaced.  [default: build/demo]",
)
def main(result: Path) -> None:
    """Play the story on a private chain, and exit 1 if anything is not as it must be.

    \b
    Example:
      python -m demo --out build/demo
    """
    # SIGINT too: the parent of a demo in the background may ignore SIGINT.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    found = java_version()
    if found is None or found < MINIMUM_JAVA:
        click.echo(f"the audit needs Java {MINIMUM_JAVA} or newer: {JAVA_HINT}", err=True)
        sys.exit(1)
    # Two demos may run side by side: each works in its own folder.
    result = result.resolve()
    folder = result.with_name(f"{result.name}.{os.getpid()}")
    folder.mkdir(parents=True)
    summary = Summary()
    try:
        tell(folder, summary)
    except ChainkitError as error:
        summary.faults.append(str(error))
        click.echo(f"\nerror: {error}", err=True)
    except Exception as error:  # whatever the error, the summary must not be of an earlier run
        summary.faults.append(repr(error))
        traceback.print_exc()
    except KeyboardInterrupt:
        shutil.rmtree(folder)
        click.echo("\ninterrupted: everything was stopped and removed", err=True)
        sys.exit(130)
    summary.facts["html_report"] = os.path.relpath(result / "audit" / "report.html")
    summary.write(folder / "summary.json")
    _publish(folder, result)
    _conclude(summary)


def _publish(folder: Path, result: Path) -> None:
    """Put the finished folder under the name that people look for."""
    retired = folder.with_name(f"{folder.name}.old")
    if result.exists():
        result.rename(retired)
    folder.rename(result)
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


if __name__ == "__main__":
    main()
