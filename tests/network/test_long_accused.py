"""A node learns from another what it signed itself, while nobody tells it anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainkit.misbehavior.report import safety_report
from chainkit.misbehavior.types import Misbehavior
from support.chains.chain import Deployment
from support.network.originator import BEGIN_NS, Originator
from support.network.real_nodes import real_network, until
from support.seeds import only_in_soak

SECONDS = 180.0

pytestmark = [only_in_soak, pytest.mark.timeout(900)]


def test_node__another_one_hosts_a_proof_and_claims_about_it__shows_the_proof(
    local_deployment: Deployment, tmp_path: Path
) -> None:
    with real_network(local_deployment, tmp_path) as network:
        accused, claimed, host = (network.add() for _ in range(3))
        for each in network.nodes:
            each.listens()
        for each in network.nodes:
            each.originates()
        # The same key in other hands: this process signs nothing twice.
        twin, other = (Originator(each.node_id, each.key) for each in (accused, claimed))
        double = [twin.signed(7, 1.0), twin.signed(7, 2.0)]
        gap = [other.signed(9, 2.0), other.signed(7, 1.0)]

        host.api.submit_report(
            safety_report(
                accused.node_id, Misbehavior.DUPLICATE_SEQUENCE_ID, double, BEGIN_NS, False
            )
        )
        host.api.submit_report(
            safety_report(claimed.node_id, Misbehavior.OUT_OF_ORDER, gap, BEGIN_NS, False)
        )

        until(lambda: "accused" in accused.attention(), SECONDS)
        until(lambda: any(each["node_id"] == host.node_id for each in claimed.hosts()), SECONDS)
        assert accused.events("accused_elsewhere") == 1
        # Slow answers on a busy machine are claims, too.
        assert {each["proved"] for each in claimed.hosts()} == {0}
        assert "accused" not in claimed.attention()
