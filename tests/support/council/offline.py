"""A council member without a network: his files, and a proposal."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

from eth_account import Account

from chainkit.council.proposal import Council, Proposal, write_council, write_proposal_file
from chainkit.signatures import SigningKey, address_of
from support.command_line import Outcome, run, write_keystore
from support.council.proposals import RECORD, SAFE, STRANGER, proposed

WEEK = 7 * 86_400
STRANGER_ADDRESS = address_of(SigningKey(STRANGER).public_key)


@dataclass(frozen=True)
class Paper:
    """A member's own files, and a proposal; there is no chain."""

    folder: Path
    proposal: Proposal

    @property
    def path(self) -> Path:
        return self.folder / "proposal.json"

    @property
    def strangers_signature(self) -> bytes:
        return bytes(Account.unsafe_sign_hash(self.proposal.hash, STRANGER).signature)

    @property
    def files(self) -> list[str]:
        deployment, council = self.folder / "deployment.json", self.folder / "council.json"
        return ["--deployment", str(deployment), "--council", str(council)]

    def keystore(self, secret: bytes) -> list[str]:
        folder = self.folder / address_of(SigningKey(secret).public_key)
        folder.mkdir()
        return write_keystore(folder, secret)

    def sign(self, *options: str) -> Outcome:
        typed = self.proposal.hash.hex()[:16] + "\n"
        return run(
            "council", "sign", "--digits-from-pipe", self.path, *self.files, *options, typed=typed
        )

    def copy_signed(self, secret: bytes, name: str) -> Path:
        path = self.folder / name
        signature = Account.unsafe_sign_hash(self.proposal.hash, secret).signature
        write_proposal_file(path, self.proposal.signed(signature), is_new=True)
        return path


def paper(folder: Path, council: Council = SAFE, proposal: Proposal | None = None) -> Paper:
    """Write a member's files and a proposal, disabling node 300 unless another is given."""
    contracts = {}
    for contract in RECORD.contracts:
        content = {
            "address": "0x" + contract.address.hex(),
            "block": contract.block,
            "transaction": "0x" + contract.transaction.hex(),
        }
        is_proxy = contract in RECORD.sequenced_logs
        contracts[contract.name] = content | ({"implementation": content} if is_proxy else {})
    record = {
        "format": 1,
        "chain_id": RECORD.chain_id,
        "genesis_hash": "0x" + RECORD.genesis_hash.hex(),
        "deployer": "0x" + RECORD.deployer.hex(),
        "contracts": contracts,
    }
    (folder / "deployment.json").write_text(json.dumps(record))
    write_council(folder / "council.json", council)
    proposal = proposal or proposed(council=council, expires=int(time.time()) + WEEK)
    write_proposal_file(folder / "proposal.json", proposal, is_new=True)
    return Paper(folder, proposal)


def in_one_line(text: str) -> str:
    return " ".join(text.split())
