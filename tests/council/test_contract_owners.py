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
from support.council.offline import in_one_line
from support.council.proposal_commands import (
    execute,
    hash_of,
    proposal_path,
    propose,
    sign,
    status,
    status_on_chain,
    with_node,
)
from support.council.safes import Owner
from support.council.scene import OWNER_NUMBERS, PAYER, REASON, CouncilScene, scene_of

VERSION = "1.4.1"


def approve(scene: CouncilScene, *options: object) -> Outcome:
    path = proposal_path(scene)
    typed = hash_of(path)[2:18] + "\n"
    return run(
        "council",
        "approve",
        path,
        "--digits-from-pipe",
        *scene.rpc,
        *scene.files,
        *options,
        typed=typed,
    )


def done(scene: CouncilScene) -> Outcome:
    return execute(scene, "--broadcast", *scene.keystore(PAYER))


def add_contract_signature(scene: CouncilScene, signature: bytes) -> Outcome:
    path = proposal_path(scene)
    file = scene.folder / "signature.txt"
    file.write_text(signature.hex())
    typed = hash_of(path)[2:18] + "\n"
    given = ("--signature", file)
    return run("council", "sign", "--digits-from-pipe", path, *scene.files, *given, typed=typed)


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


def encoded_of(scene: CouncilScene) -> bytes:
    hashes = json.loads(proposal_path(scene).read_text())["hashes"]
    return b"\x19\x01" + bytes.fromhex(hashes["domain"][2:] + hashes["message"][2:])


def test_approve__one_signs_and_one_approves_on_the_chain__is_executed(scene: CouncilScene) -> None:
    propose(scene)
    sign(scene, 2)

    shown = approve(scene)
    refused = approve(scene, "--broadcast", *scene.keystore(PAYER))
    approved = approve(scene, "--broadcast", *scene.owner_keystore(0))
    again = approve(scene, "--broadcast", *scene.owner_keystore(0))

    assert shown.code == 0, shown.err
    assert "nothing was sent" in shown.out
    assert shipped_interface("Safe").selector("approveHash").hex() in shown.out
    assert refused.code == 2
    assert "expected an owner of the Safe" in refused.err
    assert approved.code == 0, approved.err
    assert "approved, and read back" in approved.out
    assert again.code == 2
    assert "an owner who has not approved yet" in again.err
    standing = status(scene)
    assert standing.code == 0, standing.out
    assert "2 of 2 needed" in standing.out
    assert f"  approved      {dev_address(OWNER_NUMBERS[0])}" in standing.out
    assert done(scene).code == 0
    assert status_on_chain(scene) == "disabled"


def test_status__owner_signed_and_approved__counts_once(scene: CouncilScene) -> None:
    propose(scene)
    sign(scene, 0)
    approve(scene, "--broadcast", *scene.owner_keystore(0))

    standing = status(scene)

    assert standing.code == 1
    assert "1 of 2 needed" in standing.out
    assert "1 more signature needed" in standing.out


def test_sign__owner_who_delegates_by_eip_7702__counts_as_before(scene: CouncilScene) -> None:
    code = "0xef0100" + scene.record.group_messages.address.hex()
    scene.chain.anvil.request("anvil_setCode", dev_address(OWNER_NUMBERS[0]), code)
    propose(scene)
    sign(scene, 0)
    sign(scene, 1)

    standing = status(scene)
    executed = done(scene)

    assert standing.code == 0, standing.out
    assert "is a contract" not in standing.out
    assert executed.code == 0, executed.err
    assert status_on_chain(scene) == "disabled"


def test_signature__of_a_contract_that_signed_another_hash__does_not_count(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    with_node(local_chain)
    deploy_safe_contracts(local_chain.anvil, VERSION)
    (inner,) = inner_safes(local_chain, [9])
    owners = [dev_address(number) for number in OWNER_NUMBERS[:2]]
    scene = scene_of(local_chain, tmp_path, [*owners, inner.address])
    propose(scene)
    added = add_contract_signature(scene, inner.sign(b"another message"))
    sign(scene, 0)
    waiting = status(scene)
    sign(scene, 1)
    executed = done(scene)

    assert added.code == 0, added.err
    assert waiting.code == 1
    assert "1 of 2 needed" in waiting.out
    assert f"  not proved    {inner.address}" in waiting.out
    assert executed.code == 0, executed.err
    assert status_on_chain(scene) == "disabled"


def test_owners_add__contract__is_a_caution_and_then_an_owner(scene: CouncilScene) -> None:
    (inner,) = inner_safes(scene.chain, [9])
    path = proposal_path(scene)
    place = ("--propose", path, "--reason", REASON)

    drafted = run("council", "owners", "add", inner.address, *place, *scene.rpc, *scene.files)

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
    scene = CouncilScene.at(local_chain, tmp_path)
    sent = ("--broadcast", *scene.keystore(COUNCIL))
    offered = run("registry", "hand-over", "--to", address, *files[:2], *files[4:], *sent)
    assert offered.code == 0, offered.err

    path = proposal_path(scene)
    accepted = run("registry", "accept", "--propose", path, "--reason", REASON, *files)
    assert accepted.code == 0, accepted.err
    batch = tmp_path / "approval.json"
    assert approve(scene, "--export", batch).code == 0
    (call,) = json.loads(batch.read_text())["transactions"]
    for inner in (ann, ben):
        to, data = (bytes.fromhex(call[name][2:]) for name in ("to", "data"))
        inner.send(to, data, nonce=0)
    standing = status(scene)
    assert standing.code == 0, standing.out
    assert done(scene).code == 0
    assert scene.registry().owner(scene.state().block) == address

    path.unlink()
    batch.unlink()
    assert propose(scene).code == 0
    approve(scene, "--export", batch)
    (call,) = json.loads(batch.read_text())["transactions"]
    ann.send(outer, bytes.fromhex(call["data"][2:]), nonce=1)
    assert "1 of 2 needed" in status(scene).out
    added = add_contract_signature(scene, ben.sign(encoded_of(scene)))
    assert added.code == 0, added.err
    standing = status(scene)
    assert standing.code == 0, standing.out
    assert f"  signed        {ben.address}" in standing.out
    assert done(scene).code == 0
    assert status_on_chain(scene) == "disabled"
