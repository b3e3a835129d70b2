import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import ConfigurationError
from chainkit_indexer.finality import NOTHING_FINAL, FinalityPolicy
from support.chains.fake_chain import FakeChain


@pytest.mark.parametrize("text", ["0", "64", "30000ms", "safe", "finalized"])
def test_parse__policy__writes_it_the_same(text: str) -> None:
    assert str(FinalityPolicy.parse(text)) == text


@pytest.mark.parametrize("text", ["", "-1", "64 ", "1.5", "latest", "30s", "²", "9" * 13, "ms"])
def test_parse__anything_else__says_what_it_takes(text: str) -> None:
    with pytest.raises(ConfigurationError, match="expected a number of blocks, milliseconds"):
        FinalityPolicy.parse(text)


def chain_of(blocks: int) -> FakeChain:
    chain = FakeChain()
    chain.mine(*[[]] * (blocks - chain.head.number))
    return chain


def final_block(chain: FakeChain, policy: str, known: int = NOTHING_FINAL) -> int:
    head = chain.endpoint.head()
    return FinalityPolicy.parse(policy).final_block(chain.endpoint, head, known)


@pytest.mark.conforms("2.1.2-2")
def test_final_block__blocks_behind_the_head__never_goes_back() -> None:
    chain = chain_of(20)

    assert final_block(chain, "6") == 14
    assert final_block(chain, "0") == 20
    assert final_block(chain, "64") == NOTHING_FINAL
    assert final_block(chain, "6", known=17) == 17


@given(
    blocks=st.integers(3, 60),
    milliseconds=st.integers(0, 150_000),
    known_share=st.floats(0, 1),
)
def test_final_block__age__is_the_newest_block_so_old(
    blocks: int, milliseconds: int, known_share: float
) -> None:
    chain = chain_of(blocks)
    limit = chain.head.timestamp * 1000 - milliseconds
    expected = max((b.number for b in chain.blocks if b.timestamp * 1000 <= limit), default=-1)
    known = round(known_share * (expected + 1)) - 1

    assert final_block(chain, f"{milliseconds}ms", known) == expected


def test_final_block__tag__is_the_chains_own_but_not_above_the_head() -> None:
    chain = chain_of(20)
    chain.tags = {"safe": 15, "finalized": 9}

    assert final_block(chain, "safe") == 15
    assert final_block(chain, "finalized") == 9
    head = chain.endpoint.header(12)
    assert FinalityPolicy.parse("safe").final_block(chain.endpoint, head, 3) == 12


def test_final_block__endpoint_without_the_tag__stays_where_it_was() -> None:
    chain = chain_of(20)

    assert final_block(chain, "finalized") == NOTHING_FINAL
    assert final_block(chain, "finalized", known=4) == 4
