import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chainkit.council.calls import Call
from chainkit.council.log.calls import Calls, TrailCall
from chainkit.council.log.proposals import KeptProposals, read_kept
from chainkit.council.proposal import Council, Proposal, proposal_content, write_proposal_file
from chainkit.council.proposal.grounds import Trailer
from chainkit.documents.canonical import page_bytes
from chainkit.errors import ConfigurationError
from support.council.hostile_text import add_node_without_utf_8
from support.council.proposals import (
    EXPIRES,
    PLAIN,
    RECORD,
    SAFE,
    change_threshold,
    disable,
    grounds,
    pause,
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
    expected = grounds(change_threshold(), reason="more of us")
    assert kept.grounds_of(RECORD, called(change_threshold(), proposal=owners)) == (expected, "")


def kept_of(proposal: Proposal) -> KeptProposals:
    return KeptProposals({proposal.hash: proposal}, {proposal.grounds.digest: proposal.grounds})


def called(*calls: Call, proposal: Proposal, **changes: Any) -> Calls:
    """Return calls as an account made them, with a proposal's trailer behind the last."""
    made = tuple(TrailCall(call.target, call.calldata, 0, call, "") for call in calls)
    trailer = Trailer(proposal.grounds.expires, proposal.grounds.digest)
    return replace(Calls(made, trailer), **changes)


def test_grounds__no_trailer_or_one_that_no_file_has__are_none() -> None:
    kept, found = kept_of(proposed()), called(disable(), proposal=proposed())

    for trailer in (None, Trailer(EXPIRES, bytes(32))):
        assert kept.grounds_of(RECORD, replace(found, trailer=trailer)) == (None, "")


def test_grounds__of_several_calls__are_theirs() -> None:
    proposal = proposed(disable(), pause())

    found = called(disable(), pause(), proposal=proposal)

    assert kept_of(proposal).grounds_of(RECORD, found) == (proposal.grounds, "")


UNKNOWN = TrailCall(b"\x99" * 20, b"\x12\x34\x56\x78", 0, None, "no call that a council makes")
TAKE_OVER = Call.make(RECORD, "NodeRegistry", "transferOwnership", "0x" + "66" * 20)


@pytest.mark.parametrize(
    "found",
    [
        called(TAKE_OVER, proposal=proposed()),
        called(disable(400), proposal=proposed()),
        called(disable(), TAKE_OVER, proposal=proposed()),
        called(disable(), pause(), proposal=proposed()),
        called(proposal=proposed()),
        called(proposal=proposed(), calls=(UNKNOWN,)),
        called(proposal=proposed(), calls=(*called(disable(), proposal=proposed()).calls, UNKNOWN)),
        called(
            disable(),
            proposal=proposed(),
            trailer=Trailer(EXPIRES + 1, proposed().grounds.digest),
        ),
    ],
    ids=[
        "another call",
        "another node",
        "a call beside it",
        "a change beside it",
        "no call",
        "no known call",
        "an unknown call beside it",
        "a later expiry",
    ],
)
def test_grounds__borrowed_from_another_proposal__are_not_lent(found: Calls) -> None:
    grounds, caution = kept_of(proposed()).grounds_of(RECORD, found)

    assert grounds is None
    assert caution.startswith("it bears the grounds of another proposal")


def test_read__text_that_is_no_utf_8__does_not_stop_the_others(tmp_path: Path) -> None:
    content = proposal_content(proposed())
    content["calls"][0]["calldata"] = "0x" + add_node_without_utf_8().hex()
    (tmp_path / "a.json").write_bytes(page_bytes(content))
    write_proposal_file(tmp_path / "b.json", proposed(), is_new=True)

    kept = read(tmp_path)

    assert list(kept.by_hash) == [proposed().hash]
    assert "expected text in UTF-8" in kept.unread[0]


def test_read__pipe_and_endless_device__do_not_stop_the_others(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.json")
    (tmp_path / "b.json").symlink_to("/dev/zero")
    write_proposal_file(tmp_path / "c.json", proposed(), is_new=True)

    kept = read(tmp_path)

    assert list(kept.by_hash) == [proposed().hash]
    assert len(kept.unread) == 2


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
