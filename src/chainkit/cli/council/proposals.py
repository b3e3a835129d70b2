"""``chainkit council`` without a network: show a proposal, sign it, collect, export."""

from __future__ import annotations

import json
import time
from collections.abc import Collection
from pathlib import Path

import click

from chainkit.cli.change.proposal_options import (
    MemberFiles,
    Reading,
    proposal_argument,
    reading_options,
)
from chainkit.cli.change.proposal_output import (
    echo_signed_hash,
    echo_signers,
    proposal_json,
)
from chainkit.cli.change.screen import echo_reading
from chainkit.cli.change.signers import SignerOptions, signature_option, signer_options
from chainkit.cli.council.confirming import check_expiry, confirm, digits_option
from chainkit.council.proposal import (
    AddressBook,
    Proposal,
    add_signature,
    check_signer,
    collect,
    read_proposal,
    sign_proposal,
    typed_data,
    write_proposal_file,
)
from chainkit.council.proposal.cautions import offline_cautions
from chainkit.council.proposal.transaction_builder import batch_file
from chainkit.documents.files import write_new
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.facts import echo_fact, shown_to_people
from chainkit.terminal.options import echo_json, json_option
from chainkit.text.hexadecimal import hex0x


@click.command("show", cls=CompleteCommand)
@proposal_argument
@reading_options
@json_option
def show(
    proposal_path: Path,
    files: MemberFiles,
    as_json: bool,
) -> None:
    """Rebuild a proposal from your own files and show it; no network is used.

    \b
    Example:
      chainkit council show disable-300.json --deployment deployment.json --council council.json
    """
    reading = Reading.open(proposal_path, files)
    if as_json:
        cautions = offline_cautions(reading.proposal, reading.council)
        echo_json(proposal_json(reading.proposal) | {"cautions": list(cautions)})
        return
    echo_reading(reading, names_signers=True)


@click.command("sign", cls=CompleteCommand)
@proposal_argument
@reading_options
@signer_options("an owner")
@signature_option
@click.option(
    "--export",
    "export_path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the EIP-712 JSON for a signer elsewhere, and sign nothing.",
)
@digits_option
@json_option
def sign(
    proposal_path: Path,
    files: MemberFiles,
    signing: SignerOptions,
    signature: bytes | None,
    export_path: Path | None,
    takes_pipe: bool,
    as_json: bool,
) -> None:
    """Show a proposal, ask for the first digits of its hash, and sign it; no network is used.

    The signature is added to FILE. Before you type the digits, compare the whole hash with another
    owner, or with your device: a drafter can make two proposals whose hashes begin alike. All 64
    digits will do as well. Only a terminal can answer, and no option skips the question; with
    --json it is asked on standard error.

    \b
    Example:
      chainkit council sign disable-300.json --keystore alice.json \\
        --deployment deployment.json --council council.json
    """
    if signature is None and export_path is None:
        signing.require("council sign", "--signature HEX|FILE", "--export FILE")
    reading = Reading.open(proposal_path, files)
    proposal = reading.proposal
    check_expiry(proposal)
    for signer in proposal.signatures:
        check_signer(signer, reading.council)
    with shown_to_people(as_json):
        # A person who is asked for a password must see the proposal, also where a script reads the
        # output.
        echo_reading(reading, names_signers=False)
    if export_path is not None:
        _write_new(export_path, json.dumps(typed_data(proposal), indent=2) + "\n")
        if as_json:
            echo_json(proposal_json(proposal))
        else:
            click.echo(f"EIP-712 JSON written to {export_path}; nothing was signed")
        return
    confirm(proposal, takes_pipe)
    if signature is not None:
        signed = add_signature(proposal, reading.council, signature)
    else:
        signed = sign_proposal(proposal, reading.council, signing.open(reading.council.chain_id))
    added = signed.signatures.keys() - proposal.signatures.keys()
    # Another owner may have signed the same file while this one was asked.
    latest = read_proposal(proposal_path, reading.record, reading.council, files.changes_safe)
    signed = collect(latest, reading.council, {f"proposal {proposal_path}": signed})
    write_proposal_file(proposal_path, signed, is_new=False)
    _end(signed, added, reading.address_book, as_json)


@click.command("collect", cls=CompleteCommand)
@proposal_argument
@click.argument(
    "copies", metavar="COPY...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@reading_options
@json_option
def collect_signatures(
    proposal_path: Path,
    copies: tuple[Path, ...],
    files: MemberFiles,
    as_json: bool,
) -> None:
    """Add the signatures of other copies of a proposal to FILE; no network is used.

    A copy that is another proposal is named, and then nothing is written.

    \b
    Example:
      chainkit council collect disable-300.json from-bob.json from-carol.json \\
        --deployment deployment.json --council council.json
    """
    reading = Reading.open(proposal_path, files)
    others = {
        f"copy {path}": read_proposal(path, reading.record, reading.council, files.changes_safe)
        for path in copies
    }
    collected = collect(reading.proposal, reading.council, others)
    write_proposal_file(proposal_path, collected, is_new=False)
    with shown_to_people(as_json):
        echo_signed_hash(collected)
        count = len(collected.signatures)
        echo_fact("signatures", f"{count}; the chain knows how many are needed")
    _end(collected, collected.signatures, reading.address_book, as_json)
    if not as_json:
        option = " --owners" if collected.changes_safe else ""
        click.echo(f"next: chainkit council status{option} {proposal_path}")


@click.command("export", cls=CompleteCommand)
@proposal_argument
@click.argument("batch_path", metavar="BATCH", type=click.Path(path_type=Path))
@reading_options
@json_option
def export(
    proposal_path: Path,
    batch_path: Path,
    files: MemberFiles,
    as_json: bool,
) -> None:
    """Write a Safe's proposal as a batch file of Safe's Transaction Builder; no network is used.

    The batch holds the same calls, without nonce and signatures. Compare the SafeTx hash there.

    \b
    Example:
      chainkit council export disable-300.json batch.json \\
        --deployment deployment.json --council council.json
    """
    reading = Reading.open(proposal_path, files)
    batch = batch_file(reading.proposal, reading.council, int(time.time() * 1000))
    _write_new(batch_path, json.dumps(batch, indent=2) + "\n")
    hash_ = hex0x(reading.proposal.hash)
    if as_json:
        echo_json({"batch": str(batch_path), "safe_tx_hash": hash_})
        return
    echo_fact("written to", str(batch_path))
    echo_fact("SafeTx hash", hash_)


def _end(
    proposal: Proposal, signers: Collection[str], address_book: AddressBook, as_json: bool
) -> None:
    with shown_to_people(as_json):
        echo_signers(signers, address_book)
    if as_json:
        echo_json(proposal_json(proposal))


def _write_new(path: Path, text: str) -> None:
    write_new(path, text.encode(), f"file {path}")
