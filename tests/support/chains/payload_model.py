"""GroupMessages, IdentityUpdates and their sequence as a Python model (XIP-49 §2.2.2, §2.2.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from eth_utils import keccak

from support.chains.mined import ZERO
from support.solidity import Event, Question, Refused, StorageQuestion, Transaction, encode_call

ADMIN_ROLE = bytes(32)
OTHER_ROLE = keccak(text="a role that opens nothing")
PAYLOAD_SIZE_CAP = 1024 * 1024
NO_KIND = 2**256 - 1
IMPLEMENTATION_SLOT = int.from_bytes(keccak(text="eip1967.proxy.implementation")) - 1
PAUSE_CALL = encode_call("pause()")
INITIALIZE_CALL = encode_call("initialize(address,uint32,uint32)", ZERO, 0, 1)


@dataclass(frozen=True)
class UpgradeTarget:
    """The answers of an address to which a contract is to be upgraded."""

    sequence: str = ZERO
    topic_kind: int = NO_KIND
    can_upgrade: bool = False


@dataclass(frozen=True)
class PayloadInterface:
    topic_kind: int
    publish: str
    event: str


GROUP_MESSAGES = PayloadInterface(
    0, "addMessage(bytes32,bytes)", "MessageSent(bytes32,bytes,uint64)"
)
IDENTITY_UPDATES = PayloadInterface(
    2, "addIdentityUpdate(bytes32,bytes)", "IdentityUpdateCreated(bytes32,bytes,uint64)"
)


@dataclass
class PayloadContract:
    """The state of a proxy, or of an implementation that is called directly."""

    address: str
    interface: PayloadInterface
    sequence: str
    implementation: str = ""
    """Empty for an implementation: nobody can initialize or upgrade it."""

    minimum: int = 0
    maximum: int = 0
    paused: bool = False
    members: dict[bytes, list[str]] = field(
        default_factory=lambda: {ADMIN_ROLE: [], OTHER_ROLE: []}
    )

    def event(self, signature: str, *arguments: object, indexed: int = 0) -> Event:
        return Event(self.address, signature, arguments, indexed)


class PayloadModel:
    """Both proxies, their implementations, and the ids they take."""

    def __init__(
        self, sequence: str, contracts: Sequence[PayloadContract], names: dict[str, str]
    ) -> None:
        self.sequence = sequence
        self.contracts = {contract.address: contract for contract in contracts}
        self.names = names
        self.last = 0
        self.upgrade_targets = {
            contract.address: UpgradeTarget(
                contract.sequence, contract.interface.topic_kind, not contract.implementation
            )
            for contract in contracts
        }

    @property
    def proxies(self) -> list[PayloadContract]:
        return [contract for contract in self.contracts.values() if contract.implementation]

    def address(self, name: str, target: str) -> str:
        """An address by its name; "an admin" is the target's first one that has a key."""
        if name == "self":
            return target
        if name == "an admin":
            members = self.contracts[target].members[ADMIN_ROLE]
            with_key = [member for member in members if member not in self.contracts]
            return with_key[0] if with_key else self.names["account 1"]
        return self.names[name]

    def apply(self, transaction: Transaction) -> list[Event]:
        if transaction.to == self.sequence:
            raise Refused("UnauthorizedSequenceCaller(address)", transaction.sender)
        contract = self.contracts[transaction.to]
        handler = getattr(self, f"_{transaction.function}")
        events: list[Event] = handler(contract, transaction.sender, *transaction.arguments)
        return events

    def questions(self) -> list[Question | StorageQuestion]:
        questions: list[Question | StorageQuestion] = [
            Question(self.sequence, "last()", (), "(uint64)", (self.last,))
        ]
        for contract in self.proxies:
            bounds = (contract.minimum, contract.maximum)
            for signature, returns, answer in (
                ("lastSequenceId()", "(uint64)", (self.last,)),
                ("paused()", "(bool)", (contract.paused,)),
                ("payloadBounds()", "(uint32,uint32)", bounds),
                ("payloadSizeCap()", "(uint32)", (PAYLOAD_SIZE_CAP,)),
                ("originatorSequence()", "(address)", (self.sequence,)),
                ("topicKind()", "(uint256)", (contract.interface.topic_kind,)),
            ):
                questions.append(Question(contract.address, signature, (), returns, answer))
            word = bytes(12) + bytes.fromhex(contract.implementation[2:])
            questions.append(StorageQuestion(contract.address, IMPLEMENTATION_SLOT, word))
            for role, members in contract.members.items():
                questions.extend(self._role_questions(contract.address, role, members))
        return questions

    def _role_questions(self, address: str, role: bytes, members: list[str]) -> list[Question]:
        count = len(members)
        return [
            Question(address, "getRoleMembers(bytes32)", (role,), "(address[])", (members,)),
            Question(address, "getRoleMemberCount(bytes32)", (role,), "(uint256)", (count,)),
            *(
                Question(
                    address,
                    "hasRole(bytes32,address)",
                    (role, account),
                    "(bool)",
                    (account in members,),
                )
                for account in self.names.values()
            ),
        ]

    def _addMessage(  # noqa: N802
        self, contract: PayloadContract, sender: str, identifier: bytes, payload: bytes
    ) -> list[Event]:
        if contract.paused:
            raise Refused("EnforcedPause()")
        size, minimum, maximum = len(payload), contract.minimum, contract.maximum
        if not minimum <= size <= maximum:
            error = "PayloadSizeOutOfBounds(uint256,uint256,uint256)"
            raise Refused(error, size, minimum, maximum)
        if not contract.implementation:
            raise Refused("UnauthorizedSequenceCaller(address)", contract.address)
        self.last += 1
        return [contract.event(contract.interface.event, identifier, payload, self.last)]

    _addIdentityUpdate = _addMessage  # noqa: N815

    def _initialize(
        self, contract: PayloadContract, sender: str, admin: str, minimum: int, maximum: int
    ) -> list[Event]:
        raise Refused("InvalidInitialization()")

    def _pause(self, contract: PayloadContract, sender: str) -> list[Event]:
        _require_admin(contract, sender)
        if contract.paused:
            raise Refused("EnforcedPause()")
        contract.paused = True
        return [contract.event("Paused(address)", sender)]

    def _unpause(self, contract: PayloadContract, sender: str) -> list[Event]:
        _require_admin(contract, sender)
        if not contract.paused:
            raise Refused("ExpectedPause()")
        contract.paused = False
        return [contract.event("Unpaused(address)", sender)]

    def _setPayloadBounds(  # noqa: N802
        self, contract: PayloadContract, sender: str, minimum: int, maximum: int
    ) -> list[Event]:
        _require_admin(contract, sender)
        if minimum > maximum or not 0 < maximum <= PAYLOAD_SIZE_CAP:
            error = "InvalidPayloadBounds(uint32,uint32,uint32)"
            raise Refused(error, minimum, maximum, PAYLOAD_SIZE_CAP)
        contract.minimum, contract.maximum = minimum, maximum
        event = "PayloadBoundsSet(address,uint32,uint32)"
        return [contract.event(event, sender, minimum, maximum)]

    def _grantRole(  # noqa: N802
        self, contract: PayloadContract, sender: str, role: bytes, account: str
    ) -> list[Event]:
        _require_admin(contract, sender)
        if role == ADMIN_ROLE and account in (ZERO, contract.address):
            raise Refused("InvalidAdmin(address)", account)
        if account in contract.members[role]:
            return []
        contract.members[role].append(account)
        event = "RoleGranted(bytes32,address,address)"
        return [contract.event(event, role, account, sender, indexed=3)]

    def _revokeRole(  # noqa: N802
        self, contract: PayloadContract, sender: str, role: bytes, account: str
    ) -> list[Event]:
        _require_admin(contract, sender)
        return _remove_member(contract, sender, role, account)

    def _renounceRole(  # noqa: N802
        self, contract: PayloadContract, sender: str, role: bytes, confirmation: str
    ) -> list[Event]:
        if confirmation != sender:
            raise Refused("AccessControlBadConfirmation()")
        return _remove_member(contract, sender, role, sender)

    def _upgradeToAndCall(  # noqa: N802
        self, contract: PayloadContract, sender: str, proposed: str, data: bytes
    ) -> list[Event]:
        if not contract.implementation:
            raise Refused("UUPSUnauthorizedCallContext()")
        _require_admin(contract, sender)
        target = self.upgrade_targets.get(proposed, UpgradeTarget())
        if target.sequence != self.sequence:
            error = "OriginatorSequenceChanged(address,address)"
            raise Refused(error, self.sequence, target.sequence)
        kind = contract.interface.topic_kind
        if target.topic_kind != kind:
            raise Refused("TopicKindChanged(uint256,uint256)", kind, target.topic_kind)
        if not target.can_upgrade:
            raise Refused("ERC1967InvalidImplementation(address)", proposed)
        contract.implementation = proposed
        events = [
            contract.event("UpgradeAuthorized(address,address)", sender, proposed),
            contract.event("Upgraded(address)", proposed, indexed=1),
        ]
        return events + self._called(contract, sender, data)

    def _called(self, contract: PayloadContract, sender: str, data: bytes) -> list[Event]:
        """The proxy's events for the call that comes with an upgrade."""
        if data == PAUSE_CALL:
            return self._pause(contract, sender)
        if data == INITIALIZE_CALL:
            raise Refused("InvalidInitialization()")
        return []


def _require_admin(contract: PayloadContract, sender: str) -> None:
    if sender not in contract.members[ADMIN_ROLE]:
        error = "AccessControlUnauthorizedAccount(address,bytes32)"
        raise Refused(error, sender, ADMIN_ROLE)


def _remove_member(
    contract: PayloadContract, sender: str, role: bytes, account: str
) -> list[Event]:
    members = contract.members[role]
    if account not in members:
        return []
    if role == ADMIN_ROLE and members == [account]:
        raise Refused("LastAdmin(address)", account)
    # OpenZeppelin's set moves the last member into the gap.
    members[members.index(account)] = members[-1]
    members.pop()
    return [
        contract.event("RoleRevoked(bytes32,address,address)", role, account, sender, indexed=3)
    ]
