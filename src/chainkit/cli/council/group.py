"""``chainkit council``: evidence is checked, and proposals are drafted, signed and executed.

A command that signs has no network: ``proposals`` and all that it imports open none.
"""

from __future__ import annotations

from typing import Final

import click

from chainkit.terminal.command import LazyCommand, LazyGroup

_PROPOSALS: Final = "chainkit.cli.council.proposals"
_EXECUTION: Final = "chainkit.cli.council.execution"

_COMMANDS: Final = {
    "verify": LazyCommand(
        "chainkit.cli.council.verify",
        "verify",
        "Check a signed report of a safety failure, or a bundle, by the chain and the registry.",
    ),
    "triage": LazyCommand(
        "chainkit.cli.council.triage",
        "triage",
        "Check all reports and bundles in a folder, and report which nodes should be disabled.",
    ),
    "gather": LazyCommand(
        "chainkit.cli.council.gather",
        "gather",
        "Ask every registered node for its misbehavior reports, and write them into a folder.",
    ),
    "init": LazyCommand(
        "chainkit.cli.council.member_file",
        "init",
        "Write your council file: the account, its Safe's release, its owners under plain names.",
    ),
    "propose": LazyCommand(
        "chainkit.cli.change.proposing",
        "propose",
        "Draft a proposal of several calls by name; nothing is sent.",
    ),
    "show": LazyCommand(
        _PROPOSALS,
        "show",
        "Rebuild a proposal from your own files and show it; no network is used.",
    ),
    "sign": LazyCommand(
        _PROPOSALS,
        "sign",
        "Show a proposal, ask for the first digits of its hash, and sign it; no network is used.",
    ),
    "collect": LazyCommand(
        _PROPOSALS,
        "collect_signatures",
        "Add the signatures of other copies of a proposal to FILE; no network is used.",
    ),
    "export": LazyCommand(
        _PROPOSALS,
        "export",
        "Write a Safe's proposal as a batch file of Safe's Transaction Builder; "
        "no network is used.",
    ),
    "status": LazyCommand(
        _EXECUTION,
        "status",
        "Check a proposal against the newest block: its signers, its changes, its obstacles.",
    ),
    "approve": LazyCommand(
        _EXECUTION,
        "approve",
        "Approve a Safe's proposal on the chain, in place of a signature in its file.",
    ),
    "execute": LazyCommand(
        _EXECUTION,
        "execute_proposal",
        "Simulate a proposal that enough owners signed, and send it with --broadcast.",
    ),
    "log": LazyCommand(
        "chainkit.cli.council.log",
        "log",
        "Show the acts of the council's account, their signers and senders, and acts without it.",
    ),
    "owners": LazyCommand(
        "chainkit.cli.council.owners",
        "owners",
        "Draft a change of the Safe's own owners; its proposal is read with --owners only.",
    ),
}


@click.group(cls=LazyGroup, lazy_commands=_COMMANDS)
def council() -> None:
    """Check evidence of misbehavior, and decide by proposals that owners sign apart.

    \b
    Example:
      chainkit council verify report.bin --rpc http://127.0.0.1:8545 --deployment deployment.json
      chainkit council show disable-300.json --deployment deployment.json --council council.json
    """
