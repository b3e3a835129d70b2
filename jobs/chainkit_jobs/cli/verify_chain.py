"""``chainkit audit verify-chain``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import click

from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.options import echo_json, json_option
from chainkit.text.hexadecimal import hex0x
from chainkit_jobs.cli.options import (
    EXIT_FINDINGS,
    EXIT_NOT_COMPARED,
    chain_option,
    check_export_folder,
    master_option,
    trust_option,
)
from chainkit_jobs.proof import ChainProof, Problem, check_trusted_hash, prove_chain
from chainkit_jobs.proof.words import proof_as_json, unproved_words
from chainkit_jobs.sources import read_export
from chainkit_jobs.spark.session import spark_session

_SHOWN_PROBLEMS: Final = 20
_SHOWN_TEXT: Final = 24
"""Characters of a value in the text for people; --json has the whole value."""


@click.command("verify-chain", cls=CompleteCommand)
@chain_option
@trust_option(required=True)
@master_option
@json_option
def verify_chain_command(chain_path: Path, trusted_hash: bytes, master: str, as_json: bool) -> None:
    """Prove a chain export, to the byte, from the hash of its last block.

    Exits 0 if all hangs on that hash, 1 with problems, 2 if it could not be checked, or some
    headers do not tell what they are the hash of. Values that nothing can prove are listed.

    \b
    Example:
      chainkit audit verify-chain --chain chain/ --trust 0x5f3e…
    """
    check_export_folder(chain_path)
    chain = read_export(chain_path, "chain")
    check_trusted_hash(chain, trusted_hash)
    with spark_session(master) as spark:
        proof = prove_chain(spark, chain, trusted_hash)
    if as_json:
        echo_json(proof_as_json(proof))
    else:
        _echo_proof(proof)
    if proof.problems_total:
        sys.exit(EXIT_FINDINGS)
    if not proof.is_anchored:
        sys.exit(EXIT_NOT_COMPARED)


def _echo_proof(proof: ChainProof) -> None:
    last = f"{proof.to_block} {hex0x(proof.trusted_hash)}"
    click.echo(f"blocks {proof.from_block} to {last}\n")
    click.echo(f"{'':14}{'held':>12}{'proved':>12}")
    for table in ("blocks", "transactions", "receipts", "logs"):
        held, proved = getattr(proof.held, table), getattr(proof.proved, table)
        click.echo(f"{table:14}{held:>12}{proved:>12}")
    if proof.unproved:
        click.echo("\nnot proved:")
    for unproved in proof.unproved:
        click.echo(f"  {unproved.gap.code:<18} {unproved_words(unproved)}")
    total = proof.problems_total
    click.echo(f"\n{total or 'no'} problem{'' if total == 1 else 's'}{':' if total else ''}")
    for problem in proof.problems[:_SHOWN_PROBLEMS]:
        click.echo(f"  {_problem_words(problem)}")
    if total > _SHOWN_PROBLEMS:
        click.echo(f"  … and {total - _SHOWN_PROBLEMS} more; --json tells the first 1000")


def _problem_words(problem: Problem) -> str:
    place = "no block" if problem.block_number is None else f"block {problem.block_number}"
    what = problem.table if problem.position is None else f"{problem.table} {problem.position}"
    column = f" {problem.column}" if problem.column else ""
    expected, got = _short(problem.expected), _short(problem.got)
    return f"{problem.code:<18} {place}, {what}{column}: expected {expected}, got {got}"


def _short(text: str) -> str:
    is_hex = text.startswith("0x")
    return f"{text[:_SHOWN_TEXT]}…" if is_hex and len(text) > 2 * _SHOWN_TEXT else text
