"""The snapshot of a node is the same on SQLite and on PostgreSQL."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from chainkit.misbehavior.types import Misbehavior
from chainkit.types import BlockReference
from chainkit_indexer.storage.journal import insert_reorg_between
from chainkit_node.inspection.building import build_status
from chainkit_node.inspection.snapshot import NodeStatus
from chainkit_node.replicating.intake import Intake, Source
from chainkit_node.replicating.own_ids import UngivenIds
from localnet.postgres import Postgres
from support.network.held_logs import Ignored
from support.network.originator import BEGIN_NS, SECOND_NS, Originator
from support.reporting import ACCUSED, KEYS, OTHER, OWN, Host, gap, proof, register, slow

NOW = BEGIN_NS / SECOND_NS + 60.0


def status_of(database: Path | str) -> NodeStatus:
    """Fill a database with something of everything, and look at it."""
    with closing(Host(database)) as host:
        register(host)
        peer = Originator(ACCUSED, KEYS[ACCUSED])
        log = peer.log(24)
        intake = Intake(
            host.store,
            Ignored(),
            lambda: BEGIN_NS,
            lambda *_: None,
            lambda _: None,
            UngivenIds(lambda: None, lambda: True),
        )
        source = Source(ACCUSED, peer.key.public_key, is_direct=True)
        intake.take(log[::2], source)
        intake.take([log[3], peer.signed(1, 1.5)], source)
        host.writer.submit_own_safety(ACCUSED, Misbehavior.OUT_OF_ORDER, gap(5))
        host.submit(proof(7, OTHER), slow(1), proof(6, OWN))
        with host.store.writing() as connection:
            old, ancestor = BlockReference(20, b"\4" * 32), BlockReference(17, b"\3" * 32)
            insert_reorg_between(connection, old, ancestor)
        return build_status(host.store, NOW, None, None)


def test_status__of_both_databases__is_the_same(postgres: Postgres, tmp_path: Path) -> None:
    on_file, on_server = status_of(tmp_path / "node.db"), status_of(postgres.new_database())

    assert on_server == on_file
    [found] = [each for each in on_file.originators if each.originator_id == ACCUSED]
    assert (found.open_gaps, found.repaired_ids, found.disputed_ids) == (10, 1, 1)
    assert len(on_file.reports) == sum(each.count for each in on_file.tallies) == 4
