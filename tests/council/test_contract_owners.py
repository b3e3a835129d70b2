"""Owners who approve on the chain: with a key, as another Safe, and by a contract's signature."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_utils.address import to_checksum_address

from chainkit.contracts.interface import shipped_interface
from chainkit.council.safe import (
    InnerCall,
    SafeTransaction,
    contract_signature,
    pack,
)
from chainkit.signatures import SigningKey
from localnet.accounts import COUNCIL
from localnet.safe import create_safe, deploy_safe_contracts, send_unsigned
from support.chains.chain import LocalChain, dev_address, dev_secret
from support.command_line import Outcome, run
from support.council.desk import OWNER_NUMBERS, PAYER, REASON, Desk, desk_of
from support.council.offline import in_one_line
from support.council.proposal_commands import (
    execute,
    hash_of,
    proposal_path,
    propose,
    sign,
    status_on_chain,
    with_node,
)
from support.council.safes import Owner

VERSION = "1.4.1"


def status(desk: Desk) -> Outcome:
    return run("council", "status", proposal_path(desk), *desk.rpc, *desk.files)


def approve(desk: Desk, *options: object) -> Outcome:
    path = proposal_path(desk)
    typed = hash_of(path)[2:18] + "\n"
    return run(
        "council",
        "approve",
        path,
        "--digits-from-pipe",
        *desk.rpc,
        *desk.files,
        *options,
        typed=typed,
    )


def done(desk: Desk) -> Outcome:
    return execute(desk, "--broadcast", *desk.keystore(PAYER))


def add_contract_signature(desk: Desk, signature: bytes) -> Outcome:
    path = proposal_path(desk)
    file = desk.folder / "signature.txt"
    file.write_text(signature.hex())
    typed = hash_of(path)[2:18] + "\n"
    given = ("--signature", file)
    return run("council", "sign", "--digits-from-pipe", path, *desk.files, *given, typed=typed)


@dataclass(frozen=True)
class InnerSafe:
    """A Safe of one owner, a development account, that is itself an owner."""

    chain: LocalChain
    number: int
    account: bytes

    @property
    def address(self) -> str:
        return to_checksum_address(self.account)

    def send(self, to: bytes, calldata: bytes, nonce: int) -> None:
        """Let its owner sign a call, and execute it."""
        transaction = SafeTransaction.of_calls(
            chain_id=self.chain.record.chain_id,
            safe=self.account,
            nonce=nonce,
            calls=[InnerCall(to, calldata)],
            multi_send=bytes(20),
        )
        owner = Owner(SigningKey(dev_secret(self.number)))
        data = transaction.exec_calldata(pack(transaction.hash, [owner.sign(transaction.hash)]))
        assert send_unsigned(self.chain.anvil, dev_address(PAYER), self.account, data).succeeded

    def sign(self, message: bytes) -> bytes:
        """Return what the Safe of release 1.4.1 takes for its signature of a message."""
        typed = encode_typed_data(
            domain_data={
                "chainId": self.chain.record.chain_id,
                "verifyingContract": self.address,
            },
            message_types={"SafeMessage": [{"name": "message", "type": "bytes"}]},
            message_data={"message": message},
        )
        signed = Account.sign_message(typed, dev_secret(self.number)).signature
        return contract_signature(self.account, bytes(signed))


def inner_safes(chain: LocalChain, numbers: Sequence[int]) -> list[InnerSafe]:
    return [
        InnerSafe(chain, number, create_safe(chain.anvil, VERSION, [dev_address(number)], 1))
        for number in numbers
    ]


def encoded_of(desk: Desk) -> bytes:
    hashes = json.loads(proposal_path(desk).read_text())["hashes"]
    return b"\x19\x01" + bytes.fromhex(hashes["domain"][2:] + hashes["message"][2:])


def test_approve__one_signs_and_one_approves_on_the_chain__is_executed(desk: Desk) -> None:
    propose(desk)
    sign(desk, 2)

    shown = approve(desk)
    refused = approve(desk, "--broadcast", *desk.keystore(PAYER))
    approved = approve(desk, "--broadcast", *desk.owner_keystore(0))
    again = approve(desk, "--broadcast", *desk.owner_keystore(0))

    assert shown.code == 0, shown.err
    assert "nothing was sent" in shown.out
    assert shipped_interface("Safe").selector("approveHash").hex() in shown.out
    assert refused.code == 2
    assert "expected an owner of the Safe" in refused.err
    assert approved.code == 0, approved.err
    assert "approved, and read back" in approved.out
    assert again.code == 2
    assert "an owner who has not approved yet" in again.err
    standing = status(desk)
    assert standing.code == 0, standing.out
    assert "2 of 2 needed" in standing.out
    assert f"  approved      {dev_address(OWNER_NUMBERS[0])}" in standing.out
    assert done(desk).code == 0
    assert status_on_chain(desk) == "disabled"


def test_status__owner_signed_and_approved__counts_once(desk: Desk) -> None:
    propose(desk)
    sign(desk, 0)
    approve(desk, "--broadcast", *desk.owner_keystore(0))

    standing = status(desk)

    assert standing.code == 1
    assert "1 of 2 needed" in standing.out
    assert "1 more signature needed" in standing.out


def test_sign__owner_who_delegates_by_eip_7702__counts_as_before(desk: Desk) -> None:
    code = "0xef0100" + desk.record.group_messages.address.hex()
    desk.chain.anvil.request("anvil_setCode", dev_address(OWNER_NUMBERS[0]), code)
    propose(desk)
    sign(desk, 0)
    sign(desk, 1)

    standing = status(desk)
    executed = done(desk)

    assert standing.code == 0, standing.out
    assert "is a contract" not in standing.out
    assert executed.code == 0, executed.err
    assert status_on_chain(desk) == "disabled"


def test_signature__of_a_contract_that_signed_another_hash__does_not_count(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    with_node(local_chain)
    deploy_safe_contracts(local_chain.anvil, VERSION)
    (inner,) = inner_safes(local_chain, [9])
    owners = [dev_address(number) for number in OWNER_NUMBERS[:2]]
    desk = desk_of(local_chain, tmp_path, [*owners, inner.address])
    propose(desk)
    added = add_contract_signature(desk, inner.sign(b"another message"))
    sign(desk, 0)
    waiting = status(desk)
    sign(desk, 1)
    executed = done(desk)

    assert added.code == 0, added.err
    assert waiting.code == 1
    assert "1 of 2 needed" in waiting.out
    assert f"  not proved    {inner.address}" in waiting.out
    assert executed.code == 0, executed.err
    assert status_on_chain(desk) == "disabled"


def test_owners_add__contract__is_a_caution_and_then_an_owner(desk: Desk) -> None:
    (inner,) = inner_safes(desk.chain, [9])
    path = proposal_path(desk)
    place = ("--propose", path, "--reason", REASON)

    drafted = run("council", "owners", "add", inner.address, *place, *desk.rpc, *desk.files)

    assert drafted.code == 0, drafted.err
    words = f"caution new owner {inner.address} is a contract: it approves on the chain"
    assert words in in_one_line(drafted.out)


def test_safe_of_two_safes__from_the_hand_over_to_a_disable__decides(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    with_node(local_chain)
    deploy_safe_contracts(local_chain.anvil, VERSION)
    ann, ben = inner_safes(local_chain, OWNER_NUMBERS[:2])
    outer = create_safe(local_chain.anvil, VERSION, [ann.address, ben.address], 2)
    council, record = tmp_path / "council.json", local_chain.record_path
    files = ["--deployment", record, "--council", council, "--rpc", local_chain.url]
    address = to_checksum_address(outer)

    begun = run("council", "init", address, *files)
    assert begun.code == 0, begun.err
    for inner in (ann, ben):
        words = f"caution owner {inner.address} is a contract: it approves on the chain"
        assert words in in_one_line(begun.out)
    desk = Desk.at(local_chain, tmp_path)
    sent = ("--broadcast", *desk.keystore(COUNCIL))
    offered = run("registry", "hand-over", "--to", address, *files[:2], *files[4:], *sent)
    assert offered.code == 0, offered.err

    path = proposal_path(desk)
    accepted = run("registry", "accept", "--propose", path, "--reason", REASON, *files)
    assert accepted.code == 0, accepted.err
    batch = tmp_path / "approval.json"
    assert approve(desk, "--export", batch).code == 0
    (call,) = json.loads(batch.read_text())["transactions"]
    for inner in (ann, ben):
        to, data = (bytes.fromhex(call[name][2:]) for name in ("to", "data"))
        inner.send(to, data, nonce=0)
    standing = status(desk)
    assert standing.code == 0, standing.out
    assert done(desk).code == 0
    assert desk.registry().owner(desk.state().block) == address

    path.unlink()
    batch.unlink()
    assert propose(desk).code == 0
    approve(desk, "--export", batch)
    (call,) = json.loads(batch.read_text())["transactions"]
    ann.send(outer, bytes.fromhex(call["data"][2:]), nonce=1)
    assert "1 of 2 needed" in status(desk).out
    added = add_contract_signature(desk, ben.sign(encoded_of(desk)))
    assert added.code == 0, added.err
    standing = status(desk)
    assert standing.code == 0, standing.out
    assert f"  signed        {ben.address}" in standing.out
    assert done(desk).code == 0
    assert status_on_chain(desk) == "disabled"
