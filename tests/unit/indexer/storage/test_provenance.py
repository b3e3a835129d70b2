"""Runs of blocks by how they were established: against a list of one word per block."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, create_engine

from chainkit_indexer.storage import schema
from chainkit_indexer.storage.provenance import cut_runs, extend_runs, raise_run, read_runs
from chainkit_indexer.types import Provenance, ProvenanceRun

FIRST = 3


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with create_engine("sqlite://").connect() as opened:
        schema.provenance.create(opened)
        yield opened


def runs_of(words: list[Provenance]) -> list[ProvenanceRun]:
    """The runs in their plainest form."""
    runs: list[ProvenanceRun] = []
    for number, word in enumerate(words, FIRST):
        if runs and runs[-1].provenance is word:
            runs[-1] = ProvenanceRun(runs[-1].first_block, number, word)
        else:
            runs.append(ProvenanceRun(number, number, word))
    return runs


WORDS = st.sampled_from(Provenance)
EXTENSIONS = st.tuples(st.just("extend"), st.integers(1, 4), WORDS)
CUTS = st.tuples(st.just("cut"), st.integers(FIRST - 1, 20), WORDS)
PROOFS = st.tuples(st.just("raise"), st.integers(FIRST, 20), st.integers(0, 6))


@given(st.lists(st.one_of(EXTENSIONS, CUTS, PROOFS), max_size=12))
def test_runs__after_any_changes__are_what_each_block_says(
    connection: Connection, changes: list[tuple[str, int, Provenance | int]]
) -> None:
    connection.execute(schema.provenance.delete())
    words: list[Provenance] = []
    for name, number, about in changes:
        if name == "extend":
            assert isinstance(about, Provenance)
            start = FIRST + len(words)
            extend_runs(connection, ProvenanceRun(start, start + number - 1, about))
            words += [about] * number
        elif name == "cut":
            cut_runs(connection, number)
            words = words[: number - FIRST + 1]
        else:
            assert isinstance(about, int)
            raise_run(connection, ProvenanceRun(number, number + about, Provenance.RECEIPTS))
            for place in range(number - FIRST, number - FIRST + about + 1):
                if place < len(words):
                    words[place] = Provenance.RECEIPTS
        assert list(read_runs(connection)) == runs_of(words)
