"""Makes every call of the table in docs/contracts.md as every actor, and compares.

A call that reverts must do so for want of authority: the arguments would be accepted from the
right caller.
"""

import eth_abi
import pytest
from eth_utils import keccak

from support.tables import rows_of_table

from .conftest import PAYLOAD_BOUNDS

ROWS = rows_of_table("contracts.md", ["contract", "function"])
CASES = [
    (contract, row["function"].strip("`"), row)
    for row in ROWS
    for contract in row["contract"].split(", ")
]
CONTRACTS = ("GroupMessages", "IdentityUpdates", "NodeRegistry", "OriginatorSequence")
ACTORS = {
    "anyone": ["stranger"],
    "node holder": ["operator"],
    "registry owner": ["owner"],
    "pending owner": ["pending"],
    "administrator": ["admin"],
    "the two proxies": ["GroupMessages", "IdentityUpdates"],
    "deployer": ["deployer"],
}
FOOTNOTES = "¹²³⁴⁵"
WANT_OF_AUTHORITY = {
    keccak(text=error)[:4].hex(): error
    for error in (
        "OwnableUnauthorizedAccount(address)",
        "AccessControlUnauthorizedAccount(address,bytes32)",
        "UnauthorizedSequenceCaller(address)",
        "NotNodeHolder(uint256,address)",
        "ApprovalsDisabled(address)",
        "RenouncingDisabled()",
        "InvalidInitialization()",
    )
}
ADMIN_ROLE = bytes(32)
NODE = 100


def arguments(contract, caller, party, public_key):
    """The arguments of each function: all right, so that only the caller can be wrong."""
    move = (party["operator"], party["newcomer"], NODE)
    return {
        "addMessage(bytes32,bytes)": (bytes(32), bytes(PAYLOAD_BOUNDS[0])),
        "addIdentityUpdate(bytes32,bytes)": (bytes(32), bytes(PAYLOAD_BOUNDS[0])),
        "pause()": (),
        "unpause()": (),
        "setPayloadBounds(uint32,uint32)": (1, 2),
        "grantRole(bytes32,address)": (ADMIN_ROLE, party["newcomer"]),
        "revokeRole(bytes32,address)": (ADMIN_ROLE, party["second admin"]),
        "renounceRole(bytes32,address)": (ADMIN_ROLE, caller),
        "upgradeToAndCall(address,bytes)": (party.get(f"{contract}Successor"), b""),
        "initialize(address,uint32,uint32)": (party["newcomer"], 1, 2),
        "next()": (),
        "addNode(address,bytes,string)": (party["newcomer"], public_key(9), "http://9.test"),
        "updateHealth(uint256,bool)": (NODE, False),
        "setHttpAddressUpdatesOpen(bool)": (False,),
        "updateHttpAddress(uint256,string)": (NODE, "http://moved.test"),
        "transferFrom(address,address,uint256)": move,
        "safeTransferFrom(address,address,uint256)": move,
        "safeTransferFrom(address,address,uint256,bytes)": (*move, b"data"),
        "approve(address,uint256)": (party["newcomer"], NODE),
        "setApprovalForAll(address,bool)": (party["newcomer"], True),
        "transferOwnership(address)": (party["newcomer"],),
        "acceptOwnership()": (),
        "renounceOwnership()": (),
    }


def calldata(signature, values):
    types = signature[signature.index("(") + 1 : -1]
    return keccak(text=signature)[:4] + eth_abi.encode(types.split(",") if types else (), values)


@pytest.fixture(scope="module")
def party(
    test_contracts, accounts, deployment, three_nodes, deployer, admin, owner, operator, stranger
):
    """All addresses of the story by name: a second administrator, an offer of the registry."""
    pending, second_admin, newcomer = accounts[6:9]
    three_nodes.setHttpAddressUpdatesOpen(True, sender=owner)
    three_nodes.transferOwnership(pending, sender=owner)
    found = {
        "deployer": deployer,
        "admin": admin,
        "owner": owner,
        "operator": operator,
        "stranger": stranger,
        "pending": pending,
        "second admin": second_admin,
        "newcomer": newcomer,
        "NodeRegistry": three_nodes,
        "OriginatorSequence": deployment.sequence,
    }
    for contract in (deployment.group_messages, deployment.identity_updates):
        contract.proxy.grantRole(ADMIN_ROLE, second_admin, sender=admin)
        successor = test_contracts[f"{contract.name}Successor"]
        found[contract.name] = contract.proxy
        found[f"{contract.name}Successor"] = deployer.deploy(successor, deployment.sequence)
    return {name: entity.address for name, entity in found.items()}


@pytest.fixture
def outcome(networks, party, public_key):
    """Makes a call and returns `yes`, `no` or `no effect`; the chain is as before afterwards."""
    request = networks.provider.make_request

    def last():
        call = {"to": party["OriginatorSequence"], "data": "0x" + calldata("last()", ()).hex()}
        return request("eth_call", [call, "latest"])

    def send(sender, target, data):
        transaction = {"from": sender, "to": target, "data": "0x" + data.hex(), "gas": "0xfffff"}
        return request("eth_sendTransactionSync", [transaction])

    def judged(receipt, before):
        if int(receipt["status"], 16):
            # Every change leaves an event, but for the sequence's.
            return "yes" if receipt["logs"] or last() != before else "no effect"
        options = {"tracer": "callTracer"}
        trace = request("debug_traceTransaction", [receipt["transactionHash"], options])
        assert trace["output"][2:10] in WANT_OF_AUTHORITY, trace
        return "no"

    def of(contract, signature, caller):
        snapshot = request("evm_snapshot", [])
        sender, target = party[caller], party[contract]
        request("anvil_autoImpersonateAccount", [True])
        request("anvil_setBalance", [sender, hex(10**20)])
        if signature == "unpause()":
            send(party["admin"], target, calldata("pause()", ()))
        values = arguments(contract, sender, party, public_key)[signature]
        before = last()
        result = judged(send(sender, target, calldata(signature, values)), before)
        request("anvil_autoImpersonateAccount", [False])
        assert request("evm_revert", [snapshot])
        return result

    return of


def changes_state(function):
    """Whether it can, or is declared elsewhere as one that can and here only reverts."""
    reverts = function.stateMutability == "pure" and not function.outputs
    return reverts or function.stateMutability in ("nonpayable", "payable")


def test_table__its_rows__are_the_functions_that_change_state(project):
    declared = [
        (name, function.selector)
        for name in CONTRACTS
        for function in project.get_contract(name).contract_type.methods
        if changes_state(function)
    ]
    assert sorted((contract, signature) for contract, signature, _ in CASES) == sorted(declared)


def test_table__its_columns__are_the_actors():
    assert list(ROWS[0]) == ["contract", "function", *ACTORS]


@pytest.mark.parametrize(
    ("contract", "signature", "row"), CASES, ids=[f"{case[0]}.{case[1]}" for case in CASES]
)
def test_table__each_cell__is_what_the_contract_does(outcome, contract, signature, row):
    told = {actor: row[actor].strip(FOOTNOTES) for actor in ACTORS}
    for actor, callers in ACTORS.items():
        outcomes = {outcome(contract, signature, caller) for caller in callers}
        assert outcomes == {told[actor]}, actor
