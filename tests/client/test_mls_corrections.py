"""Faults of ts-mls that the bundle corrects: each shows itself without the correction."""

import subprocess
from pathlib import Path

import pytest

from chainkit_client.mls.node_engine import NodeEngine
from chainkit_client.mls.program import find_node
from support.client.hostile import bundle
from support.client.parties import group_of


@pytest.mark.parametrize(("options", "expected"), [(["uncorrected"], "known"), ([], "unknown")])
def test_removed_member__of_a_group_of_two__cannot_compute_the_next_epoch(
    tmp_path: Path, options: list[str], expected: str
) -> None:
    program = bundle("removed_member.mjs", tmp_path, *options)
    done = subprocess.run(
        [find_node(), program], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout == f"{expected}\n"


def test_join__into_a_tree_whose_levels_list_other_unmerged_leaves__succeeds(
    engine: NodeEngine,
) -> None:
    members = group_of(engine, *(b"%d" % each for each in range(8)))
    staying = [member for member in members[1:] if member.leaf not in (2, 4)]
    members[0].remove([2, 4], staying)

    # Leaf 2 is unmerged in the two nodes above it, leaf 4 in the root only.
    newcomers = members[0].invite(engine, [b"at leaf 2", b"at leaf 4"], staying)

    assert [newcomer.leaf for newcomer in newcomers] == [2, 4]
    assert newcomers[0].view.epoch_authenticator == members[0].view.epoch_authenticator


def test_join__into_a_tree_whose_root_has_merged_what_a_lower_node_has_not__succeeds(
    engine: NodeEngine,
) -> None:
    members = group_of(engine, *(b"%d" % each for each in range(8)))
    staying = [member for member in members[1:] if member.leaf != 2]
    members[0].remove([2], staying)
    [again] = members[0].invite(engine, [b"at leaf 2"], staying)
    committer = members[7]
    others = [members[0], again, *(member for member in staying if member is not committer)]
    # Its path has the root, and not the node above leaf 2, which keeps its list.
    committer.update(others)

    [newcomer] = committer.invite(engine, [b"at leaf 8"], others)

    assert newcomer.leaf == 8
    assert newcomer.view.epoch_authenticator == again.view.epoch_authenticator
