r"""Publishes traffic of realistic sizes to a deployed network, some of it malformed.

    ape run traffic --network http://127.0.0.1:8545 --record build/deployment.json \
        --messages 300 --identity-share 0.25 --malformed 12 --seed 7

The script signs with Ape's test accounts 2 to 9, whose keys are public: use it on test chains only.
"""

import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
from ape import accounts
from eth_utils.address import to_checksum_address

from chainkit.chain import Endpoint
from chainkit.contracts.counter import read_own_counter
from chainkit.contracts.deployment import DeploymentRecord, read_deployment_record
from chainkit.contracts.interface import shipped_interface
from chainkit.contracts.right_chain import check_deployment
from chainkit.types import TopicKind
from scripts._connection import connected, network_option
from scripts._payloads import Payload, payloads
from scripts._sending import Publication, Receipt, Senders, receipts, send_all

SENDER_ACCOUNTS = range(2, 10)
"""Ape's test accounts that publish; 0 deploys and 1 administrates."""


def calls(record: DeploymentRecord, made: Sequence[Payload]) -> list[Publication]:
    """Return the contract address and calldata of each payload."""
    functions = {
        TopicKind.GROUP_MESSAGE: (record.group_messages, "addMessage"),
        TopicKind.IDENTITY_UPDATE: (record.identity_updates, "addIdentityUpdate"),
    }
    encoded: list[Publication] = []
    for payload in made:
        contract, function = functions[payload.kind]
        interface = shipped_interface(contract.name)
        data = interface.encode(function, payload.identifier, payload.data)
        encoded.append((to_checksum_address(contract.address), data))
    return encoded


def publish(
    endpoint: Endpoint, encoded: Sequence[Publication], per_block: int | None, quiet: bool
) -> list[Receipt]:
    """Sign, send and follow all transactions, with a progress bar for each step."""
    secrets = [accounts.test_accounts[index].private_key for index in SENDER_ACCOUNTS]
    senders = Senders(endpoint, secrets)
    signed = [senders.sign(index, call) for index, call in enumerate(encoded)]
    with _bar(len(signed), "sending", quiet) as bar:
        send_all(endpoint, signed, per_block, bar.update)
    with _bar(len(signed), "mined  ", quiet) as bar:
        return receipts(endpoint, [each.hash for each in signed], bar.update)


class _SilentBar:
    def update(self, steps: int) -> None:
        """Show nothing."""


def _bar(length: int, label: str, quiet: bool) -> Any:
    if quiet:
        return nullcontext(_SilentBar())
    return click.progressbar(length=length, label=label)


def summary(made: Sequence[Payload], mined: Sequence[Receipt]) -> dict[str, int]:
    """Count the published payloads, and return their blocks."""
    blocks = [int(receipt["blockNumber"], 16) for receipt in mined]
    well_formed = [payload.kind for payload in made if not payload.malformed]
    return {
        "published": len(mined),
        "group_messages": well_formed.count(TopicKind.GROUP_MESSAGE),
        "identity_updates": well_formed.count(TopicKind.IDENTITY_UPDATE),
        "malformed": len(made) - len(well_formed),
        "first_block": min(blocks),
        "last_block": max(blocks),
    }


@click.command()
@network_option
@click.option(
    "--record",
    "record_path",
    required=True,
    type=click.Path(path_type=Path),
    help="Deployment record of the network.",
)
@click.option(
    "--messages",
    default=300,
    show_default=True,
    type=click.IntRange(min=1),
    help="Well-formed messages to publish.",
)
@click.option(
    "--identity-share",
    default=0.25,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Share of them that are identity updates.",
)
@click.option(
    "--malformed",
    default=12,
    show_default=True,
    type=click.IntRange(min=0),
    help="Malformed payloads to publish besides.",
)
@click.option("--seed", default=7, show_default=True, help="Same seed, same payloads.")
@click.option(
    "--per-block",
    type=click.IntRange(min=1),
    help="Mine so many into each block (anvil only; else the chain mines as it does).",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for a script, and no bar.")
def cli(
    network: str,
    record_path: Path,
    messages: int,
    identity_share: float,
    malformed: int,
    seed: int,
    per_block: int | None,
    as_json: bool,
) -> None:
    """Publish commits, identity updates and malformed payloads.

    Example: ape run traffic --network http://127.0.0.1:8545 --record build/deployment.json
    """
    with connected(network) as provider:
        record = read_deployment_record(record_path)
        endpoint = Endpoint.connect(provider.http_uri)
        head = check_deployment(endpoint, record)
        last_seen = read_own_counter(endpoint, record, head.reference)
        made = payloads(messages, identity_share, malformed, last_seen, seed)
        mined = publish(endpoint, calls(record, made), per_block, quiet=as_json)
        result = summary(made, mined)
    if as_json:
        click.echo(json.dumps(result, indent=2, sort_keys=True))
    else:
        click.echo(", ".join(f"{name} {count}" for name, count in result.items()))
