import pytest

from chainkit.chain import Endpoint, EndpointPool, RetryPolicy
from chainkit.chain.member import EndpointState
from chainkit.errors import ConfigurationError, EndpointUnavailable
from chainkit_indexer.follow.first_start import check_record
from support.chains.fake_chain import FIRST_BLOCK, FakeChain


class Contracts(FakeChain):
    """A chain that tells the contracts' code, or says that there is none, or nothing."""

    def __init__(self, code: str | None) -> None:
        super().__init__()
        self.code = code
        self.mine(*[[]] * FIRST_BLOCK)

    def _eth_getCode(self, address: str, pinned: object) -> str:  # noqa: N802
        if self.code is None:
            raise LookupError("unknown block")
        return self.code


def pool_of(*chains: FakeChain) -> EndpointPool:
    return EndpointPool(
        [Endpoint(each, f"endpoint {n}", RetryPolicy(attempts=1)) for n, each in enumerate(chains)]
    )


HONEST, LYING = "0x60", "0x"


def test_check_record__first_endpoint_lies__is_confirmed_by_the_second() -> None:
    chain = Contracts(LYING)

    check_record(pool_of(chain, Contracts(HONEST)), chain.deployment)


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
