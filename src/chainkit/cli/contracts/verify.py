"""``chainkit contracts verify``: are the contracts on the chain ours?"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from chainkit.chain import Endpoint
from chainkit.cli.change.proposal_options import council_option_for
from chainkit.contracts.comparison import Comparison
from chainkit.contracts.deployment import read_deployment_record
from chainkit.contracts.parameters import Parameters, read_parameters
from chainkit.contracts.verification import compare_deployment
from chainkit.council.proposal import Council, read_council
from chainkit.errors import ConfigurationError
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.facts import echo_fact
from chainkit.terminal.options import (
    deployment_option,
    echo_json,
    is_on_command_line,
    json_option,
    rpc_option,
)
from chainkit.text.json_values import reference_as_json
from chainkit.types import BlockReference

_EQUAL: Final = "as expected"
_DIFFERENT: Final = "differs"
_TOLD: Final = "not compared"


@click.command("verify", cls=CompleteCommand, short_help="Compare a deployment with this package.")
@rpc_option
@deployment_option
@click.option(
    "--parameters",
    "parameters_path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The expected holders and bounds of the contracts; else those of the deployment's record.",
)
@council_option_for("The council's file: its account alone must hold the contracts.")
@json_option
def verify(
    rpc_url: str,
    deployment_path: Path,
    parameters_path: Path | None,
    council_path: Path | None,
    as_json: bool,
) -> None:
    """Compare a deployment with this package: code, slots, roles, owner and bounds.

    After a hand-over give --council: its account must then own the registry and be the only
    administrator, and the bounds, which it may change, are shown. Exits 0 if all is as expected, 1
    if anything differs, 2 if it could not be compared.

    \b
    Example:
      chainkit contracts verify --rpc http://127.0.0.1:8545 --deployment deployment.json \\
        --parameters deployments/parameters/local.json
    """
    record = read_deployment_record(deployment_path)
    parameters = _parameters(parameters_path, council_path)
    if parameters and parameters.chain_id != record.chain_id:
        subject = f"chain id in {parameters_path or council_path}"
        raise ConfigurationError(subject, f"the record's {record.chain_id}", parameters.chain_id)
    endpoint = Endpoint.connect(rpc_url)
    block = endpoint.head().reference
    found = []
    for comparison in compare_deployment(endpoint, record, parameters, block):
        found.append(comparison)
        if comparison.holds and not as_json:
            echo_fact(_result(comparison), f"{comparison.subject}: {comparison.got}")
    if as_json:
        echo_json(_verification_json(found, block, record.chain_id))
    else:
        _echo_verdict(found, block)
    if not all(comparison.holds for comparison in found):
        sys.exit(1)


def _parameters(parameters_path: Path | None, council_path: Path | None) -> Parameters | None:
    """Return what the contracts are compared with: the file that the command line names goes first.

    None for the record's own.
    """
    given = [name for name in ("parameters_path", "council_path") if is_on_command_line(name)]
    if len(given) > 1:
        raise click.UsageError("expected one of --parameters and --council, got both")
    if parameters_path is not None:
        return read_parameters(parameters_path)
    return None if council_path is None else _of_council(read_council(council_path))


def _of_council(council: Council) -> Parameters:
    """Return a council as the only holder of all; the bounds are the council's to choose."""
    account, is_contract = council.account, council.safe is not None
    return Parameters(council.chain_id, account, account, {}, is_contract, is_contract)


def _echo_verdict(found: Sequence[Comparison], block: BlockReference) -> None:
    differences = [comparison for comparison in found if not comparison.holds]
    shown = sum(not comparison.is_compared for comparison in found)
    # Printed below all equal comparisons, where the differences are in sight.
    for difference in differences:
        echo_fact(_result(difference), difference.subject)
        echo_fact("  expected", difference.expected)
        echo_fact("  got", difference.got)
    echo_fact("block", str(block))
    if differences:
        names = "; ".join(difference.subject for difference in differences)
        count = f"differences: {len(differences)}"
        echo_fact("verdict", f"not what this package expects ({count}): {names}")
    else:
        counts = f"compared: {len(found) - shown}, not compared: {shown}"
        echo_fact("verdict", f"as this package would have deployed it ({counts})")


def _result(comparison: Comparison) -> str:
    if not comparison.is_compared:
        return _TOLD
    return _EQUAL if comparison.holds else _DIFFERENT


def _verification_json(
    found: Sequence[Comparison], block: BlockReference, chain_id: int
) -> dict[str, Any]:
    return {
        "chain_id": chain_id,
        "block": reference_as_json(block),
        "verified": all(comparison.holds for comparison in found),
        "comparisons": [
            {
                "subject": comparison.subject,
                "expected": comparison.expected if comparison.is_compared else None,
                "got": comparison.got,
                "result": _result(comparison),
            }
            for comparison in found
        ],
    }
