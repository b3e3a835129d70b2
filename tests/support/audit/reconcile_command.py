"""`chainkit audit reconcile` on a chain of two nodes."""

from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from chainkit.cli.main import chainkit
from chainkit.errors import ChainkitError
from support.audit.audit_exports import (
    base_posts,
    honest,
    key_of,
    registered,
    write_chain,
    write_node,
)

A, B = 100, 200

TABLES = "what nodes' exports say beside their envelopes: see --tables"


def reconcile(chain: Path, nodes: list[Path | str], out: Path, *options: str) -> Result:
    arguments = ["audit", "reconcile", "--chain", str(chain), "--out", str(out), *options]
    arguments += [part for node in nodes for part in ("--node", str(node))]
    # Costs have tests of their own, and take as long again.
    arguments.append("--without-costs")
    result = CliRunner(mix_stderr=False).invoke(chainkit, arguments)
    if result.exception is not None and not isinstance(
        result.exception, (SystemExit, ChainkitError)
    ):
        raise result.exception
    return result


def node_of(tmp_path: Path, node_id: int, **about: Any) -> Path:
    key = key_of(node_id)
    return write_node(tmp_path / f"node-{node_id}", honest(base_posts(), key), key, **about)


def chain_of(tmp_path: Path, **about: Any) -> Path:
    registry = [registered(A), registered(B, log_index=1)]
    return write_chain(tmp_path / "chain", base_posts(), registry, **about)


def refusal(result: Result) -> ChainkitError:
    assert isinstance(result.exception, ChainkitError), result
    return result.exception
