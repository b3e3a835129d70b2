"""``client doctor`` on a client's database: what it says of the evidence that is kept."""

from __future__ import annotations

from pathlib import Path

from chainkit_client.breach import Breach
from chainkit_client.cli.doctor import Looked, look_at_evidence
from chainkit_client.storage.evidence import keep_breaches, keep_unknown
from chainkit_client.storage.store import Store


def test_doctor__broken_rules_and_unknown_payloads__are_counted_apart(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "client.db", "password", cost=2)
    found = [look_at_evidence(store).found]
    with store.writing() as connection:
        keep_unknown(connection, 300, [b"one", b"two"], 5)
    found.append(look_at_evidence(store).found)
    with store.writing() as connection:
        keep_breaches(connection, [Breach(200, None, "it hides 7", ())], 5)
    looked = look_at_evidence(store)
    store.close()

    unknown = "; payloads that the chain does not have: 2 of node 300"
    assert found == ["no node broke a rule", f"no node broke a rule{unknown}"]
    assert looked == Looked("evidence", True, f"1 broken rules kept{unknown}")
