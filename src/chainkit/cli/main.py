"""The root of the command line: the groups by their users, and how errors end.

Exit codes, for every command: 0 done; 1 the answer is no (findings, a report not proved, a role
that lacks something); 2 the command could not be done (wrong option, dead endpoint, foreign record,
or a fault of ours, with its traceback); 130 interrupted; 141 nobody reads the output any more.
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from typing import Final, NoReturn

import click

from chainkit import __version__
from chainkit.errors import ChainkitError
from chainkit.extras import how_to_install
from chainkit.terminal.command import SuggestingGroup, load_command
from chainkit.terminal.facts import echo_error, folded

SECTIONS: Final = {
    "Node operator": {
        "index": ("chainkit_indexer.cli:index", "Follow the chain and keep signed envelopes."),
        "node": ("chainkit_node.cli:node", "Serve envelopes, and originate what payers publish."),
        "key": ("chainkit.cli.key:key", "Make and show the key that signs envelopes."),
    },
    "Application developer": {
        "gateway": (
            "chainkit_gateway.cli:gateway",
            "Sign, pay and publish what an application's clients send.",
        ),
        "client": ("chainkit_client.cli:client", "Use the network, and check what nodes answer."),
        "backups": (
            "chainkit_backups.cli:backups",
            "Store message history that travels between a person's devices.",
        ),
    },
    "Auditor": {
        "audit": ("chainkit_jobs.cli:audit", "Compare what nodes serve with what the chain holds."),
    },
    "Security council": {
        "registry": (
            "chainkit.cli.registry.group:registry",
            "Read and change the registry of nodes.",
        ),
        "council": (
            "chainkit.cli.council.group:council",
            "Check evidence; draft, sign and execute proposals.",
        ),
        "contracts": (
            "chainkit.cli.contracts.group:contracts",
            "Verify, administer and upgrade the contracts.",
        ),
    },
    "Everyone": {
        "doctor": ("chainkit.cli.doctor:doctor", "Say what this machine has and what it lacks."),
    },
}
"""Section of the help text to command, its import path, and its one-sentence help."""

COULD_NOT: Final = 2
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141

_GRPC_LINES: Final = "GRPC_VERBOSITY"
"""The variable that sets what gRPC's C core writes to standard error, past every log."""

_EXTRAS: Final = {
    "index": "indexer",
    "node": "node",
    "gateway": "gateway",
    "client": "client",
    "backups": "backups",
    "audit": "audit",
}


class RootGroup(SuggestingGroup):
    """Imports a command's module only when it is called: an operator installs no PySpark."""

    def list_commands(self, context: click.Context) -> list[str]:
        """Name the commands in the order of the sections."""
        return [name for commands in SECTIONS.values() for name in commands]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Import the command. Raises UsageError that names the extra where it is missing."""
        for commands in SECTIONS.values():
            if name in commands:
                return self._load(name, commands[name][0])
        return None

    def _load(self, name: str, import_path: str) -> click.Command:
        module_name, attribute = import_path.split(":")
        try:
            return load_command(module_name, attribute)
        except ModuleNotFoundError as error:
            if name not in _EXTRAS:
                raise
            hint = how_to_install(_EXTRAS[name])
            raise click.UsageError(
                f"chainkit {name} needs the package {error.name}: {hint}"
            ) from error

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by their users, without importing them."""
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name, text) for name, (_, text) in commands.items()])


@click.group(cls=RootGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="chainkit")
def chainkit() -> None:
    """Index, audit and govern the total order of a messaging network (XIP-49).

    \b
    Example:
      chainkit doctor
    """


def main() -> NoReturn:
    """Run the command line and end with the exit codes of this module's docstring."""
    # Each stranger's bad handshake writes a line of the core's own form into the log.
    os.environ.setdefault(_GRPC_LINES, "NONE")
    try:
        # click itself would end an interruption with 1, which here means "the answer is no".
        code = chainkit(standalone_mode=False)
    except click.ClickException as error:
        _show(error)
        _end(COULD_NOT)
    except ChainkitError as error:
        _end(COULD_NOT, str(error))
    except (click.Abort, KeyboardInterrupt) as error:
        if _is_at_a_question(error):
            click.echo(err=True)
        _end(INTERRUPTED, "interrupted")
    except BrokenPipeError:
        _drop_output()
        _end(BROKEN_PIPE)
    except OSError as error:
        if error.filename is None:
            _drop_output()
        _end(COULD_NOT, _reason_of(error))
    except Exception:
        traceback.print_exc()
        _end(COULD_NOT)
    _end(code if isinstance(code, int) else 0)


def _reason_of(error: OSError) -> str:
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        return f"{error.filename} does not exist"
    return f"{error.filename or 'output'}: {error.strerror or error}"


def _show(error: click.ClickException) -> None:
    """Print what click would, folded."""
    shown = io.StringIO()
    error.show(shown)
    for line in shown.getvalue().splitlines():
        click.echo(folded(line), err=True)


def _is_at_a_question(error: BaseException) -> bool:
    """Return whether the cursor is still behind a question: else click has ended the line."""
    return error.__cause__ is None and isinstance(error.__context__, (KeyboardInterrupt, EOFError))


def _drop_output() -> None:
    """Discard buffered output: writing it would fail again at the interpreter's end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end(code: int, sentence: str = "") -> NoReturn:
    if sentence:
        echo_error(sentence)
    sys.exit(code)
