from pathlib import Path

import pytest

from chainkit.errors import ConfigurationError
from chainkit.proposal import Council, write_proposal_file
from chainkit.proposal.grounds import Trailer
from chainkit.proposal.trail_proposals import KeptProposals, read_kept
from support.proposals import (
    PLAIN,
    RECORD,
    SAFE,
    change_threshold,
    disable,
    grounds,
    proposed,
)


def read(folder: Path, council: Council = SAFE) -> KeptProposals:
    return read_kept(folder, RECORD, council)


def test_read__proposals_of_contracts_and_of_owners__are_both_kept(tmp_path: Path) -> None:
    contracts = proposed(disable())
    owners = proposed(change_threshold(), reason="more of us")
    write_proposal_file(tmp_path / "a.json", contracts, is_new=True)
    write_proposal_file(tmp_path / "b.json", owners, is_new=True)

    kept = read(tmp_path)

    assert kept.by_hash == {contracts.hash: contracts, owners.hash: owners}
    assert kept.unread == ()
    trailer = Trailer(0, owners.grounds.digest)
    assert kept.grounds_of(trailer) == grounds(change_threshold(), reason="more of us")
    assert kept.grounds_of(Trailer(0, bytes(32))) is None
    assert kept.grounds_of(None) is None


def test_read__files_that_are_none__do_not_stop_the_others(tmp_path: Path) -> None:
    proposal = proposed(disable())
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "b\x1b[2J.json").write_text("no JSON")
    (tmp_path / "c.json").mkdir()
    (tmp_path / "notes.txt").write_text("not looked at")
    write_proposal_file(tmp_path / "d.json", proposed(council=PLAIN), is_new=True)
    write_proposal_file(tmp_path / "e.json", proposal, is_new=True)

    kept = read(tmp_path)

    assert list(kept.by_hash) == [proposal.hash]
    assert len(kept.unread) == 4
    assert all(line.isprintable() for line in kept.unread)


def test_read__file_that_was_changed__is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_proposal_file(path, proposed(disable()), is_new=True)
    path.write_text(path.read_text().replace("node 300 served", "node 400 served"))

    kept = read(tmp_path)

    assert (kept.by_hash, kept.grounds, len(kept.unread)) == ({}, {}, 1)


def test_read__no_folder__is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="a folder"):
        read(tmp_path / "none")
