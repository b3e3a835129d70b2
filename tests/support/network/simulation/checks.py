"""Conditions that must hold at the end of each story."""

from __future__ import annotations

from collections.abc import Mapping

from chainkit.misbehavior.evidence import Weight
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.originated_envelope import parse_originated, recover_originator
from support.network.simulation.lies import EXPECTED, EXPECTED_OF_CHAIN, ChainLie, Lie
from support.network.simulation.story import NODE_IDS, Story

EXPECTED_REPORTS: Mapping[Lie | ChainLie, tuple[Misbehavior, Weight]] = {
    **EXPECTED,
    **EXPECTED_OF_CHAIN,
}

EXCUSED = (Misbehavior.UNRESPONSIVE_NODE, Misbehavior.SLOW_NODE)


def check(story: Story) -> None:
    """Fail unless all of them hold, whether a node lied or not."""
    _check_same(story)
    _check_signed(story)
    _check_streams(story)
    _check_nothing_lost(story)
    _check_no_honest_node_accused(story)


def is_told(story: Story, lie: Lie | ChainLie) -> bool:
    """Tell whether the lie has misled an honest node; not every story gives it the chance."""
    liar = story.world.nodes[NODE_IDS[-1]].liar
    assert liar is not None
    return liar.is_told or lie in (Lie.STALLS, Lie.DRIPS, Lie.FAILS)


def check_reported(story: Story, lie: Lie | ChainLie) -> None:
    """An honest node has reported the lie as what it is."""
    found = {
        (each.misbehavior, each.weight)
        for each in story.accusations
        if each.node_id == NODE_IDS[-1]
    }
    assert EXPECTED_REPORTS[lie] in found, "the lie is not reported as what it is"


def _check_same(story: Story) -> None:
    """Honest nodes hold the same bytes under each id that its originator signed once."""
    disputed = set[tuple[int, int]]().union(*(node.disputed for node in story.honest))
    for node_id in NODE_IDS:
        logs = [
            [
                envelope
                for sequence_id, envelope in zip(
                    node.log(node_id).ids(), node.log(node_id).envelopes(), strict=True
                )
                if (node_id, sequence_id) not in disputed
            ]
            for node in story.honest
        ]
        assert logs[0] or story.world.nodes[node_id].liar, f"node {node_id} published nothing"
        assert all(log == logs[0] for log in logs), f"logs of {node_id} differ"


def _check_signed(story: Story) -> None:
    """Each envelope that an honest node holds has its originator's signature."""
    keys = story.world.keys()
    for node in story.honest:
        for node_id, log in node.logs.items():
            key = keys[node_id]
            for envelope in log.envelopes():
                assert recover_originator(parse_originated(envelope)) == key


def _check_nothing_lost(story: Story) -> None:
    """Each honest node holds all that an honest one acknowledged, and gets what is new at once."""
    assert story.is_live, "messages do not arrive once all is mended"
    for node in story.honest:
        held = {each for log in node.logs.values() for each in log.envelopes()}
        assert story.acknowledged <= held, "an acknowledged message is lost"


def _check_streams(story: Story) -> None:
    """Each honest node has the streams of all others open, also of those that were away."""
    assert story.silent == set(), f"streams are not open: {sorted(story.silent)[0]}"


def _check_no_honest_node_accused(story: Story) -> None:
    """No honest node is reported but for being slow or silent, which anybody may be."""
    honest = {node.node_id for node in story.honest}
    accused = [
        each.misbehavior.name
        for each in story.accusations
        if each.node_id in honest and each.misbehavior not in EXCUSED
    ]
    assert accused == [], f"an honest node is reported: {accused[0]}"
    refuted = [each.misbehavior.name for each in story.accusations if each.weight is Weight.REFUTED]
    assert refuted == [], f"a report does not show what it says: {refuted[0]}"
    faults = [each for node in story.honest for each in node.faults]
    assert faults == [], faults[0]
