from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from chainkit.chain import Endpoint, EndpointPool, RetryPolicy
from chainkit.chain.member import EndpointState
from chainkit.contracts.followed import FollowedDeployment
from chainkit.errors import ConfigurationError, EndpointUnavailable
from chainkit.protocol.payload_contract import EventLayout
from chainkit_indexer.follow.first_start import check_can_prove, check_record
from support.chains.fake_chain import FIRST_BLOCK, FakeChain, Post, update


class Contracts(FakeChain):
    """A chain that tells the contracts' code from the block of their deployment on."""

    def __init__(self, code: str, deployed: int = FIRST_BLOCK, kept_from: int = 0) -> None:
        super().__init__()
        self.code = code
        self.deployed = deployed
        self.kept_from = kept_from
        self.refuses_ranges = False
        self.mine(*[[]] * FIRST_BLOCK)

    def _eth_getCode(self, address: str, pinned: Any) -> str:  # noqa: N802
        (number,) = (b.number for b in self.blocks if f"0x{b.hash.hex()}" == pinned["blockHash"])
        if number < self.kept_from:
            raise LookupError("missing trie node")
        return self.code if number >= self.deployed else "0x"

    def _eth_getLogs(self, query: Any) -> Any:  # noqa: N802
        if self.refuses_ranges:
            raise LookupError("block range is too wide")
        logs = super()._eth_getLogs(query)
        wanted = (query["address"], query["topics"][0])
        return [
            log for log in logs if log["address"] in wanted[0] and log["topics"][0] in wanted[1]
        ]


def pool_of(*chains: FakeChain) -> EndpointPool:
    return EndpointPool(
        [Endpoint(each, f"endpoint {n}", RetryPolicy(attempts=1)) for n, each in enumerate(chains)]
    )


HONEST, LYING = "0x60", "0x"


def test_check_record__first_endpoint_lies__is_confirmed_by_the_second() -> None:
    chain = Contracts(LYING)

    check_record(pool_of(chain, Contracts(HONEST)), chain.deployment)


class WithoutBlockReceipts(FakeChain):
    """A chain at an endpoint that offers no receipts by block."""

    def _eth_getBlockReceipts(self, block: str) -> Any:  # noqa: N802
        raise LookupError("the method eth_getBlockReceipts does not exist")


class WithoutReceipts(WithoutBlockReceipts):
    """A chain at an endpoint that offers no receipts."""

    def _eth_getTransactionReceipt(self, transaction_hash: str) -> Any:  # noqa: N802
        raise LookupError("the method eth_getTransactionReceipt does not exist")


class Silent(FakeChain):
    """An endpoint that does not answer."""

    def make_batch_request(self, requests: Any) -> Any:
        raise EndpointUnavailable("endpoint", "an answer", "none")

    make_request = make_batch_request


def test_check_can_prove__one_host_without_receipts__is_refused_with_what_helps() -> None:
    one_host = EndpointPool(
        [Endpoint(WithoutReceipts(), name, RetryPolicy(attempts=1)) for name in ("a", "a #2")]
    )

    with pytest.raises(ConfigurationError, match=r"got one host without .*--trust-one-endpoint"):
        check_can_prove(one_host, trusts_one_endpoint=False)

    check_can_prove(one_host, trusts_one_endpoint=True)


def test_check_can_prove__receipts_another_host_or_no_answer_yet__may_begin() -> None:
    for pool in (
        pool_of(FakeChain()),
        pool_of(WithoutBlockReceipts()),
        pool_of(WithoutReceipts(), WithoutReceipts()),
        pool_of(Silent()),
    ):
        check_can_prove(pool, trusts_one_endpoint=False)


def test_check_record__no_endpoint_confirms__names_the_contract_and_its_block() -> None:
    chain = Contracts(LYING)

    with pytest.raises(ConfigurationError, match=f"got no code at block {FIRST_BLOCK}"):
        check_record(pool_of(chain, Contracts(LYING)), chain.deployment)


def test_check_record__first_endpoint_shows_no_block__rests_and_the_second_is_asked() -> None:
    short, chain = FakeChain(), Contracts(HONEST)
    short.rewind(len(short.blocks) - 1)
    pool = pool_of(short, chain)

    check_record(pool, chain.deployment)

    assert pool.statistics()[0].state is EndpointState.COOLING


def test_check_record__all_rest__waits_for_one_of_them() -> None:
    chain = Contracts(HONEST)
    pool = pool_of(chain)
    pool.failed(pool.endpoints[0], EndpointUnavailable("endpoint 0", "an answer", "none"))

    check_record(pool, chain.deployment)

    assert pool.statistics()[0].state is EndpointState.AVAILABLE


@pytest.mark.parametrize("originator_sequence", [False, True])
def test_check_record__block_above_the_deployment__names_the_contract_and_the_block(
    originator_sequence: bool,
) -> None:
    chain = Contracts(HONEST, deployed=FIRST_BLOCK - 1)
    deployment = chain.deployment
    name = "contract 1"
    if originator_sequence:
        # The contracts are right: only the block of their counter is not.
        contracts = tuple(replace(each, block=FIRST_BLOCK - 1) for each in deployment.contracts)
        deployment, name = replace(deployment, contracts=contracts), "counter of originator 0"

    with pytest.raises(ConfigurationError) as caught:
        check_record(pool_of(chain), deployment)

    assert str(caught.value) == (
        f"deployment record, {name}: expected the block of its deployment, "
        f"got code at block {FIRST_BLOCK - 1} already"
    )


@pytest.mark.parametrize("kept_from", [FIRST_BLOCK, FIRST_BLOCK + 1])
def test_check_record__state_that_is_not_kept__is_not_checked(kept_from: int) -> None:
    chain = Contracts(HONEST, deployed=FIRST_BLOCK - 1, kept_from=kept_from)

    check_record(pool_of(chain), chain.deployment)


def test_check_record__contract_of_block_0__has_no_block_before() -> None:
    chain = Contracts(HONEST, deployed=0)
    contracts = tuple(replace(each, block=0) for each in chain.deployment.contracts)
    deployment = replace(chain.deployment, contracts=contracts, counters={0: None})

    check_record(pool_of(chain), deployment)


# ------------------------------------------------------------------ what emits nothing


def warned(
    chain: FakeChain, deployment: FollowedDeployment, caplog: pytest.LogCaptureFixture
) -> list[str]:
    """Names of the contracts that the log doubts."""
    caplog.set_level(logging.INFO)
    check_record(pool_of(chain), deployment)
    return [record.event.fields["contract"] for record in caplog.records]


def with_messages(deployment: FollowedDeployment, **changed: Any) -> FollowedDeployment:
    messages, *others = deployment.contracts
    return replace(deployment, contracts=(replace(messages, **changed), *others))


@pytest.mark.parametrize("blocks_after", [0, 1100])
def test_check_record__both_contracts_have_payloads__warns_of_none(
    blocks_after: int, caplog: pytest.LogCaptureFixture
) -> None:
    chain = Contracts(HONEST)
    chain.mine([Post("a"), update("b")], *[[]] * blocks_after)

    assert warned(chain, chain.deployment, caplog) == []


@pytest.mark.parametrize(
    "changed",
    [
        {"layout": EventLayout(identifier_length=16)},
        {"layout": EventLayout(is_sequence_indexed=True)},
        {"address": bytes([9]) * 20},
    ],
    ids=["other types", "indexed", "implementation behind a proxy"],
)
def test_check_record__nothing_fits_the_record__names_the_contract(
    changed: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    chain = Contracts(HONEST)
    chain.mine([Post("a"), update("b")])
    deployment = with_messages(chain.deployment, **changed)

    assert warned(chain, deployment, caplog) == ["contract 1"]
    assert caplog.records[0].levelno == logging.WARNING
    assert "contract 1: 0x" in caplog.text


def test_check_record__nothing_was_posted_yet__warns_of_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    chain = Contracts(HONEST)

    assert warned(chain, chain.deployment, caplog) == []


@pytest.mark.parametrize("blocks_after", [0, 1100])
@pytest.mark.parametrize("blocks_before", [0, 1100])
def test_check_record__only_the_other_contract_has_payloads__warns_of_none(
    blocks_before: int, blocks_after: int, caplog: pytest.LogCaptureFixture
) -> None:
    chain = Contracts(HONEST)
    chain.mine([Post("a")], *[[]] * blocks_before, [Post("b")], *[[]] * blocks_after)

    assert warned(chain, chain.deployment, caplog) == []


@pytest.mark.parametrize("blocks_after", [0, 1100])
def test_check_record__sequence_ids_are_missing_in_old_or_new_blocks__names_the_contract(
    blocks_after: int, caplog: pytest.LogCaptureFixture
) -> None:
    chain = Contracts(HONEST)
    posts = [update("a"), Post("b"), update("c"), Post("d"), update("e")]
    chain.mine(posts, *[[]] * 1100, posts, *[[]] * blocks_after)
    deployment = with_messages(chain.deployment, layout=EventLayout(identifier_length=16))

    assert warned(chain, deployment, caplog) == ["contract 1"]


def test_check_record__nobody_counts__warns_of_what_emits_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    chain = Contracts(HONEST)
    deployment = replace(chain.deployment, counters={0: None})

    assert warned(chain, deployment, caplog) == ["contract 1", "contract 2"]


def test_check_record__ranges_that_are_refused__are_not_looked_at(
    caplog: pytest.LogCaptureFixture,
) -> None:
    chain = Contracts(HONEST)
    chain.mine([Post("a")])
    chain.refuses_ranges = True

    assert warned(chain, chain.deployment, caplog) == []
