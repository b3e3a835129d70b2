"""Two sides of a log find exactly where they differ, whatever a peer answers."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import MalformedAnswer
from chainkit.protocol import log_comparison
from chainkit.protocol.log_comparison import MOST_LEAVES, Comparison
from chainkit.protocol.log_ranges import DIGEST_LENGTH, LogRange, RangeContent, root_of
from support.log_sides import ORIGINATOR, Side, compared, contents, ids, side

DISPUTED = 0
HIGHEST = 5_000
"""Three levels."""
EDGES = (1, 63, 64, 65, 1023, 1024, 1025, 1088, 1089, 2048, 4096, 4097, HIGHEST)

some_ids = st.lists(
    st.one_of(st.integers(1, HIGHEST), st.sampled_from(EDGES)), max_size=12, unique=True
)
versions = st.integers(0, 2)
changes = st.dictionaries(st.one_of(st.integers(1, HIGHEST), st.sampled_from(EDGES)), versions)
"""A version of the envelope; 0 is a dispute, and the log that is changed has version 1."""
logs = st.one_of(
    st.integers(0, HIGHEST).map(lambda count: dict.fromkeys(range(1, count + 1), 1)),
    st.sets(st.integers(1, HIGHEST), max_size=40).map(lambda held: dict.fromkeys(held, 1)),
)
"""Whole, or mostly holes."""


def changed(log: dict[int, int], gone: Sequence[int], new: dict[int, int]) -> dict[int, int]:
    return {each: version for each, version in (log | new).items() if each not in gone}


@given(logs, some_ids, changes, some_ids, changes, st.integers(0, 1100))
def test_compare__any_two_logs__finds_exactly_what_differs(
    log: dict[int, int],
    gone_here: list[int],
    new_here: dict[int, int],
    gone_there: list[int],
    new_there: dict[int, int],
    after: int,
) -> None:
    here = changed(log, gone_here, new_here)
    there = changed(log, gone_there, new_there)
    ours, theirs = side(here), side(there)
    through = min(ours.highest, theirs.highest)

    found = compared(ours, theirs, after)

    differences = found.differences
    assert (differences.through, differences.highest_there) == (through, theirs.highest)
    assert differences.is_complete
    compared_ids = range(after + 1, through + 1)
    both = [each for each in compared_ids if each in here and each in there]
    unlike = {each for each in both if here[each] != there[each]}
    held = ids(differences.only_here)
    assert held.isdisjoint(there)
    assert held & here.keys() == {each for each in compared_ids if each in here.keys() - there}
    assert ids(differences.only_there) == {
        each for each in compared_ids if each in there.keys() - here
    }
    disputed_here = {each for each in unlike if here[each] == DISPUTED}
    disputed_there = {each for each in unlike if there[each] == DISPUTED}
    assert ids(differences.disputed_here) == disputed_here
    assert ids(differences.disputed_there) == disputed_there
    assert ids(differences.differing) == unlike - disputed_here - disputed_there
    assert differences.expired_there == ()
    assert found.rounds <= root_of(ours.highest).level + 1


@given(st.sets(st.integers(1, HIGHEST), max_size=12))
def test_compare__a_long_log_with_few_differences__takes_a_path_of_each_and_no_more(
    gone: set[int],
) -> None:
    log = dict.fromkeys(range(1, HIGHEST + 1), 1)
    log_there = {each: 2 if each in gone and each % 2 else 1 for each in log}

    found = compared(side(log), side(log_there))

    # The root, and below it one range of each level for each difference, at the most.
    levels = root_of(HIGHEST).level
    assert found.ranges <= 1 + levels * len(gone)
    path = (levels * 16 + 64) * DIGEST_LENGTH
    assert found.digest_bytes <= 16 * DIGEST_LENGTH + len(gone) * path


@given(st.integers(1, HIGHEST), st.integers(0, HIGHEST), st.sets(st.integers(1, HIGHEST)))
def test_compare__what_lacks_is_expired__is_no_difference(
    pruned_here: int, pruned_there: int, some: set[int]
) -> None:
    log = dict.fromkeys(range(1, HIGHEST + 1), 1)
    expired_here = {*range(1, pruned_here + 1), *some}
    expired_there = range(1, pruned_there + 1)
    ours = side({each: 1 for each in log if each not in expired_here}, expired_here)
    theirs = side({each: 1 for each in log if each not in expired_there}, expired_there)

    differences = compared(ours, theirs).differences

    assert differences.only_there == differences.differing == ()
    assert not ids(differences.only_here) & ours.digests.keys()


def test_compare__missing_here_and_expired_there__is_told_apart_from_what_is_served() -> None:
    held = dict.fromkeys(range(1, 201), 1)
    ours = side({each: 1 for each in held if each not in (7, 70, 71)})

    differences = compared(ours, side(held, expired=[70])).differences

    assert differences.only_there == (range(7, 8), range(71, 72))
    assert differences.expired_there == (range(70, 71),)


def test_compare__more_than_one_comparison_takes__goes_on_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_comparison, "MOST_LEAVES", 3)
    gone = set(range(5, HIGHEST, 400))
    log = dict.fromkeys(range(1, HIGHEST + 1), 1)
    ours, theirs = side({each: 1 for each in log if each not in gone}), side(log)
    found: set[int] = set()
    after = comparisons = 0

    while after < HIGHEST:
        differences = compared(ours, theirs, after).differences
        assert after < differences.compared_through <= HIGHEST
        new = ids(differences.only_there)
        assert all(after < each <= differences.compared_through for each in new)
        found |= new
        after, comparisons = differences.compared_through, comparisons + 1

    assert found == gone
    assert 1 < comparisons <= len(gone)


def test_compare__all_differs_and_the_log_is_endless__ends_within_its_bounds() -> None:
    highest = 2**63 - 1
    chance = random.Random(1)
    comparison = Comparison(ORIGINATOR, highest)
    asked = []

    while comparison.asked:
        asked.append(len(comparison.asked))
        comparison.learn_highest(2**64 - 1)
        # No claims: a peer that answers any digest is caught at once, by their hashes.
        comparison._claims.clear()
        parts = [each.part_count(comparison.through) for each in comparison.asked]
        here, there = (
            [RangeContent(chance.randbytes(count * DIGEST_LENGTH)) for count in parts]
            for _ in range(2)
        )
        comparison.compare(here, there)

    assert len(asked) == 16
    assert max(asked) == MOST_LEAVES
    differences = comparison.differences()
    assert sum(map(len, differences.differing)) == MOST_LEAVES * 64
    assert differences.compared_through == MOST_LEAVES * 64


Contents = list[RangeContent]


def cut(answers: Contents) -> Contents:
    return [*answers[:-1], answers[-1]._replace(digests=answers[-1].digests[:-1])]


def lengthened(answers: Contents) -> Contents:
    return [*answers[:-1], answers[-1]._replace(digests=answers[-1].digests + b"x" * DIGEST_LENGTH)]


def forged(answers: Contents) -> Contents:
    return [*answers[:-1], answers[-1]._replace(digests=b"f" * len(answers[-1].digests))]


def marked(answers: Contents) -> Contents:
    return [*answers[:-1], answers[-1]._replace(expired=1 << 64)]


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        (cut, r"expected \d+ digests of LogRange\(level=\d, number=\d+\), got \d+ bytes"),
        (lengthened, r"expected \d+ digests of LogRange\(level=\d, number=\d+\), got \d+ bytes"),
        (marked, r"expected bits for \d+ parts of LogRange\(level=\d, number=\d+\), got 0x1"),
        (lambda answers: answers[:-1], r"expected 1 ranges, got 0"),
        (lambda answers: answers * 2, r"expected 1 ranges, got 2"),
    ],
    ids=["cut", "lengthened", "marked", "one too few", "twice"],
)
@pytest.mark.parametrize("lying_round", [0, 1, 2])
def test_compare__answer_that_no_node_can_give__is_refused(
    lie: Callable[[Contents], Contents], words: str, lying_round: int
) -> None:
    comparison, ours, theirs = at_round(lying_round)

    with pytest.raises(MalformedAnswer, match=f"peer's ranges of originator 100: {words}"):
        comparison.compare(*answers(comparison, ours, theirs, lie))


@pytest.mark.parametrize("lying_round", [1, 2])
def test_compare__parts_that_do_not_hash_to_their_range__are_refused(lying_round: int) -> None:
    comparison, ours, theirs = at_round(lying_round)

    with pytest.raises(MalformedAnswer, match=r"expected parts of LogRange\(.*\) that hash to"):
        comparison.compare(*answers(comparison, ours, theirs, forged))


def test_learn_highest__falls_while_it_is_compared__is_refused() -> None:
    comparison, _, _ = at_round(1)

    comparison.learn_highest(HIGHEST)
    with pytest.raises(MalformedAnswer, match=r"expected at least 5000 as .*, got 4999"):
        comparison.learn_highest(HIGHEST - 1)


def at_round(number: int) -> tuple[Comparison, Side, Side]:
    log = dict.fromkeys(range(1, HIGHEST + 1), 1)
    ours, theirs = side(log), side(log | {3000: 2})
    comparison = Comparison(ORIGINATOR, HIGHEST)
    comparison.learn_highest(HIGHEST)
    for _ in range(number):
        comparison.compare(*answers(comparison, ours, theirs, list))
    assert comparison.asked == [LogRange(2 - number, 2999 // (64 * 16 ** (2 - number)))]
    return comparison, ours, theirs


def answers(
    comparison: Comparison, ours: Side, theirs: Side, lie: Callable[[Contents], Contents]
) -> tuple[Contents, Contents]:
    here = contents(ours, comparison.asked, HIGHEST)
    return here, lie(contents(theirs, comparison.asked, HIGHEST))
