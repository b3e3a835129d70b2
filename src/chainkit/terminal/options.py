"""Options that several commands share, each spelled once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import fields
from functools import reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


Option: TypeAlias = Callable[[Any], Any]
"""A decorator that adds an option, or several, to a command."""


def several(*options: Option) -> Option:
    """Return a decorator that adds options, which the help lists in this order."""
    return lambda command: reduce(lambda inner, option: option(inner), reversed(options), command)


def gathered(kind: type[DataclassInstance], parameter: str) -> Option:
    """Return a decorator that passes options to a command as one value.

    The options are the fields of ``kind``, a dataclass; the command, or a decorator below this one,
    takes ``parameter`` instead of them.
    """
    names = [field.name for field in fields(kind)]

    def gather(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def call(*arguments: Any, **options: Any) -> Any:
            value = kind(**{name: options.pop(name) for name in names})
            return command(*arguments, **options, **{parameter: value})

        return call

    return gather


def rpc_option_for(purpose: str, *, required: bool = False) -> Option:
    """Return the option that names an endpoint; ``purpose`` is its help."""
    return click.option(
        "--rpc",
        "rpc_url",
        envvar="CHAINKIT_RPC",
        show_envvar=True,
        required=required,
        metavar="URL",
        help=purpose,
    )


def path_option(flag: str, parameter: str, metavar: str, purpose: str, **more: Any) -> Option:
    """Return an option that names a file or a folder; ``more`` as for ``click.option``."""
    kind = click.Path(path_type=Path)
    return click.option(flag, parameter, metavar=metavar, type=kind, help=purpose, **more)


def file_option(
    flag: str, parameter: str, variable: str, purpose: str, *, required: bool = False
) -> Option:
    """Return an option that names a file, as an environment variable may too."""
    more = {"envvar": variable, "show_envvar": True, "required": required}
    return path_option(flag, parameter, "FILE", purpose, **more)


def height_option(flag: str, parameter: str, purpose: str) -> Option:
    """Return an option that names a block by its height."""
    return click.option(flag, parameter, type=click.IntRange(min=0), metavar="N", help=purpose)


def keystore_option_for(purpose: str, *, required: bool = False) -> Option:
    """Return the option that names a keystore; ``purpose`` is its help."""
    return file_option(
        "--keystore", "keystore_path", "CHAINKIT_KEYSTORE", purpose, required=required
    )


endpoints_option = click.option(
    "--rpc",
    "rpc_urls",
    envvar="CHAINKIT_RPC",
    show_envvar=True,
    required=True,
    multiple=True,
    metavar="URL",
    help="JSON-RPC endpoint; give several, in order of preference, to fail over.",
)
monitor_option = click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Serve /metrics, /healthz and /readyz there; port 0 takes a free one.",
)
log_format_option = click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Lines for a person, or one JSON object a line.",
)
rpc_option = rpc_option_for("JSON-RPC endpoint of the chain.", required=True)
deployment_option = file_option(
    "--deployment",
    "deployment_path",
    "CHAINKIT_DEPLOYMENT",
    "Deployment record of the contracts.",
    required=True,
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for a script.")
keystore_option = keystore_option_for(
    "Encrypted key (keystore v3), as `chainkit key new` writes it.", required=True
)
password_option = file_option(
    "--password-file",
    "password_path",
    "CHAINKIT_PASSWORD_FILE",
    "File with the keystore's password; asked for where it is not given.",
)


def is_on_command_line(parameter: str) -> bool:
    """Distinguish a typed value of the running command from one of the environment."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source is click.core.ParameterSource.COMMANDLINE


def echo_json(content: Any) -> None:
    """Print one JSON document with sorted keys."""
    click.echo(json.dumps(content, indent=2, sort_keys=True))


def block_hash(
    _context: click.Context, _parameter: click.Parameter, text: str | None
) -> bytes | None:
    """Return an option's value as a block hash: 32 bytes, or None where the option is not given."""
    if text is None:
        return None
    digits = text.strip().lower().removeprefix("0x")
    if re.fullmatch("[0-9a-f]{64}", digits) is None:
        raise click.BadParameter(f"expected a block hash, 0x and 64 hex digits, got {text!r}")
    return bytes.fromhex(digits)
