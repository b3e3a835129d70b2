"""Compares a deployment with what this package would deploy, piece by piece, at one block.

The order is that of trust: the chain, then the code, then the code's answers. A contract is only
asked where its code is the package's, because other code can answer anything; code and slots are
read from the chain itself.

Code and answers show the present. A former administrator could have upgraded to other code, written
any storage, and upgraded back, and other creation code could leave storage of its own. So the past
is compared too (`creation.py`): the transactions that created the contracts, and what the proxies
have run since.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final

from eth_utils.address import to_checksum_address

from chainkit.chain import Endpoint
from chainkit.contracts.artifacts import identify_release, immutables_of, runtime_code
from chainkit.contracts.comparison import Comparison, code_words, compared
from chainkit.contracts.creation import compare_creations, compare_roles
from chainkit.contracts.deployment import DeployedContract, DeploymentRecord, RecordedParameters
from chainkit.contracts.implementation import initialization_words
from chainkit.contracts.parameters import Parameters
from chainkit.contracts.state import (
    DEFAULT_ADMIN_ROLE,
    INITIALIZABLE_SLOT,
    LOCKED,
    ContractState,
    erc1967_slot,
)
from chainkit.types import ADDRESS_LENGTH, BlockReference, TopicKind

TOPIC_KINDS: Final = {
    "GroupMessages": TopicKind.GROUP_MESSAGE,
    "IdentityUpdates": TopicKind.IDENTITY_UPDATE,
}
"""The kind of each log's payloads: the log's contract returns the kind's number."""

_NOBODY: Final = to_checksum_address(bytes(ADDRESS_LENGTH))
_NOTHING: Final = "nothing"


Comparing = Generator[Comparison, None, bool]
"""Yields comparisons, and returns whether all of them hold."""


def compare_deployment(
    endpoint: Endpoint,
    record: DeploymentRecord,
    parameters: Parameters | RecordedParameters | None,
    block: BlockReference,
) -> Iterator[Comparison]:
    """Compare a deployment with this package and with its parameters, all read at one block.

    Without ``parameters`` those in the record count; where it has none either, owners and
    administrators are shown and not compared. Raises ChainError where the endpoint gives no clear
    answer.
    """
    return _Comparisons(ContractState(endpoint, block), record, parameters).all()


def compare_accounts(
    endpoint: Endpoint, parameters: Parameters, block: BlockReference
) -> Iterator[Comparison]:
    """Compare the kind of the council's accounts: a contract, or an account with a key."""
    state = ContractState(endpoint, block)
    for name, address, is_contract in (
        ("message admin", parameters.message_admin, parameters.message_admin_is_contract),
        ("registry owner", parameters.registry_owner, parameters.registry_owner_is_contract),
    ):
        subject = f"kind of {name} {to_checksum_address(address)}"
        yield Comparison(subject, _kind(is_contract), _kind(state.is_contract(address)))


def implementation_of(proxy: DeployedContract) -> bytes:
    """Return the implementation's address that a record holds for a log, 20 bytes."""
    assert proxy.implementation is not None, "a record's logs are proxies"
    return proxy.implementation.address


def implementation_immutables(record: DeploymentRecord, address: bytes) -> dict[str, bytes]:
    """Return the immutables that an implementation of this deployment must hold at an address."""
    return {"__self": address, "originatorSequence": record.originator_sequence.address}


class _Comparisons:
    """The comparisons of one deployment."""

    def __init__(
        self,
        state: ContractState,
        record: DeploymentRecord,
        parameters: Parameters | RecordedParameters | None,
    ) -> None:
        self._state = state
        self._record = record
        self._given = parameters
        self._parameters = parameters or record.parameters

    def all(self) -> Iterator[Comparison]:
        yield from self._chain()
        for proxy in self._record.sequenced_logs:
            if (yield from _watched(self._log_code(proxy))):
                yield from self._log_state(proxy)
            else:
                yield _untold(proxy)
        sequence, registry = self._record.originator_sequence, self._record.node_registry
        if (yield from _watched(self._sequence_code(sequence))):
            yield from self._sequence_state(sequence)
        else:
            yield _untold(sequence)
        if (yield from _watched(self._code(registry.name, registry.name, registry.address, {}))):
            yield from self._registry_state(registry)
        else:
            yield _untold(registry)
        yield from compare_creations(self._state, self._record, self._parameters)
        if isinstance(self._given, Parameters):
            yield from compare_accounts(self._state.endpoint, self._given, self._state.block)

    def _chain(self) -> Iterator[Comparison]:
        endpoint, record = self._state.endpoint, self._record
        yield Comparison("chain id", str(record.chain_id), str(endpoint.chain_id()))
        expected, got = record.genesis_hash.hex(), endpoint.header(0).hash.hex()
        yield Comparison("hash of block 0", f"0x{expected}", f"0x{got}")

    def _log_code(self, proxy: DeployedContract) -> Iterator[Comparison]:
        name, place = proxy.name, f"{proxy.name} {to_checksum_address(proxy.address)}"
        implementation = implementation_of(proxy)
        yield from self._code(f"{name}' proxy", "SequencedLogProxy", proxy.address, {})
        expected, got = implementation, self._state.implementation(proxy.address)
        words = to_checksum_address(got) + ("" if got == expected else self._other_code(name, got))
        yield Comparison(f"implementation slot of {place}", to_checksum_address(expected), words)
        for slot in ("admin", "beacon"):
            word = self._state.word(proxy.address, erc1967_slot(slot))
            yield Comparison(
                f"{slot} slot of {place}", _NOTHING, f"0x{word:064x}" if word else _NOTHING
            )
        immutables = implementation_immutables(self._record, implementation)
        yield from self._code(f"{name}' implementation", name, implementation, immutables)
        yield self._initialization(place, proxy.address, 1)
        subject = f"{name}' implementation {to_checksum_address(implementation)}"
        yield self._initialization(subject, implementation, LOCKED)

    def _other_code(self, name: str, address: bytes) -> str:
        """Describe an implementation that the record does not name."""
        release = identify_release(name, self._state.code(address))
        if release is None:
            return ", whose code is no known release"
        return f", whose code is {name} {release.version}: the record may be older than an upgrade"

    def _initialization(self, place: str, address: bytes, expected: int) -> Comparison:
        got = initialization_words(self._state.word(address, INITIALIZABLE_SLOT))
        return Comparison(f"initialization of {place}", initialization_words(expected), got)

    def _code(
        self, what: str, name: str, address: bytes, immutables: dict[str, bytes]
    ) -> Iterator[Comparison]:
        expected, code = runtime_code(name, immutables), self._state.code(address)
        got = code_words(code)
        if code != expected and (found := immutables_of(name, code)):
            values = ", ".join(
                f"{key} 0x{value[-ADDRESS_LENGTH:].hex()}" for key, value in found.items()
            )
            got = f"{got}: the same code with {values}"
        subject = f"code of {what} {to_checksum_address(address)}"
        yield Comparison(subject, code_words(expected), got)

    def _log_state(self, proxy: DeployedContract) -> Iterator[Comparison]:
        name, address, state = proxy.name, proxy.address, self._state
        sequence = to_checksum_address(self._record.originator_sequence.address)
        got = to_checksum_address(state.ask(name, address, "originatorSequence"))
        yield Comparison(f"sequence of {name}", sequence, got)
        kind = state.ask(name, address, "topicKind")
        yield Comparison(f"topic kind of {name}", str(int(TOPIC_KINDS[name])), str(kind))
        yield from self._administrators(proxy)
        bounds, known = state.payload_bounds(name, address), self._parameters
        wanted = known.payload_bounds.get(name) if known else None
        expected = None if wanted is None else str(wanted)
        yield compared(f"payload bounds of {name}", expected, str(bounds))
        paused = state.ask(name, address, "paused")
        yield compared(f"pause of {name}", None, "paused" if paused else "not paused")

    def _administrators(self, proxy: DeployedContract) -> Iterator[Comparison]:
        name, state, known = proxy.name, self._state, self._parameters
        found = state.administrators(name, proxy.address)
        expected = to_checksum_address(known.message_admin) if known else None
        yield compared(f"administrators of {name}", expected, ", ".join(found) or "nobody")
        # Holders of the role above the administrators' role can name more administrators.
        role = state.ask(name, proxy.address, "getRoleAdmin", DEFAULT_ADMIN_ROLE)
        subject = f"role that names administrators of {name}"
        yield Comparison(subject, f"0x{DEFAULT_ADMIN_ROLE.hex()}", f"0x{role.hex()}")
        yield compare_roles(state, proxy)
        deployer = to_checksum_address(self._record.deployer)
        holds = state.ask(name, proxy.address, "hasRole", DEFAULT_ADMIN_ROLE, deployer)
        got = "administrator" if holds else _NOTHING
        yield self._deployer(f"in {name}", expected, got)

    def _sequence_code(self, sequence: DeployedContract) -> Iterator[Comparison]:
        messages, updates = self._record.payload_addresses
        immutables = {"groupMessages": messages, "identityUpdates": updates}
        return self._code(sequence.name, sequence.name, sequence.address, immutables)

    def _sequence_state(self, sequence: DeployedContract) -> Iterator[Comparison]:
        for function, proxy in zip(
            ("groupMessages", "identityUpdates"), self._record.sequenced_logs, strict=True
        ):
            got = to_checksum_address(self._state.ask(sequence.name, sequence.address, function))
            subject = f"caller {function} of {sequence.name}"
            yield Comparison(subject, to_checksum_address(proxy.address), got)
        last = self._state.ask(sequence.name, sequence.address, "last")
        yield compared(f"last sequence id of {sequence.name}", None, str(last))

    def _registry_state(self, registry: DeployedContract) -> Iterator[Comparison]:
        name, address, known = registry.name, registry.address, self._parameters
        owner = to_checksum_address(self._state.ask(name, address, "owner"))
        expected = to_checksum_address(known.registry_owner) if known else None
        yield compared(f"owner of {name}", expected, owner)
        pending = to_checksum_address(self._state.ask(name, address, "pendingOwner"))
        yield Comparison(
            f"pending owner of {name}", "nobody", "nobody" if pending == _NOBODY else pending
        )
        is_deployer = owner == to_checksum_address(self._record.deployer)
        yield self._deployer(f"in {name}", expected, "owner" if is_deployer else _NOTHING)
        is_open = self._state.ask(name, address, "httpAddressUpdatesOpen")
        yield compared(
            f"operators' address updates in {name}", None, "open" if is_open else "closed"
        )

    def _deployer(self, place: str, council: str | None, got: str) -> Comparison:
        """Compare the deployer's roles: none, unless the deployer is the council's own account."""
        deployer = to_checksum_address(self._record.deployer)
        subject = f"what deployer {deployer} holds {place}"
        return compared(subject, None if deployer == council else _NOTHING, got)


def _watched(comparisons: Iterator[Comparison]) -> Comparing:
    hold = True
    for comparison in comparisons:
        hold = hold and comparison.holds
        yield comparison
    return hold


def _untold(contract: DeployedContract) -> Comparison:
    subject = f"answers of {contract.name} {to_checksum_address(contract.address)}"
    return compared(subject, None, "not asked: what answers is not the code of this package")


def _kind(is_contract: bool) -> str:
    return "contract" if is_contract else "account"
