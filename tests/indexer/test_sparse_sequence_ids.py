"""Contracts that emit payloads under any sequence ids, with gaps and out of order (ADR 50)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy import update as update_rows

from chainkit.chain import Endpoint, LogFilter
from chainkit.errors import InconsistentAnswer, RefusedRequest, StoreError
from chainkit.exports import files_of
from chainkit.types import BlockHeader, Log
from chainkit_indexer.export import write_export
from chainkit_indexer.finality import FinalityPolicy
from chainkit_indexer.storage import schema
from chainkit_indexer.types import RolledBack
from support.chains.other_chain import (
    OtherChain,
    OtherNode,
    commit,
    compiled_codes,
    sparse_chain,
    update,
)
from support.command_line import Outcome, run

from .test_other_deployments import write_node_keystore

SERVED = {(0, 17): 2, (0, 400): 3, (0, 1000): 1, (0, 1001): 6, (1, 1): 1, (1, 2): 2}
"""Originator and sequence id of what is served after ``bootstrap``, and the payload's seed."""


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OtherChain]:
    with sparse_chain(compiled_codes(), tmp_path_factory.mktemp("sparse")) as chain:
        yield chain


@pytest.fixture
def chain(deployment: OtherChain) -> Iterator[OtherChain]:
    """The deployment as it was before its first payload."""
    before = deployment.mined.snapshot()
    yield deployment
    deployment.mined.revert(before)


def bootstrap(chain: OtherChain) -> None:
    """Emit ids out of order in one block and over blocks, ids twice, and ids that nobody reads."""
    chain.mined.mine(
        [chain.bootstrapped({1000: commit(1), 17: commit(2)}), chain.update(update(1))]
    )
    chain.mined.mine_nothing()
    chain.mined.mine([chain.bootstrapped({400: commit(3), 17: commit(4), 5: b"\xff"})])
    chain.mined.mine([chain.bootstrapped({5: commit(5), 0: commit(7)}), chain.message(commit(6))])
    chain.mined.mine([chain.update(update(2))])


def follow(chain: OtherChain, folder: Path, *options: str, name: str = "node.db") -> Outcome:
    words = {
        "--rpc": chain.endpoint.name,
        "--deployment": str(chain.record_path),
        "--database": str(folder / name),
        **write_node_keystore(folder),
    }
    given = [word for option in words.items() for word in option]
    return run("index", "run", *given, "--until-idle", *options)


def ask(chain: OtherChain, folder: Path, *command: str) -> Outcome:
    where = ("--rpc", chain.endpoint.name, "--deployment", str(chain.record_path))
    return run("index", *command, "--database", str(folder / "node.db"), *where)


def payloads_of(node: OtherNode) -> dict[tuple[int, int], bytes]:
    return {(e.originator_id, e.sequence_id): e.client_envelope for e in node.served()}


def expected_payloads() -> dict[tuple[int, int], bytes]:
    return {key: (update if key[0] else commit)(seed) for key, seed in SERVED.items()}


def test_index_run__ids_in_any_order__serves_the_first_payload_under_each(
    chain: OtherChain, tmp_path: Path
) -> None:
    bootstrap(chain)

    done = follow(chain, tmp_path)

    assert done.code == 0, done.err
    node = OtherNode(chain, tmp_path / "node.db")
    assert payloads_of(node) == expected_payloads()
    assert [(row["sequence_id"], row["reason"]) for row in node.rows(schema.quarantine)] == [
        (5, "not a ClientEnvelope")
    ]
    assert json.loads(node.rows(schema.cursor)[0]["sequence_ids"]) == {"0": 1001, "1": 2}
    # 17 and 5 came twice, and no cursor is below 0.
    assert "3 left out (sequence id repeated or out of range)" in done.err
    status = ask(chain, tmp_path, "status", "--json")
    assert status.code == 0, status.err
    assert (status.content["envelopes"], status.content["quarantined"]) == (
        len(SERVED),
        {"not a ClientEnvelope": 1},
    )
    verified = ask(chain, tmp_path, "verify")
    assert verified.code == 0, verified.out


def test_index__any_page_size__gives_the_same_rows_and_exports(
    chain: OtherChain, tmp_path: Path
) -> None:
    bootstrap(chain)
    contents, tables = [], []
    for page_blocks in (2, 1000):
        policy = FinalityPolicy.parse("0")
        path = tmp_path / f"{page_blocks}.db"
        node = OtherNode(chain, path, page_blocks=page_blocks, finality=policy)
        node.catch_up()
        folder = tmp_path / f"export-{page_blocks}"
        with node.store() as store:
            exported = write_export(store, folder, range_blocks=2)
        tables.append(node.tables())
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        contents.append({str(path.relative_to(folder)): path.read_bytes() for path in files})

    assert tables[0] == tables[1]
    assert contents[0] == contents[1]
    names = files_of(exported.manifest, "envelopes")
    rows = [row for name in names for row in pq.read_table(folder / name).to_pylist()]
    assert sorted((row["originator_id"], int(row["sequence_id"])) for row in rows) == [*SERVED]


def test_step__reorg_below_a_late_id__takes_back_what_came_above_it(
    chain: OtherChain, tmp_path: Path
) -> None:
    chain.mined.mine([chain.bootstrapped({1000: commit(1)}, 1)])
    [dropped, kept] = chain.mined.mine(
        [chain.bootstrapped({17: commit(2)}, 2), chain.bootstrapped({400: commit(3)}, 3)]
    )
    node = OtherNode(chain, tmp_path / "node.db")
    node.catch_up()
    chain.mined.reorg([[kept]])
    chain.mined.mine([chain.bootstrapped({17: commit(4)}, 4)])
    assert dropped != kept

    result = node.step()

    assert isinstance(result, RolledBack)
    assert (result.depth, result.retracted) == (1, 2)
    node.catch_up()
    assert [
        (row["sequence_id"], row["outcome"], row["new_sequence_id"])
        for row in node.rows(schema.journal)
    ] == [(17, "dropped", None), (400, "kept", None)]
    assert payloads_of(node) == {(0, 17): commit(4), (0, 400): commit(3), (0, 1000): commit(1)}
    clean = OtherNode(chain, tmp_path / "clean.db")
    clean.catch_up()
    assert node.tables() == clean.tables()


def test_rewind__above_late_ids__takes_back_their_blocks_alone(
    chain: OtherChain, tmp_path: Path
) -> None:
    bootstrap(chain)
    assert follow(chain, tmp_path).code == 0
    first = chain.mined.height() - 4

    database = ("--database", str(tmp_path / "node.db"))
    rewound = run("index", "rewind", "--to-block", str(first), *database, "--apply")

    assert rewound.code == 0, rewound.err
    node = OtherNode(chain, tmp_path / "node.db")
    assert set(payloads_of(node)) == {(0, 17), (0, 1000), (1, 1)}
    assert follow(chain, tmp_path).code == 0
    assert payloads_of(node) == expected_payloads()


class CutEndpoint(Endpoint):
    """Withholds one log where it is asked for a range; may offer no receipts."""

    withheld = 0
    offers_receipts = True

    def batch(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        if not self.offers_receipts and any("Receipt" in method for method, _ in calls):
            raise RefusedRequest(self.name, "receipts", "none")
        return super().batch(calls)

    def blocks_with_logs(
        self, first: int, last: int, wanted: LogFilter
    ) -> tuple[list[BlockHeader | None], list[Log]]:
        headers, logs = super().blocks_with_logs(first, last, wanted)
        del logs[self.withheld : self.withheld + 1]
        return headers, logs


@pytest.mark.parametrize("offers_receipts", [True, False], ids=["receipts", "filters alone"])
@pytest.mark.parametrize("withheld", [0, 1, 4, 8])
def test_step__any_log_withheld__commits_nothing(
    chain: OtherChain, tmp_path: Path, withheld: int, offers_receipts: bool
) -> None:
    bootstrap(chain)
    policy = FinalityPolicy.parse("0")
    node = OtherNode(chain, tmp_path / "node.db", finality=policy, trusts_one_endpoint=True)
    endpoint = CutEndpoint(chain.endpoint.transport, "cut")
    endpoint.withheld, endpoint.offers_receipts = withheld, offers_receipts
    node.endpoint = endpoint

    with pytest.raises(InconsistentAnswer, match=r"^logs of blocks? \d+.* at cut: expected "):
        node.step()

    assert not any(node.tables())


@pytest.mark.parametrize(
    ("table", "values", "told"),
    [
        (schema.envelope_logs, {"log_index": 9}, "expected log_index 1, got 9"),
        (schema.envelope_logs, {"sequence_id": 18}, "envelope 18 of originator 0: expected none"),
        (schema.envelopes, {"sequence_id": 18}, "envelope 17 of originator 0: expected one"),
    ],
    ids=["another place", "another id of the log", "another id of the envelope"],
)
def test_verify__row_of_a_late_id_is_wrong__names_it(
    chain: OtherChain, tmp_path: Path, table: Any, values: dict[str, Any], told: str
) -> None:
    bootstrap(chain)
    node = OtherNode(chain, tmp_path / "node.db")
    node.catch_up()
    with node.store() as store, store.writing() as connection:
        wrong = update_rows(table).where(table.c.originator_id == 0, table.c.sequence_id == 17)
        connection.execute(wrong.values(values))

    verified = ask(chain, tmp_path, "verify")

    assert verified.code == 1
    assert told in verified.out


def test_run__record_says_counted__names_the_field_that_tells_sparse_ids(
    chain: OtherChain, tmp_path: Path
) -> None:
    bootstrap(chain)
    record = json.loads(chain.record_path.read_text())
    counted = record | {
        "payload_contracts": [
            {name: value for name, value in each.items() if name != "sequence_ids"}
            for each in record["payload_contracts"]
        ]
    }
    path = tmp_path / "record.json"
    path.write_text(json.dumps(counted))
    node = OtherNode(
        OtherChain(chain.mined, chain.endpoint, chain.messages, chain.updates, path),
        tmp_path / "node.db",
    )

    with pytest.raises(InconsistentAnswer, match=r"sequence_ids sparse"):
        node.step()

    OtherNode(chain, tmp_path / "other.db").catch_up()
    node.path = tmp_path / "other.db"
    with pytest.raises(StoreError, match=r"got .* and sparse sequence ids"):
        node.step()
