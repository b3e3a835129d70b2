"""Contracts that count for themselves, index their events' arguments or name groups by 16 bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from eth_account import Account

from chainkit.chain import Endpoint, LogFilter
from chainkit.errors import InconsistentAnswer, RefusedRequest, StoreError
from chainkit.exports import files_of
from chainkit.protocol.envelope import recover_node_key
from chainkit.types import BlockHeader, Log
from chainkit_indexer.export import write_export
from chainkit_indexer.finality import FinalityPolicy
from chainkit_indexer.storage import schema
from chainkit_indexer.types import RolledBack
from support.chains.other_chain import (
    GROUP,
    INBOX,
    KEY,
    UPDATES,
    OtherNode,
    commit,
    compiled_codes,
    other_chain,
    publish_some,
    update,
)

from .conftest import PASSWORD, chainkit


@pytest.fixture(scope="module")
def creation_codes() -> Mapping[str, bytes]:
    return compiled_codes()


FORMS = pytest.mark.parametrize(
    ("messages", "with_counters"),
    [
        ("CountingGroupMessages", True),
        ("CountingGroupMessages", False),
        ("SilentGroupMessages", True),
    ],
    ids=["counters told", "counters null", "unindexed, one counter"],
)


@FORMS
def test_step__a_counter_per_contract__serves_each_under_its_originator(
    creation_codes: Mapping[str, bytes], tmp_path: Path, messages: str, with_counters: bool
) -> None:
    with other_chain(creation_codes, tmp_path, messages, with_counters) as chain:
        node = OtherNode(chain, tmp_path / "node.db")
        publish_some(chain)

        node.catch_up()

        served, rows = node.served(), node.rows(schema.envelopes)
        places = [(envelope.originator_id, envelope.sequence_id) for envelope in served]
        assert places == [(0, 1), (0, 4), (1, 1), (1, 3), (1, 5)]
        assert [(row["originator_id"], row["sequence_id"]) for row in rows] == places
        assert [envelope.client_envelope for envelope in served] == [
            commit(1),
            commit(3),
            update(1),
            update(2),
            update(4),
        ]
        assert {row["topic"] for row in rows[:2]} == {b"\0" + GROUP}
        assert {row["topic"] for row in rows[2:]} == {b"\2" + INBOX}
        assert {recover_node_key(envelope) for envelope in served} == {KEY.public_key}
        assert [
            (row["originator_id"], row["sequence_id"], row["reason"])
            for row in node.rows(schema.quarantine)
        ] == [
            (0, 2, "target topic does not match"),
            (0, 3, "no aad"),
            (1, 2, "not a ClientEnvelope"),
            (1, 4, "target originator is not the contract's"),
        ]
        [cursor] = node.rows(schema.cursor)
        assert json.loads(cursor["sequence_ids"]) == {"0": 4, "1": 5}


@pytest.mark.parametrize("finality", ["0", "256"])
def test_index__any_page_size_and_finality__gives_the_same_rows(
    creation_codes: Mapping[str, bytes], tmp_path: Path, finality: str
) -> None:
    with other_chain(creation_codes, tmp_path) as chain:
        publish_some(chain)
        policy = FinalityPolicy.parse(finality)
        nodes = [
            OtherNode(
                chain, tmp_path / f"{page_blocks}.db", page_blocks=page_blocks, finality=policy
            )
            for page_blocks in (1, 3, 1000)
        ]
        for node in nodes:
            node.catch_up()

        assert len(nodes[0].rows(schema.envelopes)) == 5
        assert nodes[0].tables() == nodes[1].tables() == nodes[2].tables()


@FORMS
def test_step__reorg__takes_each_originator_back_to_its_own_number(
    creation_codes: Mapping[str, bytes], tmp_path: Path, messages: str, with_counters: bool
) -> None:
    with other_chain(creation_codes, tmp_path, messages, with_counters) as chain:
        node = OtherNode(chain, tmp_path / "node.db")
        chain.mined.mine([chain.message(commit(1), 1), chain.update(update(1), 1)])
        [dropped, moved] = chain.mined.mine(
            [chain.message(commit(2), 2), chain.message(commit(3), 3)]
        )
        [kept] = chain.mined.mine([chain.update(update(2), 4)])
        node.catch_up()
        chain.mined.reorg([[moved], [kept]])
        chain.mined.mine([chain.update(update(3), 1)])
        assert dropped != moved

        result = node.step()

        assert isinstance(result, RolledBack)
        assert (result.depth, result.retracted) == (2, 3)
        node.catch_up()
        assert [
            (row["originator_id"], row["sequence_id"], row["outcome"], row["new_sequence_id"])
            for row in node.rows(schema.journal)
        ] == [(0, 2, "dropped", None), (0, 3, "moved", 2), (1, 2, "kept", None)]
        clean = OtherNode(chain, tmp_path / "clean.db")
        clean.catch_up()
        assert node.tables() == clean.tables()
        assert [(e.originator_id, e.sequence_id) for e in node.served()] == [
            (0, 1),
            (0, 2),
            (1, 1),
            (1, 2),
            (1, 3),
        ]


class CutEndpoint(Endpoint):
    """Withholds the logs of one contract where it is asked for a range, as a lagging index does."""

    withheld = b""

    def blocks_with_logs(
        self, first: int, last: int, wanted: LogFilter
    ) -> tuple[list[BlockHeader | None], list[Log]]:
        headers, logs = super().blocks_with_logs(first, last, wanted)
        return headers, [log for log in logs if log.address != self.withheld]


@pytest.mark.parametrize("number", [0, 1], ids=["messages", "updates"])
@FORMS
def test_step__logs_of_one_contract_withheld__commits_nothing(
    creation_codes: Mapping[str, bytes],
    tmp_path: Path,
    messages: str,
    with_counters: bool,
    number: int,
) -> None:
    with other_chain(creation_codes, tmp_path, messages, with_counters) as chain:
        publish_some(chain)
        node = OtherNode(chain, tmp_path / "node.db", finality=FinalityPolicy.parse("0"))
        endpoint = CutEndpoint(chain.endpoint.transport, "cut")
        endpoint.withheld = node.deployment.contracts[number].address
        node.endpoint = endpoint

        with pytest.raises(InconsistentAnswer, match=r"^logs (at|of block \d+ at) cut: expected "):
            node.step()

        assert not any(node.tables())
        node.endpoint = chain.endpoint
        node.catch_up()
        assert len(node.served()) == 5


def test_step__endpoint_without_old_state__follows_by_the_bloom_filters(
    creation_codes: Mapping[str, bytes], tmp_path: Path
) -> None:
    with other_chain(creation_codes, tmp_path, kept_states=2) as chain:
        publish_some(chain)
        for _ in range(60):
            chain.mined.mine_nothing()
        node = OtherNode(
            chain, tmp_path / "node.db", page_blocks=4, finality=FinalityPolicy.parse("0")
        )
        with pytest.raises(RefusedRequest, match="BlockOutOfRangeError"):
            old = chain.endpoint.header(5).reference
            chain.endpoint.call(node.deployment.contracts[0].address, b"\0" * 4, old)

        node.catch_up()

        [cursor] = node.rows(schema.cursor)
        assert json.loads(cursor["sequence_ids"]) == {"0": 4, "1": 5}
        assert len(node.served()) == 5


def test_step__record_that_changed_its_form__is_another_database(
    creation_codes: Mapping[str, bytes], tmp_path: Path
) -> None:
    with other_chain(creation_codes, tmp_path) as chain:
        publish_some(chain)
        node = OtherNode(chain, tmp_path / "node.db")
        node.catch_up()
        contract, *others = node.deployment.contracts
        node.deployment = replace(
            node.deployment, contracts=(replace(contract, originator_id=7), *others)
        )

        with pytest.raises(StoreError, match="of originator 7"):
            node.step()


def test_export__two_databases__are_the_same_files_with_each_originator(
    creation_codes: Mapping[str, bytes], tmp_path: Path
) -> None:
    with other_chain(creation_codes, tmp_path) as chain:
        publish_some(chain)
        contents = []
        for page_blocks in (1, 1000):
            policy = FinalityPolicy.parse("0")
            node = OtherNode(
                chain, tmp_path / f"{page_blocks}.db", page_blocks=page_blocks, finality=policy
            )
            node.catch_up()
            folder = tmp_path / f"export-{page_blocks}"
            with node.store() as store:
                exported = write_export(store, folder, range_blocks=4)
            files = sorted(path for path in folder.rglob("*") if path.is_file())
            contents.append({str(path.relative_to(folder)): path.read_bytes() for path in files})

        assert contents[0] == contents[1]
        names = files_of(exported.manifest, "envelopes")
        rows = [row for name in names for row in pq.read_table(folder / name).to_pylist()]
        places = {(row["originator_id"], int(row["sequence_id"])): row["topic"] for row in rows}
        assert places == {
            (0, 1): b"\0" + GROUP,
            (0, 4): b"\0" + GROUP,
            (1, 1): b"\2" + INBOX,
            (1, 3): b"\2" + INBOX,
            (1, 5): b"\2" + INBOX,
        }
        assert set(exported.manifest.contracts) == {"CountingGroupMessages", UPDATES}


def write_node_keystore(folder: Path) -> dict[str, str]:
    keystore, password_file = folder / "node.json", folder / "password.txt"
    keystore.write_text(json.dumps(Account.encrypt(b"\1" * 32, PASSWORD, iterations=2)))
    password_file.write_text(PASSWORD + "\n")
    return {"--keystore": str(keystore), "--password-file": str(password_file)}


def test_run__record_of_such_contracts__follows_what_it_says_or_tells_what_is_wrong(
    creation_codes: Mapping[str, bytes], tmp_path: Path
) -> None:
    with other_chain(creation_codes, tmp_path) as chain:
        publish_some(chain)
        node = OtherNode(chain, tmp_path / "node.db")
        options = {
            "--rpc": chain.endpoint.name,
            "--deployment": str(chain.record_path),
            "--database": str(node.path),
            **write_node_keystore(tmp_path),
        }
        words = [word for option in options.items() for word in option]

        done = chainkit("index", "run", *words, "--until-idle")

        assert done.returncode == 0, done.stderr
        assert [(e.originator_id, e.sequence_id) for e in node.served()] == [
            (0, 1),
            (0, 4),
            (1, 1),
            (1, 3),
            (1, 5),
        ]
        record = json.loads(chain.record_path.read_text())
        record["payload_contracts"][1]["originator_id"] = 0
        del record["counters"]["1"]
        chain.record_path.write_text(json.dumps(record))
        refused = chainkit("index", "run", *words, "--until-idle")
        assert refused.returncode == 2
        assert (
            "expected a sequence that all 2 contracts of this originator draw from, got the "
            in (refused.stderr)
        )
