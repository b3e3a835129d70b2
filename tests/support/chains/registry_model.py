"""NodeRegistry as a Python model (XIP-49 §2.2.1 read with §3.1.1)."""

from __future__ import annotations

from dataclasses import dataclass

from eth_utils import keccak

from support.chains.mined import ZERO
from support.solidity import Event, Question, Refused, Transaction

FIELD_PRIME = 2**256 - 2**32 - 977
KEY_LENGTH = 65
MAX_HTTP_ADDRESS_LENGTH = 512
ID_STEP = 100

NODE = "(bytes,string,bool)"
NODE_WITH_ID = f"(uint32,{NODE})"


@dataclass
class Node:
    key: bytes
    http_address: str
    is_healthy: bool
    holder: str

    @property
    def value(self) -> tuple[bytes, str, bool]:
        return (self.key, self.http_address, self.is_healthy)


@dataclass(frozen=True)
class Page:
    offset: int
    limit: int


class RegistryModel:
    """The registry, and the addresses around it by their names."""

    def __init__(self, registry: str, names: dict[str, str], keys_asked: list[bytes]) -> None:
        self.registry = registry
        self.owner = names["account 1"]
        self.names = names
        self.keys_asked = keys_asked
        self.pending_owner = ZERO
        self.updates_open = False
        self.nodes: dict[int, Node] = {}
        self.pages: list[Page] = []

    def address(self, name: str) -> str:
        return {"owner": self.owner, "registry": self.registry, **self.names}.get(
            name, self.pending_owner
        )

    def holder(self, node_id: int) -> str:
        if node_id not in self.nodes:
            raise Refused("ERC721NonexistentToken(uint256)", node_id)
        return self.nodes[node_id].holder

    def apply(self, transaction: Transaction) -> list[Event]:
        handler = getattr(self, f"_{transaction.function}")
        events: list[Event] = handler(transaction.sender, *transaction.arguments)
        return events

    # -------------------------------------------------------------- what is asked

    def questions(self) -> list[Question]:
        questions = [
            self._question("owner()", "(address)", self.owner),
            self._question("pendingOwner()", "(address)", self.pending_owner),
            self._question("httpAddressUpdatesOpen()", "(bool)", self.updates_open),
            self._question("maxHttpAddressLength()", "(uint256)", MAX_HTTP_ADDRESS_LENGTH),
            self._question("nodeCount()", "(uint256)", len(self.nodes)),
        ]
        for name, account in self.names.items():
            if name != "zero":
                held = sum(node.holder == account for node in self.nodes.values())
                questions.append(self._question("balanceOf(address)", "(uint256)", held, account))
        unknown = (0, ID_STEP // 2, ID_STEP * (len(self.nodes) + 1))
        for node_id in (*self.nodes, *unknown):
            questions.extend(self._node_questions(node_id))
        for key in self.keys_asked:
            questions.extend(self._key_questions(key))
        return questions + self._listing_questions()

    def _question(self, signature: str, returns: str, answer: object, *args: object) -> Question:
        shown = answer if isinstance(answer, Refused) else (answer,)
        return Question(self.registry, signature, args, returns, shown)

    def _node_questions(self, node_id: int) -> list[Question]:
        unknown = Refused("ERC721NonexistentToken(uint256)", node_id)
        node = self.nodes.get(node_id)
        return [
            self._question(f"{function}(uint256)", returns, answer if node else unknown, node_id)
            for function, returns, answer in (
                ("getNode", f"({NODE})", node and node.value),
                ("ownerOf", "(address)", node and node.holder),
                ("getApproved", "(address)", ZERO),
            )
        ]

    def _key_questions(self, key: bytes) -> list[Question]:
        returns, found = f"({NODE_WITH_ID})", self._found(key)
        by_key = self._question("nodeBySigningKey(bytes)", returns, _key_fault(key) or found, key)
        if _key_fault(key):
            return [by_key]
        address = _address_of(key)
        return [
            by_key,
            self._question("nodeByKeyAddress(address)", returns, found, address),
        ]

    def _found(self, key: bytes) -> object:
        for node_id, node in self.nodes.items():
            if node.key == key:
                return (node_id, node.value)
        return Refused("UnknownSigningKey(address)", _address_of(key))

    def _listing_questions(self) -> list[Question]:
        everything = [(node_id, node.value) for node_id, node in self.nodes.items()]
        returns = f"({NODE_WITH_ID}[])"
        questions = [
            self._question("allNodes()", returns, everything),
            self._question("healthyNodes()", returns, _healthy(everything)),
        ]
        for page in self.pages:
            found = everything[page.offset : page.offset + page.limit]
            for function, answer in (("nodesPage", found), ("healthyNodesPage", _healthy(found))):
                signature = f"{function}(uint256,uint256)"
                questions.append(
                    self._question(signature, returns, answer, page.offset, page.limit)
                )
        return questions

    # -------------------------------------------------------------- what is sent

    def _addNode(  # noqa: N802
        self, sender: str, to: str, key: bytes, http_address: str
    ) -> list[Event]:
        self._require_owner(sender)
        if fault := _key_fault(key):
            raise fault
        _require_http_address(http_address)
        for node_id, node in self.nodes.items():
            if node.key == key:
                raise Refused("SigningKeyAlreadyUsed(uint256)", node_id)
        _require_receiver(to)
        node_id = ID_STEP * (len(self.nodes) + 1)
        self.nodes[node_id] = Node(key, http_address, True, to)
        return [
            self._event("Transfer(address,address,uint256)", 3, ZERO, to, node_id),
            self._event("NodeAdded(address,uint256,address)", 3, sender, node_id, to),
            self._updated(node_id),
        ]

    def _updateHealth(self, sender: str, node_id: int, is_healthy: bool) -> list[Event]:  # noqa: N802
        self._require_owner(sender)
        self.holder(node_id)
        self.nodes[node_id].is_healthy = is_healthy
        event = "NodeHealthUpdated(address,uint256,bool)"
        return [self._event(event, 2, sender, node_id, is_healthy), self._updated(node_id)]

    def _updateHttpAddress(  # noqa: N802
        self, sender: str, node_id: int, http_address: str
    ) -> list[Event]:
        if not self.updates_open:
            raise Refused("HttpAddressUpdatesClosed(uint256)", node_id)
        if sender != self.holder(node_id):
            raise Refused("NotNodeHolder(uint256,address)", node_id, sender)
        _require_http_address(http_address)
        self.nodes[node_id].http_address = http_address
        event = "NodeHttpAddressUpdated(address,uint256,string)"
        return [self._event(event, 2, sender, node_id, http_address), self._updated(node_id)]

    def _setHttpAddressUpdatesOpen(self, sender: str, is_open: bool) -> list[Event]:  # noqa: N802
        self._require_owner(sender)
        self.updates_open = is_open
        return [self._event("HttpAddressUpdatesOpenChanged(address,bool)", 1, sender, is_open)]

    def _transferFrom(self, sender: str, source: str, to: str, node_id: int) -> list[Event]:  # noqa: N802
        self._require_owner(sender)
        _require_receiver(to)
        if self.holder(node_id) != source:
            error = "ERC721IncorrectOwner(address,uint256,address)"
            raise Refused(error, source, node_id, self.holder(node_id))
        self.nodes[node_id].holder = to
        return [
            self._event("Transfer(address,address,uint256)", 3, source, to, node_id),
            self._event("NodeTransferred(address,uint256,address)", 3, sender, node_id, to),
        ]

    def _safeTransferFrom(  # noqa: N802
        self, sender: str, source: str, to: str, node_id: int, data: bytes = b""
    ) -> list[Event]:
        events = self._transferFrom(sender, source, to, node_id)
        if to == self.registry:
            raise Refused("ERC721InvalidReceiver(address)", to)
        return events

    def _approve(self, sender: str, to: str, node_id: int) -> list[Event]:
        raise Refused("ApprovalsDisabled(address)", to)

    def _setApprovalForAll(self, sender: str, operator: str, is_approved: bool) -> list[Event]:  # noqa: N802
        raise Refused("ApprovalsDisabled(address)", operator)

    def _transferOwnership(self, sender: str, proposed: str) -> list[Event]:  # noqa: N802
        self._require_owner(sender)
        self.pending_owner = proposed
        return [self._event("OwnershipTransferStarted(address,address)", 2, self.owner, proposed)]

    def _acceptOwnership(self, sender: str) -> list[Event]:  # noqa: N802
        if sender != self.pending_owner:
            raise Refused("OwnableUnauthorizedAccount(address)", sender)
        event = self._event("OwnershipTransferred(address,address)", 2, self.owner, sender)
        self.owner, self.pending_owner = sender, ZERO
        return [event]

    def _renounceOwnership(self, sender: str) -> list[Event]:  # noqa: N802
        raise Refused("RenouncingDisabled()")

    def _require_owner(self, sender: str) -> None:
        if sender != self.owner:
            raise Refused("OwnableUnauthorizedAccount(address)", sender)

    def _event(self, signature: str, indexed: int, *arguments: object) -> Event:
        return Event(self.registry, signature, arguments, indexed)

    def _updated(self, node_id: int) -> Event:
        signature = f"NodeUpdated(uint256,{NODE})"
        return self._event(signature, 0, node_id, self.nodes[node_id].value)


def _healthy(nodes: list[tuple[int, tuple[bytes, str, bool]]]) -> list[object]:
    return [(node_id, value) for node_id, value in nodes if value[2]]


def _require_http_address(http_address: str) -> None:
    length = len(http_address.encode())
    if length == 0:
        raise Refused("EmptyHttpAddress()")
    if length > MAX_HTTP_ADDRESS_LENGTH:
        error = "HttpAddressTooLong(uint256,uint256)"
        raise Refused(error, length, MAX_HTTP_ADDRESS_LENGTH)


def _require_receiver(to: str) -> None:
    if to == ZERO:
        raise Refused("ERC721InvalidReceiver(address)", to)


def _key_fault(key: bytes) -> Refused | None:
    if len(key) != KEY_LENGTH:
        return Refused("InvalidSigningKeyLength(uint256)", len(key))
    if key[0] != 0x04:
        return Refused("InvalidSigningKeyPrefix(bytes1)", key[:1])
    x, y = int.from_bytes(key[1:33]), int.from_bytes(key[33:])
    if max(x, y) >= FIELD_PRIME or (y * y - x**3 - 7) % FIELD_PRIME:
        return Refused("SigningKeyNotOnCurve(uint256,uint256)", x, y)
    return None


def _address_of(key: bytes) -> str:
    return "0x" + keccak(key[1:])[12:].hex()
