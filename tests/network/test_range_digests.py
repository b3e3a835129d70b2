"""Digests of ranges, on each kind of database."""

from __future__ import annotations

import pytest

from chainkit_indexer.storage.database import Database
from support.indexer.ranges import ChangingLog, change_at_random


@pytest.mark.parametrize("seed", [10, 11])
def test_read_contents__log_that_changes_in_all_ways__are_those_of_what_it_holds(
    indexed: Database, seed: int
) -> None:
    change_at_random(ChangingLog(indexed), seed, steps=15)
