from dataclasses import replace

from chainkit.chain import Endpoint, EndpointPool, RetryPolicy
from chainkit.chain.member import EndpointState
from chainkit_indexer.follow.idle import IdleCheck
from chainkit_indexer.types import Idle
from support.chains.fake_chain import FakeChain
from support.endpoints.fake_endpoint import FakeProvider, RpcError


def chain_of(blocks: int) -> FakeChain:
    chain = FakeChain()
    chain.mine(*[[]] * blocks)
    return chain


class Scene:
    """Endpoints that show chains of different lengths; the steps use the first."""

    def __init__(self, *chains: FakeChain, is_registry_done: bool = True) -> None:
        self.chains = chains
        endpoints = [
            Endpoint(each, f"endpoint {number}", RetryPolicy(attempts=1))
            for number, each in enumerate(chains)
        ]
        self.pool = EndpointPool(endpoints)
        chain_id = chains[0].record.chain_id
        self.check = IdleCheck(self.pool, chain_id, lambda: is_registry_done)

    def is_done(self) -> bool:
        head = self.pool.endpoints[0].head()
        return self.check.is_done(Idle(head.reference, head, -1))


def test_is_done__all_show_the_same_head__is_so() -> None:
    assert Scene(chain_of(5), chain_of(5)).is_done()


def test_is_done__another_endpoint_is_ahead__is_not_until_ours_has_come_there() -> None:
    scene = Scene(chain_of(3), chain_of(5))

    assert not scene.is_done()
    scene.chains[0].mine([], [])
    assert scene.is_done()


def test_is_done__our_endpoint_falls_back__is_not() -> None:
    scene = Scene(chain_of(5))
    assert scene.is_done()

    scene.chains[0].rewind(2)

    assert not scene.is_done()


def test_is_done__a_reorg_made_the_chain_shorter__is_so() -> None:
    scene = Scene(chain_of(5))
    assert scene.is_done()
    scene.chains[0].fork(3, [])

    scene.pool.saw_reorg(scene.chains[0].head.number)

    assert scene.is_done()


def test_is_done__the_other_one_does_not_answer__does_not_wait_for_it() -> None:
    scene = Scene(chain_of(5))
    refusal = {"eth_chainId": RpcError(-32000), "eth_getBlockByNumber": RpcError(-32000)}
    dead = Endpoint(FakeProvider(refusal), "dead", RetryPolicy(attempts=1))
    scene.pool = EndpointPool([*scene.pool.endpoints, dead])
    scene.check = replace(scene.check, pool=scene.pool)

    assert scene.is_done()
    assert scene.pool.statistics()[1].state is not EndpointState.AVAILABLE


def test_is_done__registry_was_not_read__is_not() -> None:
    assert not Scene(chain_of(5), is_registry_done=False).is_done()
