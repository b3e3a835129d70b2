import pytest
from eth_utils import keccak

from support.tables import rows_of_table

from .conftest import PAYLOAD_BOUNDS

# OpenZeppelin declares these events; the document says that they are never emitted.
NEVER_EMITTED = {"Approval", "ApprovalForAll", "RoleAdminChanged"}
SLOTS = {row["namespace"]: row["slot"] for row in rows_of_table("contracts.md", ["namespace"])}


def slot_of(namespace):
    """ERC-7201's formula."""
    preimage = int.from_bytes(keccak(text=namespace)) - 1
    return int.from_bytes(keccak(preimage.to_bytes(32))) & ~0xFF


@pytest.fixture
def word_at(contract, networks):
    """Reads a word of the proxy's storage."""
    return lambda slot: bytes(networks.provider.get_storage(contract.proxy.address, slot))


@pytest.mark.parametrize("namespace", SLOTS)
def test_storage_table__each_slot__is_that_of_its_namespace(namespace):
    assert SLOTS[namespace] == f"`0x{slot_of(namespace.strip('`')):064x}`"


def test_storage__pause_and_bounds__are_packed_as_the_table_says(contract, admin, word_at):
    contract.proxy.pause(sender=admin)
    word = word_at(slot_of("chainkit.storage.SequencedLog"))
    assert word[-1:] == b"\x01"
    assert (int.from_bytes(word[-5:-1]), int.from_bytes(word[-9:-5])) == PAYLOAD_BOUNDS
    assert not any(word[:-9])


def test_storage__outside_the_namespaces__is_unused(word_at):
    assert int.from_bytes(word_at(slot_of("openzeppelin.storage.Initializable"))) == 1
    assert not any(any(word_at(slot)) for slot in range(50))


@pytest.mark.parametrize("name", ["GroupMessages", "IdentityUpdates", "NodeRegistry"])
def test_event_table__of_each_contract__holds_what_its_abi_declares(project, name):
    rows = rows_of_table("contracts.md", ["contract", "event"])
    told = {row["event"].strip("`") for row in rows if name in row["contract"].split(", ")}
    declared = {event.name for event in project.get_contract(name).contract_type.events}
    assert told == declared - NEVER_EMITTED
