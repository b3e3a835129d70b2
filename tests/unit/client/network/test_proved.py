"""The nodes against which a client has a proof, by what it has seen and by what it had stored."""

from __future__ import annotations

from pathlib import Path

from chainkit.misbehavior.types import Misbehavior
from chainkit_client.breach import Breach
from chainkit_client.network.proved import ProvedNodes
from chainkit_client.storage.evidence import KeptBreach, keep_breaches, read_breaches
from chainkit_client.storage.store import Store
from support.client.served import KEYS, NODE, NOW_NS, PEER, of_chain

TWICE = Breach(100, Misbehavior.DUPLICATE_SEQUENCE_ID, "two", (NODE.signed(2), NODE.signed(2, 1.0)))
AHEAD = Breach(200, Misbehavior.OUT_OF_ORDER, "ahead", (PEER.signed(2, 10**6),))
OF_CHAIN = Breach(
    200, Misbehavior.BLOCKCHAIN_INCONSISTENCY, "not the chain's", (of_chain(4, server=PEER),)
)
UNNAMED = Breach(200, None, "it hides 7", ())


def kept(folder: Path, *breaches: Breach) -> list[KeptBreach]:
    store = Store.open(folder / "client.db", "password", cost=2)
    with store.writing() as connection:
        keep_breaches(connection, breaches, NOW_NS)
        found = read_breaches(connection)
    store.close()
    return found


def never(node_id: int, envelope: bytes) -> bool:
    return False


def test_judge__proof_and_claims__only_the_proof_excludes_its_node() -> None:
    nodes = ProvedNodes()

    # A time ahead of this clock is a proof for others; this clock may be wrong.
    nodes.judge([TWICE, AHEAD, OF_CHAIN, UNNAMED], KEYS)

    assert (100 in nodes, 200 in nodes) == (True, False)


def test_judge_kept__proof_was_stored_before__excludes_its_node(tmp_path: Path) -> None:
    nodes = ProvedNodes()

    nodes.judge_kept(kept(tmp_path, TWICE, AHEAD, UNNAMED), KEYS, never)

    assert (100 in nodes, 200 in nodes) == (True, False)


def test_judge_kept__payload_of_the_chain__the_chain_decides(tmp_path: Path) -> None:
    asked = []

    def is_false(node_id: int, envelope: bytes) -> bool:
        asked.append((node_id, envelope))
        return len(asked) > 1

    found, nodes = kept(tmp_path, OF_CHAIN), ProvedNodes()
    nodes.judge_kept(found, KEYS, is_false)
    assert 200 not in nodes
    nodes.judge_kept(found, KEYS, is_false)

    assert 200 in nodes
    assert asked == [(200, OF_CHAIN.envelopes[0])] * 2
