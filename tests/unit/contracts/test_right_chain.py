from typing import Any

import pytest

from chainkit.contracts.deployment import DeployedContract, DeploymentRecord
from chainkit.contracts.right_chain import check_deployment
from chainkit.errors import InconsistentAnswer, RefusedRequest, WrongChain
from chainkit.types import BlockReference
from support.endpoints.endpoint_answers import chain, hex0x
from support.endpoints.fake_endpoint import NAME, FakeProvider, RpcError

ADDRESS = b"\x11" * 20
OTHER_ADDRESS = b"\x22" * 20
PINNED = BlockReference(7, b"\x07" * 32)
PINNED_PARAMETER = {"blockHash": "0x" + "07" * 32, "requireCanonical": True}


# ------------------------------------------------------------------ calls and code


def test_call__with_a_sender__is_pinned_to_the_block() -> None:
    provider = FakeProvider({"eth_call": "0x01"})
    sender = hex0x(OTHER_ADDRESS)

    assert provider.endpoint().call(ADDRESS, b"\xaa", PINNED, sender) == b"\1"
    assert provider.endpoint().call(ADDRESS, b"\xaa", PINNED) == b"\1"

    call = {"to": hex0x(ADDRESS), "data": "0xaa"}
    assert provider.requests == [
        [("eth_call", [call | {"from": sender}, PINNED_PARAMETER])],
        [("eth_call", [call, PINNED_PARAMETER])],
    ]


def test_call__contract_reverts__keeps_the_revert_data() -> None:
    provider = FakeProvider({"eth_call": RpcError(3, "execution reverted", "0x118cdaa7")})

    with pytest.raises(RefusedRequest, match="execution reverted") as caught:
        provider.endpoint().call(ADDRESS, b"", PINNED)

    assert caught.value.data == "0x118cdaa7"


def test_read_code__at_a_block__is_pinned_to_it() -> None:
    provider = FakeProvider({"eth_getCode": "0x6001"})

    assert provider.endpoint().code(ADDRESS, PINNED) == b"\x60\x01"
    assert provider.requests == [[("eth_getCode", [hex0x(ADDRESS), PINNED_PARAMETER])]]


@pytest.mark.parametrize(
    "answer", [None, 7, "", "6001", "0x6", "0xzz", "0x60 01", [], {}], ids=repr
)
def test_read_bytes__malformed__is_inconsistent(answer: Any) -> None:
    endpoint = FakeProvider({"eth_call": answer, "eth_getCode": answer}).endpoint()

    with pytest.raises(InconsistentAnswer, match=r"^eth_call at .*expected well-formed fields"):
        endpoint.call(ADDRESS, b"", PINNED)
    with pytest.raises(InconsistentAnswer, match=r"^eth_getCode at .*expected well-formed fields"):
        endpoint.code(ADDRESS, PINNED)


# ------------------------------------------------------------------ the deployment

CONTRACTS = [
    DeployedContract(name, bytes([number]) * 20, 1, b"\x33" * 32)
    for number, name in enumerate(
        ["GroupMessages", "IdentityUpdates", "NodeRegistry", "OriginatorSequence"], start=1
    )
]
RECORD = DeploymentRecord(31337, bytes(32), *CONTRACTS, deployer=bytes(20))


def test_check_deployment__chain_of_the_record__returns_the_head() -> None:
    provider = chain()

    assert check_deployment(provider.endpoint(), RECORD).number == 9

    pinned = {"blockHash": "0x" + "09" * 32, "requireCanonical": True}
    assert [calls[0] for calls in provider.requests if calls[0][0] == "eth_getCode"] == [
        ("eth_getCode", [hex0x(contract.address), pinned]) for contract in CONTRACTS
    ]


def test_check_deployment__another_chain_id__says_both() -> None:
    with pytest.raises(WrongChain) as caught:
        check_deployment(chain(eth_chainId="0x1").endpoint(), RECORD)

    assert str(caught.value) == f"chain id at {NAME}: expected 31337, got 1"


def test_check_deployment__foreign_genesis__says_both() -> None:
    record = DeploymentRecord(31337, b"\x01" * 32, *CONTRACTS, deployer=bytes(20))

    with pytest.raises(WrongChain) as caught:
        check_deployment(chain().endpoint(), record)

    assert str(caught.value) == (
        f"block 0 at {NAME}: expected 0x{'01' * 32}, got 0x{'00' * 32} "
        "(the deployment record is of another chain)"
    )


@pytest.mark.parametrize("missing", CONTRACTS, ids=lambda contract: contract.name)
def test_check_deployment__no_code_at_a_contract__names_it(missing: DeployedContract) -> None:
    address = hex0x(missing.address)
    provider = chain(eth_getCode=lambda at, block: "0x" if at == address else "0x6001")

    with pytest.raises(WrongChain) as caught:
        check_deployment(provider.endpoint(), RECORD)

    assert str(caught.value) == f"{missing.name} at {address}: expected a contract, got no code"
