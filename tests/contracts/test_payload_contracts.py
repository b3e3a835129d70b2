import ape
import eth_abi
import pytest
from eth_utils import keccak

IDENTIFIER = bytes(range(32))
PAYLOAD = b"a serialized ClientEnvelope"
ZERO = "0x0000000000000000000000000000000000000000"


def only_log(receipt):
    (log,) = receipt.logs
    return log


@pytest.mark.parametrize("payload", [PAYLOAD, bytes(2), bytes(range(256)) * 200], ids=len)
def test_publish__any_payload__emits_the_unindexed_event(contract, publisher, payload):
    log = only_log(contract.publish(IDENTIFIER, payload, sender=publisher))
    assert log["address"] == contract.proxy.address
    assert [bytes(topic) for topic in log["topics"]] == [keccak(text=contract.event)]
    expected = eth_abi.encode(("bytes32", "bytes", "uint64"), (IDENTIFIER, payload, 1))
    assert bytes(log["data"]) == expected


def test_publish__to_each_contract__is_told_by_the_event_of_its_name(deployment, publisher):
    group, identity = deployment.group_messages, deployment.identity_updates
    sent = group.proxy.addMessage(IDENTIFIER, PAYLOAD, sender=publisher)
    message = {"groupId": IDENTIFIER, "message": PAYLOAD, "sequenceId": 1}
    assert sent.events == [group.proxy.MessageSent(**message)]
    created = identity.proxy.addIdentityUpdate(IDENTIFIER, PAYLOAD, sender=publisher)
    update = {"inboxId": IDENTIFIER, "update": PAYLOAD, "sequenceId": 2}
    assert created.events == [identity.proxy.IdentityUpdateCreated(**update)]


def test_publish__to_both_contracts__shares_one_sequence_without_gap(deployment, publisher):
    group, identity = deployment.group_messages, deployment.identity_updates
    ids = []
    for contract in (group, identity, identity, group, identity):
        log = only_log(contract.publish(IDENTIFIER, PAYLOAD, sender=publisher))
        ids.append(eth_abi.decode(("bytes32", "bytes", "uint64"), bytes(log["data"]))[2])
        assert group.proxy.lastSequenceId() == identity.proxy.lastSequenceId() == ids[-1]
    assert ids == [1, 2, 3, 4, 5]
    assert deployment.sequence.last() == 5


def test_last_sequence_id__before_the_first_payload__is_zero(contract):
    assert contract.proxy.lastSequenceId() == 0


def test_publish__with_ether__reverts(contract, publisher):
    with ape.reverts():
        contract.publish(IDENTIFIER, PAYLOAD, sender=publisher, value=1)
    with ape.reverts():
        publisher.transfer(contract.proxy, 1)
    assert contract.proxy.balance == 0


def test_next__called_beside_the_proxies__reverts(deployment, publisher, admin):
    error = deployment.sequence.UnauthorizedSequenceCaller
    contracts = (deployment.group_messages, deployment.identity_updates)
    for caller in (publisher, admin, *(contract.implementation for contract in contracts)):
        with ape.reverts(error, caller=caller.address):
            deployment.sequence.next.call(sender=caller)
    assert deployment.sequence.last() == 0


def test_publish__to_the_implementation__is_refused_for_want_of_bounds(
    contract, deployment, publisher
):
    publish = getattr(contract.implementation, contract.publish.abis[0].name)
    error = contract.implementation.PayloadSizeOutOfBounds
    with ape.reverts(error, size=len(PAYLOAD), minimum=0, maximum=0):
        publish(IDENTIFIER, PAYLOAD, sender=publisher)
    with ape.reverts(deployment.sequence.UnauthorizedSequenceCaller):
        publish(IDENTIFIER, b"", sender=publisher)
    assert deployment.sequence.last() == 0


def test_initialize__in_the_proxy_s_constructor__names_admin_and_bounds(
    project, contract, deployer, admin, admin_role
):
    call = contract.implementation.initialize.encode_input(admin, 3, 4)
    created = deployer.deploy(project.SequencedLogProxy, contract.implementation, call)
    named = project.get_contract(contract.name).at(created.address)
    assert created.creation_metadata.receipt.events == [
        named.Upgraded(implementation=contract.implementation),
        named.RoleGranted(role=admin_role, account=admin, sender=deployer),
        named.PayloadBoundsSet(account=deployer, minimum=3, maximum=4),
        named.Initialized(version=1),
    ]


def test_initialize__again_or_on_the_implementation__reverts(contract, admin, stranger):
    for instance in (contract.proxy, contract.implementation):
        with ape.reverts(instance.InvalidInitialization):
            instance.initialize(stranger, 0, 1, sender=admin)


def test_construct_proxy__without_initialization__reverts(project, contract, deployer):
    with ape.reverts(project.SequencedLogProxy.ERC1967ProxyUninitialized):
        deployer.deploy(project.SequencedLogProxy, contract.implementation, b"")


def test_construct_proxy__with_the_zero_admin__reverts(project, contract, deployer):
    call = contract.implementation.initialize.encode_input(ZERO, 0, 1)
    with ape.reverts(contract.proxy.InvalidAdmin, admin=ZERO):
        deployer.deploy(project.SequencedLogProxy, contract.implementation, call)


def test_construct_proxy__as_its_own_admin__reverts(project, contract, deployer, networks):
    itself = deployer.get_deployment_address()
    call = contract.implementation.initialize.encode_input(itself, 0, 1)
    creation = project.SequencedLogProxy.constructor.serialize_transaction(
        contract.implementation, call, sender=deployer
    )
    # Sent past Ape: anvil estimates a creation at another address than the one it comes to have.
    transaction = {"from": deployer.address, "data": "0x" + creation.data.hex(), "gas": "0xfffff"}
    request = networks.provider.make_request
    # Synchronous: anvil answers the other method before it mines.
    hash_ = request("eth_sendTransactionSync", [transaction])["transactionHash"]
    trace = request("debug_traceTransaction", [hash_, {"tracer": "callTracer"}])
    refusal = keccak(text="InvalidAdmin(address)")[:4] + eth_abi.encode(("address",), (itself,))
    assert trace["output"] == "0x" + refusal.hex()


def test_construct_implementation__with_a_sequence_without_code__reverts(
    project, contract, deployer, stranger
):
    container = project.get_contract(contract.name)
    error = container.InvalidOriginatorSequence
    with ape.reverts(error, originatorSequence=stranger.address):
        deployer.deploy(container, stranger)


def test_originator_sequence__of_both_contracts__is_the_shared_one(contract, deployment):
    assert contract.proxy.originatorSequence() == deployment.sequence


def test_topic_kind__of_each_contract__is_the_first_byte_of_its_topics(contract):
    assert contract.proxy.topicKind() == contract.topic_kind


@pytest.mark.parametrize(
    ("interface_id", "supported"),
    # ERC-165, AccessControl and its enumerable extension; ERC-721 and the one that is never there.
    [
        ("01ffc9a7", True),
        ("7965db0b", True),
        ("5a05180f", True),
        ("80ac58cd", False),
        ("ffffffff", False),
    ],
)
def test_supports_interface__by_id__is_what_the_contract_implements(
    contract, interface_id, supported
):
    assert contract.proxy.supportsInterface(bytes.fromhex(interface_id)) is supported
