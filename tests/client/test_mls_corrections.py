"""Faults of ts-mls that the bundle corrects: each shows itself without the correction."""

import subprocess
from pathlib import Path

import pytest

from chainkit_client.mls.node_engine import NodeEngine
from chainkit_client.mls.program import find_node
from support.client.hostile import bundle
from support.client.parties import founder


@pytest.mark.parametrize(("options", "expected"), [(["uncorrected"], "known"), ([], "unknown")])
def test_removed_member__of_a_group_of_two__cannot_compute_the_next_epoch(
    tmp_path: Path, options: list[str], expected: str
) -> None:
    program = bundle("removed_member.mjs", tmp_path, *options)
    done = subprocess.run(
        [find_node(), program], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout == f"{expected}\n"


def test_join__into_a_tree_with_unmerged_leaves_at_two_levels__succeeds(
    engine: NodeEngine,
) -> None:
    alice = founder(engine)
    bob, carol, dave = alice.invite(engine, [b"bob", b"carol", b"dave"])
    carol.update([alice, bob, dave])
    dave.apply(bob.remove([alice.leaf], [carol]))
    [erin] = bob.invite(engine, [b"erin"], [carol, dave])
    carol.remove([dave.leaf], [bob, erin])

    [frank, grace] = carol.invite(engine, [b"frank", b"grace"], [bob, erin])

    members = [bob, carol, erin, frank, grace]
    assert len({each.view.epoch_authenticator for each in members}) == 1
