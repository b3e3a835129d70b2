"""A council on a chain: a real Safe on an anvil owns the contracts, its owners hold keystores."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from eth_account import Account
from eth_utils.address import to_checksum_address

from chainkit.chain import Endpoint
from chainkit.chain.sending import Sending, wait_for_receipt
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.interface import shipped_interface
from chainkit.contracts.registry import Registry
from chainkit.contracts.state import DEFAULT_ADMIN_ROLE, ContractState
from chainkit.council.calls import Call
from chainkit.council.proposal import Council, Proposal, read_council, sign_proposal, write_council
from chainkit.council.proposal.account_state import (
    AccountState,
    find_account_state,
    read_account_state,
)
from chainkit.council.proposal.drafting import Terms, draft
from chainkit.council.proposal.status import ProposalStatus, read_status
from chainkit.council.signing import KeySigner
from chainkit.text.hexadecimal import parse_bytes
from chainkit.types import BlockHeader
from localnet.accounts import COUNCIL
from localnet.safe import create_safe, deploy_safe_contracts
from support.chains.chain import LocalChain, dev_address, dev_secret
from support.command_line import PASSWORD

OWNER_NUMBERS = (3, 4, 5, 6, 7)
"""Development accounts that own the Safe."""

PAYER = 8
"""Development account that executes, and is no owner."""

REASON = "node 100 served what the chain does not hold"


@dataclass(frozen=True)
class CouncilScene:
    """A chain whose contracts a council's account holds, with the files of its members."""

    chain: LocalChain
    council: Council
    folder: Path

    @classmethod
    def at(cls, chain: LocalChain, folder: Path) -> CouncilScene:
        """Return the scene with the council file of a folder."""
        return cls(chain, read_council(folder / "council.json"), folder)

    @property
    def record(self) -> DeploymentRecord:
        return self.chain.record

    @property
    def endpoint(self) -> Endpoint:
        return self.chain.endpoint

    @property
    def sending(self) -> Sending:
        return Sending(self.endpoint)

    @property
    def files(self) -> list[str]:
        """Options that name the member's own files."""
        council = self.folder / "council.json"
        return ["--deployment", str(self.chain.record_path), "--council", str(council)]

    @property
    def rpc(self) -> list[str]:
        return ["--rpc", self.chain.url]

    def state(self) -> ContractState:
        return ContractState(self.endpoint, self.endpoint.head().reference)

    def account(self, head: BlockHeader) -> AccountState:
        return read_account_state(ContractState(self.endpoint, head.reference), self.council)

    def registry(self) -> Registry:
        return Registry(self.endpoint, self.record.node_registry.address)

    def call(self, function: str, *arguments: object, contract: str = "NodeRegistry") -> Call:
        return Call.make(self.record, contract, function, *arguments)

    def draft(self, *calls: Call, days: int = 7, nonce: int | None = None) -> Proposal:
        head = self.endpoint.head()
        terms = Terms(REASON, (), days, nonce)
        return draft(self.account(head), self.record, head, calls, terms)

    def signed(self, proposal: Proposal, owners: Sequence[int]) -> Proposal:
        """Return it with signatures of owners, by their position."""
        for owner in owners:
            signer = KeySigner("key", dev_secret(OWNER_NUMBERS[owner]))
            proposal = sign_proposal(proposal, self.council, signer)
        return proposal

    def standing(self, proposal: Proposal) -> ProposalStatus:
        head = self.endpoint.head()
        return read_status(proposal, self.account(head), self.record, head)

    def keystore(self, number: int) -> list[str]:
        """Options that name the keystore of a development account."""
        path, password = self.folder / f"key-{number}.json", self.folder / "password.txt"
        if not path.exists():
            content = Account.encrypt(dev_secret(number), PASSWORD, kdf="pbkdf2", iterations=1000)
            path.write_text(json.dumps(content))
            password.write_text(PASSWORD + "\n")
        return ["--keystore", str(path), "--password-file", str(password)]

    def owner_keystore(self, owner: int) -> list[str]:
        return self.keystore(OWNER_NUMBERS[owner])


@contextmanager
def safe_scene(
    chain: LocalChain,
    folder: Path,
    version: str = "1.4.1",
    threshold: int = 2,
    owners: int = 3,
    singleton: str = "SafeL2",
) -> Iterator[CouncilScene]:
    """Create a Safe on a chain and hand all contracts over to it."""
    deploy_safe_contracts(chain.anvil, version)
    addresses = [dev_address(number) for number in OWNER_NUMBERS[:owners]]
    yield scene_of(chain, folder, addresses, version, threshold, singleton)


def scene_of(
    chain: LocalChain,
    folder: Path,
    owners: Sequence[str],
    version: str = "1.4.1",
    threshold: int = 2,
    singleton: str = "SafeL2",
) -> CouncilScene:
    """Create a Safe of a deployed release for owners, and hand all contracts over to it."""
    safe = create_safe(chain.anvil, version, owners, threshold, singleton=singleton)
    _hand_over(chain, safe)
    return _scene(chain, folder, safe)


def plain_scene(chain: LocalChain, folder: Path) -> CouncilScene:
    """Leave the contracts with the development account that the deployment gave them to."""
    return _scene(chain, folder, bytes.fromhex(dev_address(COUNCIL)[2:]))


def _scene(chain: LocalChain, folder: Path, account: bytes) -> CouncilScene:
    state = ContractState(chain.endpoint, chain.endpoint.head().reference)
    council = find_account_state(state, chain.record.chain_id, account).council
    write_council(folder / "council.json", council)
    return CouncilScene(chain, council, folder)


def _hand_over(chain: LocalChain, safe: bytes) -> None:
    registry, logs = chain.record.node_registry, chain.record.sequenced_logs
    encode = shipped_interface("NodeRegistry").encode
    chain.send(registry.address, encode("transferOwnership", to_checksum_address(safe)), COUNCIL)
    _act(chain, safe, registry.address, encode("acceptOwnership"))
    for log in logs:
        arguments = (DEFAULT_ADMIN_ROLE, to_checksum_address(safe))
        grant = shipped_interface(log.name).encode("grantRole", *arguments)
        chain.send(log.address, grant, COUNCIL)


def send_as_safe(scene: CouncilScene, to: bytes, data: bytes) -> None:
    """Let the Safe act past this package, as its owners could by other tools."""
    _act(scene.chain, scene.council.account, to, data)


def _act(chain: LocalChain, sender: bytes, to: bytes, data: bytes) -> None:
    """Send as an account whose key nobody has."""
    sender_hex = "0x" + sender.hex()
    chain.anvil.request("anvil_impersonateAccount", sender_hex)
    chain.anvil.request("anvil_setBalance", sender_hex, hex(10**18))
    call = {"from": sender_hex, "to": "0x" + to.hex(), "data": "0x" + data.hex()}
    sent = chain.anvil.request("eth_sendTransaction", call | {"gas": hex(1_000_000)})
    assert wait_for_receipt(chain.endpoint, parse_bytes(sent)).succeeded
    chain.anvil.request("anvil_setBalance", sender_hex, "0x0")
    chain.anvil.request("anvil_stopImpersonatingAccount", sender_hex)
