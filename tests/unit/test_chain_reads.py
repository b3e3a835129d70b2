from typing import Any

import pytest

from chainkit.chain import check_deployment
from chainkit.deployment import DeployedContract, DeploymentRecord
from chainkit.errors import AccessRefused, InconsistentAnswer, RefusedRequest, WrongChain
from chainkit.signatures import keccak256
from chainkit.types import BlockHeader, BlockReference, Log
from support.fake_endpoint import NAME, FakeProvider, FakeServer, RpcError

ADDRESS = b"\x11" * 20
OTHER_ADDRESS = b"\x22" * 20
TOPIC = b"\x33" * 32
PINNED = BlockReference(7, b"\x07" * 32)
PINNED_PARAMETER = {"blockHash": "0x" + "07" * 32, "requireCanonical": True}


def hex0x(value: bytes) -> str:
    return "0x" + value.hex()


def block(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "number": hex(number),
        "hash": hex0x(bytes([number]) * 32),
        "parentHash": hex0x(bytes([max(number - 1, 0)]) * 32),
        "timestamp": "0x6774866c",
    } | changes


def log(number: int = 7, index: int = 0, **changes: Any) -> dict[str, Any]:
    return {
        "address": hex0x(ADDRESS),
        "topics": [hex0x(TOPIC)],
        "data": "0xabcd",
        "blockNumber": hex(number),
        "blockHash": hex0x(bytes([number]) * 32),
        "transactionHash": "0x" + "44" * 32,
        "transactionIndex": "0x2",
        "logIndex": hex(index),
        "removed": False,
    } | changes


def damaged(example: dict[str, Any], *optional: str) -> list[Any]:
    """The object with each field missing or of another type."""
    without = [
        pytest.param({k: v for k, v in example.items() if k != name}, id=f"no {name}")
        for name in example
        if name not in optional
    ]
    return without + [
        pytest.param(example | {name: value}, id=f"{name} {value!r}")
        for name in example
        if name not in optional
        for value in (None, 7, "", "0xzz", {}, True)
        # An empty mapping iterates like an empty list of topics.
        if (name, value) not in (("topics", {}), ("topics", ""))
    ]


def chain(**answers: Any) -> FakeProvider:
    """A chain of blocks 0 to 9."""

    def block_by_number(tag: str, full: bool) -> dict[str, Any] | None:
        number = 9 if tag == "latest" else int(tag, 16)
        return block(number) if number <= 9 else None

    return FakeProvider(
        {
            "eth_chainId": "0x7a69",
            "eth_getBlockByNumber": block_by_number,
            "eth_getCode": "0x6001",
        }
        | answers
    )


def logs_of(*answers: Any) -> list[Log]:
    return FakeProvider({"eth_getLogs": list(answers)}).endpoint().logs(5, 8, [ADDRESS])


# ------------------------------------------------------------------ headers


def test_read_head__any_chain__is_its_newest_block() -> None:
    assert chain().endpoint().head() == BlockHeader(9, b"\x09" * 32, b"\x08" * 32, 1_735_689_836)


def test_read_headers__heights_and_a_tag__come_in_the_order_asked() -> None:
    provider = chain()

    headers = provider.endpoint().headers([3, 12, "latest", 0])

    assert [header and header.number for header in headers] == [3, None, 9, 0]
    assert provider.requests[0] == [
        ("eth_getBlockByNumber", [tag, False]) for tag in ("0x3", "0xc", "latest", "0x0")
    ]


def test_read_header__above_the_head__is_inconsistent_or_none() -> None:
    endpoint = chain().endpoint()

    assert endpoint.find_header(10) is None
    with pytest.raises(InconsistentAnswer) as caught:
        endpoint.header(10)
    assert str(caught.value) == f"block 10 at {NAME}: expected a block, got nothing"


def test_read_header__of_another_height__is_inconsistent() -> None:
    with pytest.raises(InconsistentAnswer) as caught:
        chain(eth_getBlockByNumber=block(8)).endpoint().header(7)

    assert str(caught.value) == f"block 7 at {NAME}: expected height 7, got 8"


@pytest.mark.parametrize("answer", [*damaged(block(7)), "text", [], 7])
def test_read_header__malformed__is_inconsistent(answer: Any) -> None:
    with pytest.raises(InconsistentAnswer, match=r"^block 7 at .*: expected well-formed fields"):
        chain(eth_getBlockByNumber=answer).endpoint().header(7)


@pytest.mark.parametrize("field", ["hash", "parentHash"])
@pytest.mark.parametrize("value", ["0x" + "07" * 31, "0x" + "07" * 33, "07" * 32])
def test_read_header__hash_of_another_form__is_inconsistent(field: str, value: str) -> None:
    answer = block(7, **{field: value})

    with pytest.raises(InconsistentAnswer, match="expected well-formed fields"):
        chain(eth_getBlockByNumber=answer).endpoint().header(7)


def test_read_header__negative_time__is_inconsistent() -> None:
    with pytest.raises(InconsistentAnswer):
        chain(eth_getBlockByNumber=block(7, timestamp="-0x1")).endpoint().header(7)


# ------------------------------------------------------------------ logs


def test_read_logs__of_a_range__come_typed_and_in_chain_order() -> None:
    logs = logs_of(log(8, 0), log(7, 3, removed=None), log(7, 1), log(5, 9))

    assert [(each.block_number, each.log_index) for each in logs] == [
        (5, 9),
        (7, 1),
        (7, 3),
        (8, 0),
    ]
    assert logs[1] == Log(
        address=ADDRESS,
        topics=(TOPIC,),
        data=b"\xab\xcd",
        block_number=7,
        block_hash=b"\x07" * 32,
        transaction_hash=b"\x44" * 32,
        transaction_index=2,
        log_index=1,
    )


def test_read_logs__with_and_without_topics__asks_for_exactly_that() -> None:
    provider = FakeProvider({"eth_getLogs": []})

    provider.endpoint().logs(5, 18, [ADDRESS, OTHER_ADDRESS])
    provider.endpoint().logs(5, 18, [ADDRESS], [TOPIC, bytes(32)])

    query = {"fromBlock": "0x5", "toBlock": "0x12"}
    assert provider.requests == [
        [("eth_getLogs", [query | {"address": [hex0x(ADDRESS), hex0x(OTHER_ADDRESS)]}])],
        [
            (
                "eth_getLogs",
                [
                    query
                    | {
                        "address": [hex0x(ADDRESS)],
                        "topics": [[hex0x(TOPIC), hex0x(bytes(32))]],
                    }
                ],
            )
        ],
    ]


@pytest.mark.parametrize("number", [0, 4, 9, 2**64])
def test_read_logs__one_outside_the_range__is_inconsistent(number: int) -> None:
    answer = log() | {"blockNumber": hex(number)}

    with pytest.raises(InconsistentAnswer) as caught:
        logs_of(log(5), answer)

    assert str(caught.value) == (
        f"log at {NAME}: expected a block from 5 to 8, got block {number}, log 0"
    )


def test_read_logs__one_of_another_contract__is_inconsistent() -> None:
    with pytest.raises(InconsistentAnswer, match=f"a contract asked for, got 0x{'22' * 20}"):
        logs_of(log(5), log(7, address=hex0x(OTHER_ADDRESS)))


def test_read_logs__one_taken_back__is_inconsistent() -> None:
    with pytest.raises(InconsistentAnswer, match="removed true at block 7, log 3"):
        logs_of(log(5), log(7, 3, removed=True))


def test_read_logs__one_twice__is_inconsistent() -> None:
    with pytest.raises(InconsistentAnswer) as caught:
        logs_of(log(7, 3), log(6), log(7, 3, data="0x"))

    assert str(caught.value) == (
        f"logs of blocks 5 to 8 at {NAME}: expected each log once, got two at block 7, log 3"
    )


@pytest.mark.parametrize("answer", damaged(log(), "removed"))
def test_read_logs__one_malformed__is_inconsistent(answer: dict[str, Any]) -> None:
    with pytest.raises(InconsistentAnswer, match=r"^logs of blocks 5 to 8 at .*well-formed fields"):
        logs_of(log(5), answer)


@pytest.mark.parametrize("field", ["logIndex", "transactionIndex"])
def test_read_logs__negative_position__is_inconsistent(field: str) -> None:
    with pytest.raises(InconsistentAnswer):
        logs_of(log(7, **{field: "-0x1"}))


@pytest.mark.parametrize("answer", [None, 7, "text", {"logs": []}, ["text"], [None]], ids=repr)
def test_read_logs__no_list_of_logs__is_inconsistent(answer: Any) -> None:
    with pytest.raises(InconsistentAnswer, match="expected well-formed fields"):
        FakeProvider({"eth_getLogs": answer}).endpoint().logs(5, 8, [ADDRESS])


def test_read_logs__range_refused__is_retryable_because_a_replica_may_lag() -> None:
    provider = FakeProvider({"eth_getLogs": RpcError(-32602, "block range above head")})

    with pytest.raises(InconsistentAnswer) as caught:
        provider.endpoint().logs(5, 8, [ADDRESS])

    assert str(caught.value) == (
        f"logs of blocks 5 to 8 at {NAME}: expected logs, got block range above head"
    )


@pytest.mark.parametrize("status", [401, 403])
def test_read_logs__refused_by_http__is_not_retryable(status: int) -> None:
    server = FakeServer((status, {}, b"no such key"))

    with pytest.raises(RefusedRequest, match=f"expected HTTP 200, got HTTP {status}"):
        server.endpoint().logs(5, 8, [ADDRESS])


# ------------------------------------------------------------------ other reads


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


def test_read_receipt__of_a_transaction__is_the_object_given() -> None:
    receipt = {"status": "0x1"}

    assert FakeProvider({"eth_getTransactionReceipt": receipt}).endpoint().receipt(TOPIC) == receipt


@pytest.mark.parametrize("answer", [[], "text", 7], ids=repr)
def test_read_receipt__no_object__is_inconsistent(answer: Any) -> None:
    with pytest.raises(InconsistentAnswer, match=f"got {type(answer).__name__}"):
        FakeProvider({"eth_getTransactionReceipt": answer}).endpoint().receipt(TOPIC)


# ------------------------------------------------------------------ heads and tags


def test_read_head_of__the_chain__comes_in_one_request() -> None:
    provider = chain()

    assert provider.endpoint().head_of(31337).number == 9
    assert provider.requests == [[("eth_chainId", []), ("eth_getBlockByNumber", ["latest", False])]]


def test_read_head_of__another_chain__says_both() -> None:
    with pytest.raises(WrongChain) as caught:
        chain(eth_chainId="0x1").endpoint().head_of(31337)

    assert str(caught.value) == f"chain id at {NAME}: expected 31337, got 1"


@pytest.mark.parametrize("method", ["eth_chainId", "eth_getBlockByNumber"])
def test_read_head_of__malformed__is_inconsistent(method: str) -> None:
    with pytest.raises(InconsistentAnswer, match="well-formed fields"):
        chain(**{method: None}).endpoint().head_of(31337)


@pytest.mark.parametrize("tag", ["safe", "finalized"])
def test_read_tagged_header__of_a_chain_that_has_it__is_it(tag: Any) -> None:
    provider = chain(eth_getBlockByNumber=lambda asked, full: block(4 if asked == tag else 9))

    header = provider.endpoint().tagged_header(tag)

    assert header is not None and header.number == 4


@pytest.mark.parametrize(
    "answer",
    [
        None,
        RpcError(-39001, "Unknown block"),
        RpcError(-32000, "safe block not found"),
        RpcError(-32602, "invalid block tag"),
        RpcError(-32601, "no such method"),
    ],
    ids=repr,
)
def test_read_tagged_header__no_such_tag_or_block__is_none(answer: Any) -> None:
    assert chain(eth_getBlockByNumber=answer).endpoint().tagged_header("safe") is None


def test_read_tagged_header__no_access__is_no_missing_tag() -> None:
    with pytest.raises(AccessRefused):
        FakeServer((401, {}, b"")).endpoint().tagged_header("safe")


# ------------------------------------------------------------------ transactions

RAW = [b"first transaction", b"second transaction"]
HASHES = [keccak256(raw) for raw in RAW]


def test_read_raw_transactions__known_and_unknown__come_in_the_order_asked() -> None:
    known = {hex0x(HASHES[0]): hex0x(RAW[0]), hex0x(HASHES[1]): hex0x(RAW[1])}
    unknown = {hex0x(bytes(32)): None, hex0x(b"\1" * 32): "0x"}
    provider = FakeProvider({"eth_getRawTransactionByHash": lambda each: (known | unknown)[each]})

    raw = provider.endpoint().raw_transactions([HASHES[1], bytes(32), HASHES[0], b"\1" * 32])

    assert raw == [RAW[1], None, RAW[0], None]
    assert len(provider.requests) == 1


@pytest.mark.parametrize("answer", [hex0x(RAW[1]), "0xzz", 7, 1e300, {}], ids=repr)
def test_read_raw_transactions__one_of_another_hash__is_inconsistent(answer: Any) -> None:
    provider = FakeProvider({"eth_getRawTransactionByHash": answer})

    with pytest.raises(InconsistentAnswer, match=rf"^raw transaction {hex0x(HASHES[0])} at "):
        provider.endpoint().raw_transactions([HASHES[0]])


@pytest.mark.parametrize("code", [-32601, -32004])
def test_read_raw_transactions__method_not_offered__is_refused(code: int) -> None:
    provider = FakeProvider({"eth_getRawTransactionByHash": RpcError(code, "no such method")})

    with pytest.raises(RefusedRequest, match="no such method"):
        provider.endpoint().raw_transactions([HASHES[0]])


def test_send_raw_transaction__accepted__returns_its_hash() -> None:
    provider = FakeProvider({"eth_sendRawTransaction": hex0x(HASHES[0])})

    assert provider.endpoint().send_raw_transaction(RAW[0]) == HASHES[0]
    assert provider.requests == [[("eth_sendRawTransaction", [hex0x(RAW[0])])]]


@pytest.mark.parametrize(
    "message",
    ["already known", "AlreadyKnown", "transaction already imported", "known transaction"],
)
def test_send_raw_transaction__known_already__is_sent(message: str) -> None:
    provider = FakeProvider({"eth_sendRawTransaction": RpcError(-32000, message)})

    assert provider.endpoint().send_raw_transaction(RAW[0]) == HASHES[0]


def test_send_raw_transaction__not_taken__is_refused() -> None:
    provider = FakeProvider({"eth_sendRawTransaction": RpcError(-32000, "nonce too low")})

    with pytest.raises(RefusedRequest, match="nonce too low"):
        provider.endpoint().send_raw_transaction(RAW[0])


@pytest.mark.parametrize("answer", [hex0x(HASHES[1]), "0x", None, 7], ids=repr)
def test_send_raw_transaction__another_hash__is_inconsistent(answer: Any) -> None:
    with pytest.raises(InconsistentAnswer, match=r"^eth_sendRawTransaction at "):
        FakeProvider({"eth_sendRawTransaction": answer}).endpoint().send_raw_transaction(RAW[0])


@pytest.mark.parametrize("answer", [None, {"hash": "0x1"}], ids=repr)
def test_read_transaction__known_or_not__is_as_given(answer: Any) -> None:
    provider = FakeProvider({"eth_getTransactionByHash": answer})

    assert provider.endpoint().transaction(TOPIC) == answer


@pytest.mark.parametrize("answer", [[], "text", 7], ids=repr)
def test_read_transaction__no_object__is_inconsistent(answer: Any) -> None:
    with pytest.raises(InconsistentAnswer, match=f"got {type(answer).__name__}"):
        FakeProvider({"eth_getTransactionByHash": answer}).endpoint().transaction(TOPIC)


# ------------------------------------------------------------------ the deployment

CONTRACTS = [
    DeployedContract(name, bytes([number]) * 20, 1, TOPIC)
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
