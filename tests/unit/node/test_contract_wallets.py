"""When a contract wallet's signature is valid, invalid or not answered yet, without sockets."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import requests
from click.testing import CliRunner

from chainkit.chain import Endpoint, RetryPolicy
from chainkit.errors import ChainError, WalletUnanswered, WrongChain
from chainkit.identity.wallets import WalletSignature
from chainkit_node.inboxes import contract_wallets
from chainkit_node.inboxes.contract_wallets import (
    EARLIEST_TIMESTAMP,
    LONGEST_SIGNATURE,
    MOST_SECONDS_AHEAD,
    ContractWallets,
)
from support.endpoints.fake_endpoint import FakeProvider, RpcError
from support.project import ROOT
from tools import write_signature_validator

CHAIN_ID = 8453
SECONDS = 1_800_000_000
"""The time of block 10; a block comes every second."""
SECOND_OF_BLOCK_NS = (SECONDS - MOST_SECONDS_AHEAD) * 10**9
"""The earliest time of an update that may name block 10."""
AT_NS = SECOND_OF_BLOCK_NS + 10 * 10**9
SIGNATURE = WalletSignature(CHAIN_ID, b"\x11" * 20, 10, b"\x22" * 32, b"\x33" * 65)
ONCE = RetryPolicy(attempts=1)
VALID, INVALID = "0x01", "0x00"


class FakeWalletChain(FakeProvider):
    """One endpoint of a chain; the wallet's answers come in turn, and the last one stays."""

    def __init__(
        self, *answers: Any, head: int = 40, chain_id: int = CHAIN_ID, first: int = SECONDS
    ) -> None:
        super().__init__(
            {
                "eth_chainId": hex(chain_id),
                "eth_getBlockByNumber": self._block,
                "eth_call": lambda message, block: self._wallet(message, block),
            }
        )
        self.head = head
        self.first = first
        self.wallet_answers = list(answers)
        self.asked: list[tuple[Any, Any]] = []
        self.is_dead = False
        self.branch = 0

    def endpoint(self) -> Endpoint:
        return Endpoint(self, f"http://endpoint-{id(self)}.test", ONCE)

    def hash(self, number: int) -> str:
        return f"0x{self.branch:032x}{number:032x}"

    def _block(self, block: str, full: bool) -> dict[str, Any] | None:
        number = self.head if block == "latest" else int(block, 16)
        if number > self.head:
            return None
        return {
            "number": hex(number),
            "hash": self.hash(number),
            "parentHash": self.hash(number - 1),
            "timestamp": hex(self.first + number - 10),
        }

    def _wallet(self, message: Any, block: Any) -> Any:
        self.asked.append((message, block))
        answers = self.wallet_answers
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def _respond(self, calls: Any, answer: Any) -> Any:
        if self.is_dead:
            self.requests.append(list(calls))
            raise requests.ConnectionError("refused")
        return super()._respond(calls, answer)


def ask(
    chains: FakeWalletChain | Iterable[FakeWalletChain],
    signature: WalletSignature = SIGNATURE,
    at_ns: int = AT_NS,
) -> bool:
    chains = [chains] if isinstance(chains, FakeWalletChain) else chains
    wallets = ContractWallets({CHAIN_ID: [each.endpoint() for each in chains]})
    return wallets.at(at_ns).is_valid(signature)


# --------------------------------------------------------------------- the call


@pytest.mark.parametrize(("answer", "expected"), [(VALID, True), (INVALID, False)])
def test_is_valid__wallet_answers__is_its_answer_at_the_hash_of_the_block(
    answer: str, expected: bool
) -> None:
    chain = FakeWalletChain(answer)

    assert ask(chain) is expected

    ((message, block),) = chain.asked
    assert block == {"blockHash": chain.hash(10), "requireCanonical": True}
    assert sorted(message) == ["data", "gas"]
    assert int(message["gas"], 16) == 25_000_000
    for part in (SIGNATURE.address, SIGNATURE.digest, SIGNATURE.signature):
        assert part.hex() in message["data"]


@pytest.mark.conforms("I15")
@pytest.mark.parametrize(
    "answer",
    [
        "0x",
        "0x02",
        "0x03",
        "0x0001",
        "0x" + "0" * 63 + "1",
        None,
        "nonsense",
        RpcError(3, "execution reverted", "0x"),
        RpcError(-32000, "invalid opcode: PUSH0"),
        RpcError(-32000, "missing trie node"),
        RpcError(-32000, "out of gas"),
        RpcError(-32005, "too many requests"),
        RpcError(-32601, "the method does not exist"),
        RpcError(-32603, "internal error"),
    ],
)
def test_is_valid__any_other_answer_or_error__is_not_answered(answer: Any) -> None:
    with pytest.raises(ChainError):
        ask(FakeWalletChain(answer))


@pytest.mark.conforms("I15")
@pytest.mark.parametrize("method", ["eth_chainId", "eth_getBlockByNumber", "eth_call"])
@pytest.mark.parametrize(
    "failure", [requests.ConnectionError("refused"), requests.ReadTimeout("slow"), ValueError()]
)
def test_is_valid__request_that_fails__is_not_answered(method: str, failure: Exception) -> None:
    chain = FakeWalletChain(INVALID)
    answers = chain.answers

    def fail(*parameters: Any) -> Any:
        raise failure

    chain.answers = {**answers, method: fail}
    wallets = ContractWallets({CHAIN_ID: [chain.endpoint()]}).at(AT_NS)
    with pytest.raises(WalletUnanswered) as caught:
        wallets.is_valid(SIGNATURE)
    assert str(caught.value).startswith(f"wallet 0x{'11' * 20} of chain {CHAIN_ID}: expected")

    chain.answers = answers
    assert wallets.is_valid(SIGNATURE) is False


def test_is_valid__endpoint_of_another_chain__is_not_answered_until_it_is_right() -> None:
    chain = FakeWalletChain(VALID, chain_id=1)
    wallets = ContractWallets({CHAIN_ID: [chain.endpoint()]}).at(AT_NS)

    with pytest.raises(WalletUnanswered, match="expected 8453, got 1") as caught:
        wallets.is_valid(SIGNATURE)
    assert isinstance(caught.value.__cause__, WrongChain)
    assert chain.asked == []

    chain.answers = chain.answers | {"eth_chainId": hex(CHAIN_ID)}
    assert wallets.is_valid(SIGNATURE)
    wallets.is_valid(SIGNATURE._replace(block_number=9))
    assert [calls[0][0] for calls in chain.requests].count("eth_chainId") == 2


# --------------------------------------------------------------------- the time


@pytest.mark.conforms("I15")
def test_is_valid__block_of_the_updates_second__is_asked_and_a_later_one_is_not() -> None:
    chain = FakeWalletChain(VALID)

    assert ask(chain, SIGNATURE, SECOND_OF_BLOCK_NS)
    assert not ask(chain, SIGNATURE, SECOND_OF_BLOCK_NS - 1)
    assert len(chain.asked) == 1


@pytest.mark.conforms("I15")
@pytest.mark.parametrize("head", [20, 21, 99])
def test_is_valid__no_such_block__is_invalid_once_the_head_is_later_than_the_update(
    head: int,
) -> None:
    signature = SIGNATURE._replace(block_number=100)

    if head == 20:
        with pytest.raises(WalletUnanswered, match="or a head later than the update"):
            ask(FakeWalletChain(VALID, head=head), signature)
    else:
        assert not ask(FakeWalletChain(VALID, head=head), signature)


@pytest.mark.conforms("I15")
def test_is_valid__block_missing_below_the_head__is_not_answered() -> None:
    chain = FakeWalletChain(VALID)
    chain.answers = chain.answers | {
        "eth_getBlockByNumber": lambda block, full: (
            chain._block(block, full) if block == "latest" else None
        )
    }

    with pytest.raises(WalletUnanswered, match="a block below the head"):
        ask(chain)


@pytest.mark.parametrize(("number", "is_asked"), [(2**63 - 1, True), (2**63, False)])
def test_is_valid__number_that_no_block_can_have__is_invalid_unasked(
    number: int, is_asked: bool
) -> None:
    chain = FakeWalletChain(VALID)

    assert not ask(chain, SIGNATURE._replace(block_number=number))
    assert bool(chain.requests) is is_asked


@pytest.mark.conforms("I15")
def test_is_valid__block_older_than_such_wallets__is_invalid_unasked() -> None:
    oldest = FakeWalletChain(VALID, first=EARLIEST_TIMESTAMP)

    assert ask(oldest)
    assert not ask(oldest, SIGNATURE._replace(block_number=9))
    assert len(oldest.asked) == 1


@pytest.mark.conforms("I15")
def test_is_valid__longest_signature__fits_into_a_call_and_a_longer_one_is_invalid() -> None:
    chain = FakeWalletChain(VALID)
    longest = SIGNATURE._replace(signature=bytes(LONGEST_SIGNATURE))

    assert ask(chain, longest)
    assert len(chain.asked[0][0]["data"]) // 2 - 1 <= 49_152
    assert not ask(chain, longest._replace(signature=bytes(LONGEST_SIGNATURE + 1)))
    assert len(chain.asked) == 1


# ---------------------------------------------------------- endpoints and memory


@pytest.mark.conforms("I15")
def test_is_valid__first_endpoint_fails__asks_the_next_and_that_one_first_from_then_on() -> None:
    dead, alive = FakeWalletChain(VALID), FakeWalletChain(VALID)
    dead.is_dead = True
    wallets = ContractWallets({CHAIN_ID: [dead.endpoint(), alive.endpoint()]}).at(AT_NS)

    assert wallets.is_valid(SIGNATURE)
    assert wallets.is_valid(SIGNATURE._replace(block_number=9))
    assert len(dead.requests) == 1

    dead.is_dead, alive.is_dead = False, True
    assert wallets.is_valid(SIGNATURE._replace(block_number=8))

    dead.is_dead = True
    with pytest.raises(WalletUnanswered):
        wallets.is_valid(SIGNATURE._replace(block_number=7))


def test_is_valid__endpoint_that_lags_behind__asks_the_next() -> None:
    behind, ahead = FakeWalletChain(INVALID, head=5), FakeWalletChain(VALID)

    assert ask([behind, ahead])
    assert behind.asked == []


@pytest.mark.conforms("I15")
def test_is_valid__same_question__is_asked_once_for_each_block_of_the_height() -> None:
    chain = FakeWalletChain(VALID, INVALID)
    wallets = ContractWallets({CHAIN_ID: [chain.endpoint()]})

    assert wallets.at(AT_NS).is_valid(SIGNATURE)
    assert wallets.at(AT_NS + 1).is_valid(SIGNATURE)
    # The block's time still decides.
    assert not wallets.at(AT_NS - 11 * 10**9).is_valid(SIGNATURE)
    assert len(chain.asked) == 1

    chain.branch = 1
    assert not wallets.at(AT_NS).is_valid(SIGNATURE)
    assert not wallets.at(AT_NS).is_valid(SIGNATURE)
    assert len(chain.asked) == 2


def test_is_valid__more_answers_than_are_remembered__forgets_what_was_not_used_for_longest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(contract_wallets, "_REMEMBERED", 2)
    chain = FakeWalletChain(VALID)
    wallets = ContractWallets({CHAIN_ID: [chain.endpoint()]}).at(AT_NS)
    first, second, third = (SIGNATURE._replace(block_number=number) for number in (1, 2, 3))

    for signature in (first, second, first, third, first):
        wallets.is_valid(signature)
    assert len(chain.asked) == 3
    wallets.is_valid(second)
    assert len(chain.asked) == 4


@pytest.mark.conforms("I15")
def test_is_valid__updates_time_for_questions_is_over__is_not_answered_and_asks_nobody() -> None:
    now = 0.0
    chain = FakeWalletChain(VALID)
    wallets = ContractWallets({CHAIN_ID: [chain.endpoint()]}, lambda: now)
    first = wallets.at(AT_NS)
    assert first.is_valid(SIGNATURE)

    now = 8.0
    with pytest.raises(WalletUnanswered, match="got none in 8 s"):
        first.is_valid(SIGNATURE._replace(block_number=9))
    assert len(chain.asked) == 1
    assert wallets.at(AT_NS).is_valid(SIGNATURE._replace(block_number=9))


@pytest.mark.conforms("I11")
def test_at__several_chains__each_signature_is_asked_of_its_own() -> None:
    chains = {1: FakeWalletChain(VALID, chain_id=1), 10: FakeWalletChain(INVALID, chain_id=10)}
    endpoints = {chain_id: [chain.endpoint()] for chain_id, chain in chains.items()}
    wallets = ContractWallets(endpoints).at(AT_NS)

    assert wallets.chain_ids == {1, 10}
    assert wallets.is_valid(SIGNATURE._replace(chain_id=1))
    assert not wallets.is_valid(SIGNATURE._replace(chain_id=10))
    assert [len(chain.asked) for chain in chains.values()] == [1, 1]


# ------------------------------------------------------------- the shipped code


def test_validator__shipped_code__is_what_the_source_compiles_to() -> None:
    assert not write_signature_validator.is_outdated()
    assert (ROOT / "node/solidity/SignatureValidator.sol").exists()


def test_write__outdated_file__is_named_and_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "validator.json"
    monkeypatch.setattr(write_signature_validator, "TARGET", target)
    monkeypatch.setattr(write_signature_validator, "content", lambda: "{}\n")

    checked = CliRunner().invoke(write_signature_validator.main, ["--check"])
    assert checked.exit_code == 1
    assert "validator.json: outdated" in checked.output

    assert CliRunner().invoke(write_signature_validator.main, []).exit_code == 0
    assert target.read_text() == "{}\n"
