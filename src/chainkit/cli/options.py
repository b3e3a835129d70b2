"""Options that several commands share, each spelled once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chainkit.deployment import DeploymentRecord, read_deployment_record
from chainkit.types import BlockHeader, BlockReference

if TYPE_CHECKING:
    from chainkit.chain import Endpoint

rpc_option = click.option(
    "--rpc",
    "rpc_url",
    envvar="CHAINKIT_RPC",
    show_envvar=True,
    required=True,
    metavar="URL",
    help="JSON-RPC endpoint of the chain.",
)
deployment_option = click.option(
    "--deployment",
    "deployment_path",
    envvar="CHAINKIT_DEPLOYMENT",
    show_envvar=True,
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Deployment record of the contracts.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for a script.")
keystore_option = click.option(
    "--keystore",
    "keystore_path",
    envvar="CHAINKIT_KEYSTORE",
    show_envvar=True,
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Encrypted key (keystore v3), as `chainkit key new` writes it.",
)
password_option = click.option(
    "--password-file",
    "password_path",
    envvar="CHAINKIT_PASSWORD_FILE",
    show_envvar=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="File with the keystore's password; asked for where it is not given.",
)


def open_chain(
    rpc_url: str, deployment_path: Path
) -> tuple[Endpoint, DeploymentRecord, BlockHeader]:
    """Connect and prove that the endpoint serves the record's chain; also return the head."""
    # Not at the top: web3 takes most of a second, and half of the commands open no chain.
    from chainkit.chain import Endpoint, check_deployment

    record = read_deployment_record(deployment_path)
    endpoint = Endpoint.connect(rpc_url)
    return endpoint, record, check_deployment(endpoint, record)


def hex0x(value: bytes) -> str:
    """Write bytes as people and scripts read them: 0x and hex digits."""
    return "0x" + value.hex()


def reference_as_json(block: BlockReference) -> dict[str, Any]:
    """Write a block as scripts read it."""
    return {"number": block.number, "hash": hex0x(block.hash)}


def echo_json(content: Any) -> None:
    """Print one JSON document with sorted keys."""
    import json

    click.echo(json.dumps(content, indent=2, sort_keys=True))


def block_hash(
    _context: click.Context, _parameter: click.Parameter, text: str | None
) -> bytes | None:
    """Take an option's value for a block hash: 32 bytes, or None where it is not given."""
    if text is None:
        return None
    digits = text.strip().lower().removeprefix("0x")
    if re.fullmatch("[0-9a-f]{64}", digits) is None:
        raise click.BadParameter(f"expected a block hash, 0x and 64 hex digits, got {text!r}")
    return bytes.fromhex(digits)
