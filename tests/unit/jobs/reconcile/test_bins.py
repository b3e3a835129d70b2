from hypothesis import given
from hypothesis import strategies as st

from chainkit_jobs.reconcile.bins import MOST_BINS, Bins


@given(st.integers(0, 10**9), st.integers(0, 10**8))
def test_bins__any_range__are_as_narrow_as_a_picture_can_show(first: int, length: int) -> None:
    bins = Bins.over(first, first + length)

    def count(step: int) -> int:
        return (first + length) // step - first // step + 1

    assert bins.step.bit_count() == 1
    assert count(bins.step) <= MOST_BINS
    assert bins.step == 1 or count(bins.step // 2) > MOST_BINS
