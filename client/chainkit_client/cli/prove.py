"""``client prove`` and ``verify``: a message's proof for others, and its check offline."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from chainkit.contracts.followed import read_recorded_deployment
from chainkit.documents.files import read_regular
from chainkit.errors import ConfigurationError, MalformedData
from chainkit.evidence.message_proof import (
    LARGEST_PROOF,
    MessageProof,
    ProvedMessage,
    message_proof_bytes,
    parse_message_proof,
    verify_message,
)
from chainkit.service.log_lines import one_line
from chainkit.terminal.bar import progress_bar
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.facts import echo_fact, echo_notice
from chainkit.terminal.options import block_hash, deployment_option, echo_json, json_option
from chainkit.text.hexadecimal import hex0x
from chainkit.text.printable import printable
from chainkit.types import TopicKind
from chainkit_client.cli.home import Home, home_options
from chainkit_client.cli.names import find_message, short
from chainkit_client.cli.opened import open_store
from chainkit_client.cli.pages import time_of
from chainkit_client.cli.reports import write_file
from chainkit_client.groups.overview import read_groups
from chainkit_client.groups.transcript import Message, read_messages
from chainkit_client.home import connect_chain
from chainkit_client.network.chain import Chain
from chainkit_client.network.proving import prove
from chainkit_client.storage.evidence import read_envelope_at

_KINDS: Final = {
    TopicKind.GROUP_MESSAGE: "group",
    TopicKind.WELCOME: "welcomes of installation",
    TopicKind.IDENTITY_UPDATE: "identity of inbox",
    TopicKind.KEY_PACKAGE: "key package of installation",
}


@click.command("prove", cls=CompleteCommand)
@click.argument("message_text", metavar="MESSAGE")
@click.option(
    "--out",
    "out_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where to write the proof; the beginning of the message's id names it if you do not.",
)
@home_options
@json_option
def prove_command(message_text: str, out_path: Path | None, home: Home, as_json: bool) -> int:
    """Write a proof of a message, which others verify without a network.

    MESSAGE is an id, or the beginning of one, as `chainkit client read` shows it. The proof has the
    envelope with its signatures, and the transaction of one block that proves them. It tells
    neither the words of the message nor who of the group wrote them.

    \b
    Example:
      chainkit client prove 5c1e --home alice --out proof.json
    """
    settings = home.read_settings()
    message, envelope = _kept(home, message_text)
    chain = connect_chain(settings)
    registry = chain.node_registry
    blocks = chain.endpoint.head().number - registry.block + 1
    with progress_bar("blocks", blocks) as advance:
        proof, proved = prove(chain, envelope, advance)
    path = Path(f"{short(message.id)}.proof.json") if out_path is None else out_path
    data = message_proof_bytes(proof)
    write_file(path, data)
    _warn_unless_final(chain, proved)
    if as_json:
        echo_json(_as_json(proved) | {"proof": str(path), "message": message.id.hex()})
        return 0
    echo_fact("message", message.id.hex())
    _echo(proved)
    echo_fact("proof", f"{path}, {len(data):,} bytes")
    echo_fact("verify it", f"with the hash of block {proved.block.number}, from a source you trust")
    return 0


def _kept(home: Home, message_text: str) -> tuple[Message, bytes]:
    """Return a message and its envelope."""
    store = open_store(home)
    try:
        with store.reading() as connection:
            groups = read_groups(connection)
            messages = [
                message
                for group in groups
                for message in read_messages(connection, store.seal, group.id)
            ]
            message = find_message(messages, message_text)
            subject = f"message {short(message.id)}"
            if message.place is None:
                # A group's first commit is not published either: nobody else needs that commit.
                raise ConfigurationError(subject, "one that was published", "one that was not")
            envelope = read_envelope_at(connection, message.place)
    finally:
        store.close()
    if envelope is None:
        raise ConfigurationError(subject, "its envelope in the database", "none")
    return message, envelope


def _warn_unless_final(chain: Chain, proved: ProvedMessage) -> None:
    final = chain.final()
    if final is None or final.number < proved.block.number:
        echo_notice(f"block {proved.block.number} is not final yet: a reorg may take it back")


@click.command("verify", cls=CompleteCommand)
@click.argument("proof_path", metavar="PROOF", type=click.Path(path_type=Path))
@click.option(
    "--trust",
    "trusted_hash",
    metavar="HASH",
    callback=block_hash,
    help="Hash of the block on which the proof rests, from a source that you trust.",
)
@deployment_option
@json_option
def verify_command(
    proof_path: Path, trusted_hash: bytes | None, deployment_path: Path, as_json: bool
) -> int:
    """Check a proof that `chainkit client prove` wrote; nobody is asked.

    Without --trust it says which block's hash you need. Exits 0 if the message is proved, 1 if it
    is not, 2 if it could not be checked.

    \b
    Example:
      chainkit client verify proof.json --trust 0x5f3e… --deployment deployment.json
    """
    record = read_recorded_deployment(deployment_path)
    proof = parse_message_proof(read_regular(proof_path, f"proof {proof_path}", LARGEST_PROOF))
    if trusted_hash is None:
        number = proof.transaction.block_number
        raise click.UsageError(f"missing --trust: the hash of block {number}, as you know it")
    try:
        proved = verify_message(proof, trusted_hash, record)
    except MalformedData as error:
        _tell_doubt(proof, error, as_json)
        return 1
    if as_json:
        echo_json(_as_json(proved) | {"verdict": "proved"})
        return 0
    echo_fact("verdict", "proved")
    _echo(proved)
    echo_fact("not proved", "who of the group wrote it, and the words: they are encrypted")
    return 0


def _tell_doubt(proof: MessageProof, error: MalformedData, as_json: bool) -> None:
    if as_json:
        echo_json({"verdict": "not proved", "reason": str(error)})
        return
    echo_fact("verdict", "not proved")
    echo_fact("because", one_line(str(error)))
    echo_fact("made by", printable(proof.tool))


def _echo(proved: ProvedMessage) -> None:
    client = proved.client
    echo_fact("topic", f"{_KINDS[client.kind]} {client.identifier.hex()}")
    if client.header is not None:
        content = client.header.content_type.name.lower()
        echo_fact("content", f"{content} of epoch {client.header.epoch}, MLS")
    node = proved.originator
    if node is None:
        echo_fact("originator", f"the chain, sequence id {proved.place[1]}")
        echo_fact("transaction", hex0x(proved.transaction_hash))
    else:
        known = f"node {node.node_id}, registered at {printable(node.http_address)}"
        echo_fact("originator", f"{known}, sequence id {proved.place[1]}")
    echo_fact("time", f"{time_of(proved.originator_ns)} UTC")
    if proved.expires_at is not None:
        echo_fact("expires", f"{proved.expires_at} s after 1970")
    echo_fact("payer", proved.payer or "nobody signed the transaction")
    echo_fact("block", f"{proved.block.number}")


def _as_json(proved: ProvedMessage) -> dict[str, Any]:
    client, node = proved.client, proved.originator
    header = client.header
    return {
        "originator": proved.place[0],
        "sequence_id": proved.place[1],
        "originator_ns": proved.originator_ns,
        "expires_at": proved.expires_at,
        "topic": client.topic.hex(),
        "content_type": None if header is None else header.content_type.name.lower(),
        "epoch": None if header is None else header.epoch,
        "payer": proved.payer,
        "node": None
        if node is None
        else {"signing_key": hex0x(node.signing_key), "http_address": node.http_address},
        "block": proved.block.number,
        "transaction_hash": hex0x(proved.transaction_hash),
    }
