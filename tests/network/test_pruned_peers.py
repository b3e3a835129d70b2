"""Real nodes, one of which prunes: the others find nothing left out, and nobody is accused."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from sqlalchemy import delete, select

from chainkit.misbehavior.signed import take_apart
from chainkit.misbehavior.types import Misbehavior
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.storage.schema import envelopes
from chainkit_indexer.storage.store import Store
from chainkit_node.storage.learned_ids import LEARNED
from chainkit_node.storage.payer_reports import StoredPayerReport, insert_report
from support.chains.chain import Deployment
from support.command_line import run
from support.network.originator import BEGIN_NS, SECOND_NS, Originator
from support.network.real_nodes import RealNetwork, RealNode, real_network, until

COUNT = 150
"""Two leaves of digests, and the beginning of a third."""
DAY_NS = 86_400 * SECOND_NS


@pytest.fixture(scope="module")
def network(
    local_deployment: Deployment, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealNetwork]:
    with real_network(local_deployment, tmp_path_factory.mktemp("pruned")) as network:
        for _ in range(3):
            network.add()
        for node in network.nodes:
            node.listens()
        for node in network.nodes:
            node.originates()
        yield network


def seed(nodes: list[RealNode], owner: RealNode) -> None:
    """Let all nodes hold a log of one of them that has expired, but for every seventh envelope."""
    signer = Originator(owner.node_id, owner.key)
    begin_ns = time.time_ns() - 60 * DAY_NS
    expiry = begin_ns // SECOND_NS + 30 * 86_400
    rows = []
    for each in range(1, COUNT + 1):
        seconds = (begin_ns - BEGIN_NS) // SECOND_NS + each
        data = signer.signed(each, seconds, expiry=expiry if each % 7 else None)
        received = signer.received(data)
        rows.append(
            StoredEnvelope(
                owner.node_id,
                each,
                received.originator_ns,
                received.topic,
                received.expires_at,
                received.envelope,
            )
        )
    for node in nodes:
        with closing(Store.open_beside(node.database)) as store, store.writing() as connection:
            store.insert_envelopes(connection, rows)


def held_ids(node: RealNode, originator: RealNode) -> set[int]:
    table = envelopes.c
    with closing(Store.open_existing(node.database)) as store, store.reading() as connection:
        query = select(table.sequence_id).where(table.originator_id == originator.node_id)
        return set(connection.scalars(query))


def learned_ids(node: RealNode, originator: RealNode) -> set[int]:
    with closing(Store.open_existing(node.database)) as store, store.reading() as connection:
        runs = LEARNED.runs(connection, originator.node_id, range(1, COUNT + 1))
        return {each for run in runs for each in run}


def expired_count(node: RealNode, originator: RealNode) -> int:
    status = run("node", "status", "--database", node.database, "--json").content
    [found] = [
        each["expired_ids"]
        for each in status["originators"]
        if each["originator_id"] == originator.node_id
    ]
    return int(found)


def prune(node: RealNode, *words: str) -> int:
    done = run("node", "prune", "--database", node.database, "--json", *words)
    assert done.code == 0, done.err
    return int(done.content["envelopes"])


def accused(node: RealNode) -> list[Misbehavior]:
    """Return which nodes it reports for more than slow answers: the machine may be busy."""
    reports = [take_apart(each).report.misbehavior for each in node.api.query_reports()]
    return [each for each in reports if not each.is_liveness]


@pytest.mark.conforms("N34", "T8")
def test_prune__one_of_three_nodes__others_find_nothing_left_out(
    network: RealNetwork,
) -> None:
    owner, *others = nodes = network.nodes
    seed(nodes, owner)
    expired = {each for each in range(1, 129) if each % 7}
    with closing(Store.open_beside(owner.database)) as store, store.writing() as connection:
        report = StoredPayerReport(owner.node_id, 1, COUNT, b"", b"", b"", 1, 1)
        insert_report(connection, report)
    # The node stores the digests of the two leaves between two steps.
    until(lambda: prune(owner, "--dry-run") == len(expired))

    assert prune(owner) == len(expired)
    [envelope] = owner.publish()

    assert expired.isdisjoint(held_ids(owner, owner))
    until(lambda: all(envelope in each.holds(owner.node_id) for each in others))
    assert all(expired <= held_ids(each, owner) for each in others)
    # A node that has just begun to answer is compared first.
    owner.kill()
    owner.restart()
    owner.originates()
    until(lambda: all(each.comparisons().get(owner.node_id, "") is None for each in others))
    # A node that was away never gets what has expired, and learns why.
    late = network.add()
    late.listens()
    until(lambda: envelope in late.holds(owner.node_id))
    assert [each.holds(owner.node_id) for each in (*others, late)] == [
        owner.holds(owner.node_id)
    ] * 3
    got = held_ids(late, owner)
    until(lambda: learned_ids(late, owner) | got == set(range(1, COUNT + 1)) | got)
    assert expired <= learned_ids(late, owner)
    assert learned_ids(late, owner).isdisjoint(got)
    assert expired_count(late, owner) == len(learned_ids(late, owner))
    for node in (*nodes, late):
        assert accused(node) == []
        assert run("node", "verify", "--database", node.database).code == 0
        assert "envelopes_omitted" not in node.attention()
    for node in others:
        assert node.events("log_repaired") == 0


def test_delete__before_its_time__is_named_by_a_node_that_was_away(network: RealNetwork) -> None:
    owner, *others = network.nodes
    for each in others:
        # They would bring the envelope back to the owner, and to the node that was away.
        each.kill()
    before, gone, after = owner.publish(3)
    table = envelopes.c
    with closing(Store.open_beside(owner.database)) as store, store.writing() as connection:
        # As if it had expired: no command does so.
        is_it = table.originator_id == owner.node_id, table.envelope == gone
        assert connection.execute(delete(envelopes).where(*is_it)).rowcount == 1

    newcomer = network.add()
    newcomer.listens()

    until(lambda: Misbehavior.OUT_OF_ORDER in accused(newcomer))
    [report] = [
        found
        for found in (take_apart(each).report for each in newcomer.api.query_reports())
        if found.misbehavior is Misbehavior.OUT_OF_ORDER
    ]
    assert report.node_id == owner.node_id
    assert set(report.envelopes) == {before, after}, "what the owner signed shows the gap"
