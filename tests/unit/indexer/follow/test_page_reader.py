from dataclasses import replace
from threading import Event
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.chain import Endpoint
from chainkit.errors import EndpointUnavailable, InconsistentAnswer, RangeRefused
from chainkit.signatures import SigningKey
from chainkit.types import BlockHeader
from chainkit_indexer.config import IndexerSettings
from chainkit_indexer.follow import prefetch
from chainkit_indexer.follow.page_reader import RECENT_BLOCKS, PageReader
from chainkit_indexer.follow.signing import Signer
from chainkit_indexer.types import IndexedBlock, VerifiedPage
from support.chains.fake_chain import FakeChain, Post

KEY = SigningKey(bytes([7]) * 32)


def chain_of(blocks: int, posts: int = 1) -> FakeChain:
    chain = FakeChain()
    chain.mine(*[[Post(f"{block} {post}") for post in range(posts)] for block in range(blocks)])
    return chain


def start_of(chain: FakeChain) -> IndexedBlock:
    return IndexedBlock(chain.endpoint.header(chain.deployment.first_block - 1), {0: 0})


def read(
    reader: PageReader, endpoint: Endpoint, start: IndexedBlock, head: BlockHeader
) -> VerifiedPage | None:
    begun = reader.read(endpoint, start, head, head.number)
    return begun and begun.page


def wait_for_pages_ahead(reader: PageReader) -> None:
    assert reader._prefetcher is not None and reader._prefetcher._pages
    for ahead, _ in reader._prefetcher._pages:
        ahead.result()


def read_all(chain: FakeChain, reader: PageReader) -> list[VerifiedPage]:
    head = chain.endpoint.head()
    pages, start = [], start_of(chain)
    while start.header.number < head.number:
        page = read(reader, chain.endpoint, start, head)
        assert page is not None
        pages.append(page)
        start = page.last
    return pages


class Clock:
    """Stands still until a test moves it."""

    seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def reader_of(
    chain: FakeChain, page_blocks: int = 1000, prefetches: bool = False, recent_blocks: int = 0
) -> PageReader:
    settings = IndexerSettings(chain.deployment, page_blocks)
    return PageReader(settings, Signer(KEY), prefetches, recent_blocks, Clock())


@given(
    blocks=st.integers(1, 60),
    page_blocks=st.integers(1, 70),
    recent_blocks=st.integers(0, 70),
    prefetches=st.booleans(),
)
def test_read__any_width__gives_every_payload_once(
    blocks: int, page_blocks: int, recent_blocks: int, prefetches: bool
) -> None:
    chain = chain_of(blocks)
    pages = read_all(chain, reader_of(chain, page_blocks, prefetches, recent_blocks))

    ids = [placed.event.sequence_id for page in pages for placed in page.events]
    assert ids == list(range(1, blocks + 1))
    assert [b.header.number for page in pages for b in page.blocks] == list(
        range(3, chain.head.number + 1)
    )
    assert all(len(page.blocks) <= page_blocks for page in pages)


def test_read__recent_blocks_and_others__asks_by_hash_and_by_range() -> None:
    chain = chain_of(40)
    queries: list[dict[str, Any]] = []
    chain.tamper = lambda method, params, result: (
        queries.append(params[0]) or result if method == "eth_getLogs" else result
    )
    read_all(chain, reader_of(chain, recent_blocks=12))

    by_range = [int(q["toBlock"], 16) for q in queries if "toBlock" in q]
    by_hash = [q["blockHash"] for q in queries if "blockHash" in q]
    assert max(by_range) == chain.head.number - 12
    assert len(by_hash) == 12


def refusing(most: int, suggested: int | None = None) -> Any:
    def tamper(method: str, params: Any, result: Any) -> Any:
        if method == "eth_getLogs" and "toBlock" in params[0]:
            width = int(params[0]["toBlock"], 16) - int(params[0]["fromBlock"], 16) + 1
            if width > most:
                error = RangeRefused("logs", f"at most {most} blocks", width)
                error.suggested_blocks = suggested
                raise error
        return result

    return tamper


@pytest.mark.parametrize("suggested", [None, 3, 1000])
def test_read__endpoint_refuses_wide_ranges__narrows_and_stays(suggested: int | None) -> None:
    chain = chain_of(60)
    chain.tamper = refusing(3, suggested)
    pages = read_all(chain, reader_of(chain))

    assert sum(len(page.events) for page in pages) == 60
    assert max(len(page.blocks) for page in pages) <= 3


def test_read__endpoint_refuses_one_block__is_unavailable() -> None:
    chain = chain_of(5)
    chain.tamper = refusing(0)
    with pytest.raises(EndpointUnavailable, match="an answer over fewer blocks"):
        read_all(chain, reader_of(chain))


def test_read__next_block_has_another_parent__is_none() -> None:
    chain = chain_of(5)
    head, start = chain.endpoint.head(), start_of(chain)
    moved = IndexedBlock(replace(start.header, hash=b"\x09" * 32), start.sequence_ids)

    for recent_blocks in (0, 64):
        reader = reader_of(chain, recent_blocks=recent_blocks)
        assert read(reader, chain.endpoint, moved, head) is None


def test_read__page_ahead_of_a_branch_that_was_left__is_not_used() -> None:
    chain = chain_of(10)
    reader = reader_of(chain, page_blocks=2, prefetches=True)
    head, start = chain.endpoint.head(), start_of(chain)
    first = read(reader, chain.endpoint, start, head)
    assert first is not None
    chain.fork(chain.head.number - 3, [Post("other")], [], [])

    again = read(reader, chain.endpoint, start, chain.endpoint.head())

    assert again is not None
    assert again.last.header.hash == chain.blocks[4].hash


def test_read__page_ahead_failed__raises_and_then_asks_again() -> None:
    chain = chain_of(10)
    reader = reader_of(chain, page_blocks=2, prefetches=True)
    head, start = chain.endpoint.head(), start_of(chain)
    cuts = iter([True])

    def cut_once(method: str, params: Any, result: Any) -> Any:
        is_cut = method == "eth_getLogs" and int(params[0]["toBlock"], 16) >= 7
        return result[:-1] if is_cut and next(cuts, False) else result

    chain.tamper = cut_once
    ids: list[int] = []
    failures = 0
    while start.header.number < head.number:
        try:
            page = read(reader, chain.endpoint, start, head)
        except InconsistentAnswer:
            failures += 1
            continue
        assert page is not None
        ids += [placed.event.sequence_id for placed in page.events]
        start = page.last

    assert failures == 1
    assert ids == list(range(1, 11))


def test_read__page_ahead_left_by_the_chain_meanwhile__is_fetched_anew() -> None:
    chain = chain_of(10)
    reader = reader_of(chain, page_blocks=2, prefetches=True, recent_blocks=64)
    head, start = chain.endpoint.head(), start_of(chain)
    first = read(reader, chain.endpoint, start, head)
    assert first is not None
    wait_for_pages_ahead(reader)
    chain.fork(chain.head.number - 4, [Post("other")], [], [])

    page = read(reader, chain.endpoint, first.last, chain.endpoint.head())

    assert page is not None
    assert [block.header.hash for block in page.blocks] == [b.hash for b in chain.blocks[5:7]]


def test_read__page_ahead_was_near_the_head_of_a_branch_that_was_left__is_fetched_anew() -> None:
    chain = chain_of(40)
    reader = reader_of(chain, page_blocks=8, prefetches=True, recent_blocks=64)
    first = read(reader, chain.endpoint, start_of(chain), chain.endpoint.head())
    assert first is not None
    wait_for_pages_ahead(reader)
    # By the time that somebody asks, the chain has left the branch and is long.
    kept = first.last.header.number
    chain.fork(chain.head.number - kept, *[[Post(f"new {number}")] for number in range(200)])

    page = read(reader, chain.endpoint, first.last, chain.endpoint.head())

    assert page is not None
    hashes = [block.header.hash for block in page.blocks]
    assert hashes == [block.hash for block in chain.blocks[kept + 1 : kept + 1 + len(hashes)]]


def heads_asked(chain: FakeChain) -> list[str]:
    asked: list[str] = []

    def note(method: str, params: Any, result: Any) -> Any:
        if params[:1] == ["latest"]:
            asked.append(method)
        return result

    chain.tamper = note
    return asked


@pytest.fixture
def ahead() -> tuple[FakeChain, PageReader, IndexedBlock]:
    """A reader that has the page after a block, of a chain with a head of its own by now."""
    chain = chain_of(RECENT_BLOCKS + 20)
    reader = reader_of(chain, page_blocks=4, prefetches=True, recent_blocks=8)
    head = reader.head(chain.endpoint, None)
    page = read(reader, chain.endpoint, start_of(chain), head)
    assert page is not None
    wait_for_pages_ahead(reader)
    chain.mine([])
    return chain, reader, page.last


def test_head__page_is_here__is_not_asked_for(
    ahead: tuple[FakeChain, PageReader, IndexedBlock],
) -> None:
    chain, reader, position = ahead
    asked = heads_asked(chain)

    assert reader.head(chain.endpoint, position).number == chain.head.number - 1
    page = read(reader, chain.endpoint, position, reader.head(chain.endpoint, position))
    assert page is not None and page.start == position
    wait_for_pages_ahead(reader)
    assert reader.head(chain.endpoint, page.last).number == chain.head.number - 1
    assert not asked


def test_head__page_is_not_here_yet__is_asked_for(
    ahead: tuple[FakeChain, PageReader, IndexedBlock],
) -> None:
    chain, reader, position = ahead
    may_answer = Event()

    def hold(method: str, params: Any, result: Any) -> Any:
        is_held = method == "eth_getLogs" and not may_answer.wait(10)
        return [] if is_held else result

    chain.tamper = hold
    for _ in range(prefetch._PAGES):
        page = read(reader, chain.endpoint, position, reader.head(chain.endpoint, position))
        assert page is not None
        position = page.last

    assert reader.head(chain.endpoint, position).number == chain.head.number
    may_answer.set()


def test_head__a_while_later__is_asked_for(
    ahead: tuple[FakeChain, PageReader, IndexedBlock],
) -> None:
    chain, reader, position = ahead
    assert isinstance(reader._clock, Clock)
    reader._clock.seconds += 1

    assert reader.head(chain.endpoint, position).number == chain.head.number


def test_head__other_position_or_endpoint__is_asked_for(
    ahead: tuple[FakeChain, PageReader, IndexedBlock],
) -> None:
    chain, reader, position = ahead
    asked = heads_asked(chain)

    reader.head(chain.endpoint, None)
    reader.head(chain.endpoint, start_of(chain))
    reader.head(Endpoint(chain, "other"), position)

    assert len(asked) == 3


def test_head__page_ends_near_it__is_asked_for_each_time() -> None:
    chain = chain_of(RECENT_BLOCKS)
    reader = reader_of(chain, page_blocks=4, prefetches=True, recent_blocks=0)
    page = read(reader, chain.endpoint, start_of(chain), reader.head(chain.endpoint, None))
    assert page is not None
    wait_for_pages_ahead(reader)
    asked = heads_asked(chain)

    reader.head(chain.endpoint, page.last)
    reader.head(chain.endpoint, page.last)

    assert len(asked) == 2


def test_read__top_is_lower_than_the_page_ahead__stays_below_it() -> None:
    chain = chain_of(40)
    reader = reader_of(chain, page_blocks=8, prefetches=True)
    head = chain.endpoint.head()
    first = reader.read(chain.endpoint, start_of(chain), head, 30)
    assert first is not None
    last = first.page.last
    wait_for_pages_ahead(reader)

    begun = reader.read(chain.endpoint, last, head, last.header.number + 3)

    assert begun is not None
    assert begun.page.last.header.number == last.header.number + 3


def test_read__another_endpoint_hangs_with_the_page_ahead__is_not_waited_for() -> None:
    chain, hanging, reached = chain_of(10), Event(), Event()
    waited_for: list[Any] = []
    reader = reader_of(chain, page_blocks=2, prefetches=True)
    head, start = chain.endpoint.head(), start_of(chain)
    slow = Endpoint(chain.endpoint.transport, "slow")
    first = read(reader, slow, start, head)
    assert first is not None
    wait_for_pages_ahead(reader)

    def hang(method: str, params: Any, result: Any) -> Any:
        if params[:1] == [hex(11)]:
            reached.set()
            if not hanging.wait(10):
                waited_for.append(params)
        return result

    chain.tamper = hang
    second = read(reader, slow, first.last, head)
    assert second is not None and reached.wait(10)
    chain.tamper = lambda method, params, result: result

    pages, start = [], second.last
    while start.header.number < head.number:
        page = read(reader, chain.endpoint, start, head)
        assert page is not None
        pages.append(page)
        start = page.last

    assert (len(pages), waited_for) == (3, [])
    hanging.set()


def test_read__head_with_a_time_that_no_envelope_holds__is_refused() -> None:
    chain = chain_of(1)
    chain.mine([])
    start = IndexedBlock(chain.endpoint.header(chain.head.number - 1), {0: 1})
    head = replace(chain.endpoint.head(), timestamp=2**200)

    with pytest.raises(InconsistentAnswer, match="a time up to"):
        read(reader_of(chain, recent_blocks=64), chain.endpoint, start, head)


def test_read__large_payloads__makes_pages_of_fewer_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("chainkit_indexer.follow.page_reader.TARGET_BYTES", 1)
    chain = chain_of(30)

    widths = [len(page.blocks) for page in read_all(chain, reader_of(chain))]

    assert widths == [16] + [1] * 14
