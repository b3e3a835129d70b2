"""How wide ranges of blocks are, by what an endpoint refused and answered."""

from hypothesis import given
from hypothesis import strategies as st

from chainkit.chain.log_ranges import RangeWidth


def requests_until_read(limit: int, blocks: int, suggests: bool) -> tuple[int, int]:
    """Read blocks from an endpoint that gives ``limit`` at once; return answers and refusals."""
    width, read, answers, refusals = RangeWidth(), 0, 0, 0
    while read < blocks:
        asked = min(width.blocks, blocks - read)
        if asked > limit:
            width.refused(asked, limit if suggests else None)
            refusals += 1
        else:
            width.answered(asked)
            read, answers = read + asked, answers + 1
    return answers, refusals


def test_answered__again_and_again__doubles_up_to_the_most() -> None:
    width, seen = RangeWidth(16, 100), []
    for _ in range(6):
        seen.append(width.blocks)
        width.answered(width.blocks)

    assert seen == [16, 32, 64, 100, 100, 100]


def test_answered__fewer_blocks_fit__narrows_and_grows_again() -> None:
    width = RangeWidth(16, 1000)
    width.answered(16, fitting=4)
    assert width.blocks == 4
    width.answered(4, fitting=0)
    assert width.blocks == 1
    width.answered(1, fitting=500)
    assert width.blocks == 2


def test_answered__after_a_refusal__stays_below_for_64_answers() -> None:
    width = RangeWidth(600, 1000)
    width.refused(600)
    for _ in range(64):
        assert width.blocks == 300
        width.answered(300)
    width.answered(300)

    assert width.blocks == 600


def test_refused__with_a_narrower_width_suggested__takes_it() -> None:
    width = RangeWidth()
    width.refused(16_000, 10_000)

    assert width.blocks == 10_000


def test_refused__its_own_suggestion__halves() -> None:
    width = RangeWidth()
    width.refused(10_000, 9_999)
    width.refused(9_999, 9_998)

    assert width.blocks == 4_999


@given(refused=st.integers(2, 5000), suggested=st.none() | st.integers(0, 10**6))
def test_refused__any_width__narrows(refused: int, suggested: int | None) -> None:
    width = RangeWidth(5000, 5000)
    width.refused(refused, suggested)

    assert 1 <= width.blocks < refused


def test_refused__limit_that_the_endpoint_names__costs_few_refusals() -> None:
    answers, refusals = requests_until_read(limit=10, blocks=6_400, suggests=True)

    assert answers == 640
    assert refusals <= 11


def test_refused__limit_that_nobody_names__costs_few_refusals() -> None:
    answers, refusals = requests_until_read(limit=4_000, blocks=640_000, suggests=False)

    assert answers <= 300
    assert refusals <= 8
