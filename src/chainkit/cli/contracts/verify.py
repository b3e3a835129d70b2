"""``chainkit contracts verify``: is what stands on the chain ours."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import click

from chainkit.chain import Endpoint
from chainkit.contracts.comparison import Comparison
from chainkit.contracts.deployment import read_deployment_record
from chainkit.contracts.parameters import read_parameters
from chainkit.contracts.verification import compare_deployment
from chainkit.errors import ConfigurationError
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.facts import echo_fact
from chainkit.terminal.options import deployment_option, echo_json, json_option, rpc_option
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
    help="Who must hold the contracts, and their bounds; else what the record was deployed with.",
)
@click.option("--all", "show_all", is_flag=True, help="Go on after the first difference.")
@json_option
def verify(
    rpc_url: str,
    deployment_path: Path,
    parameters_path: Path | None,
    show_all: bool,
    as_json: bool,
) -> None:
    """Compare a deployment with this package: code, slots, roles, owner and bounds.

    Exits 0 if all is as expected, 1 on the first difference, 2 if it could not be compared.

    \b
    Example:
      chainkit contracts verify --rpc http://127.0.0.1:8545 --deployment deployment.json \\
        --parameters deployments/parameters/local.json
    """
    record = read_deployment_record(deployment_path)
    parameters = read_parameters(parameters_path) if parameters_path else None
    if parameters and parameters.chain_id != record.chain_id:
        subject = f"chain id in {parameters_path}"
        raise ConfigurationError(subject, f"the record's {record.chain_id}", parameters.chain_id)
    endpoint = Endpoint.connect(rpc_url)
    block = endpoint.head().reference
    comparisons = compare_deployment(endpoint, record, parameters, block)
    found = _looked_at(comparisons, show_all, as_json)
    if as_json:
        echo_json(_verification_json(found, block, record.chain_id))
    else:
        _echo_verdict(found, block, show_all)
    if not all(comparison.holds for comparison in found):
        sys.exit(1)


def _looked_at(
    comparisons: Iterable[Comparison], show_all: bool, as_json: bool
) -> list[Comparison]:
    """Return the comparisons up to the first difference, or all; print each as it is made."""
    found = []
    for comparison in comparisons:
        found.append(comparison)
        if not as_json:
            _echo_comparison(comparison)
        if not comparison.holds and not show_all:
            break
    return found


def _echo_comparison(comparison: Comparison) -> None:
    result = _result(comparison)
    if comparison.holds:
        echo_fact(result, f"{comparison.subject}: {comparison.got}")
    else:
        echo_fact(result, comparison.subject)
        echo_fact("  expected", comparison.expected)
        echo_fact("  got", comparison.got)


def _echo_verdict(found: Sequence[Comparison], block: BlockReference, show_all: bool) -> None:
    differences = [comparison for comparison in found if not comparison.holds]
    told = sum(not comparison.is_compared for comparison in found)
    echo_fact("block", str(block))
    if differences:
        count = (
            f"differences: {len(differences)}" if show_all else "first difference; --all goes on"
        )
        names = "; ".join(difference.subject for difference in differences)
        echo_fact("verdict", f"not what this package expects ({count}): {names}")
    else:
        counts = f"compared: {len(found) - told}, not compared: {told}"
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
