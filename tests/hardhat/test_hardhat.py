"""The indexer on hardhat, which has no receipts by block: single ones prove the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chainkit.chain import Endpoint, EndpointPool
from chainkit.chain.block_proof import read_proved_block
from chainkit.errors import MethodRefused
from chainkit_indexer.finality import FinalityPolicy
from chainkit_indexer.follow.first_start import check_can_prove
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.provenance import read_runs
from chainkit_indexer.types import Provenance
from support.chains.deployed_chain import DeployedChain
from support.chains.hardhat import Hardhat, program
from support.command_line import run
from support.exports import read_manifest
from support.indexer.follower import Follower
from support.indexer.honest_rows import Tables, chain_tables

MESSAGES = 30
DEEP = FinalityPolicy(blocks=10_000)


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedChain]:
    if program() is None:
        pytest.skip("no hardhat: `make test-chains` installs it")
    folder = tmp_path_factory.mktemp("hardhat")
    with Hardhat(folder) as hardhat:
        made = DeployedChain.of(hardhat, folder)
        made.publish(MESSAGES, seed=7)
        yield made


def rows_of(chain: DeployedChain, location: Path) -> Tables:
    with Follower(chain.record, location, finality=DEEP) as follower:
        follower.catch_up(chain.endpoint)
        return chain_tables(follower.store)


def test_follow__deployment_and_traffic__one_endpoint_proves_each_block(
    chain: DeployedChain, tmp_path: Path
) -> None:
    endpoint = Endpoint.connect(chain.url)
    with pytest.raises(MethodRefused, match="not supported"):
        endpoint.block_receipts([0])

    check_can_prove(EndpointPool([endpoint]), trusts_one_endpoint=False)
    with Follower(chain.record, tmp_path / "node.db") as follower:
        follower.catch_up(endpoint)
        with follower.store.reading() as connection:
            runs = read_runs(connection)
            envelopes = connection.execute(schema.chain_envelopes.select()).all()

    assert len(envelopes) >= MESSAGES
    assert {run.provenance for run in runs} == {Provenance.RECEIPTS}


def test_follow__blocks_taken_back_and_others_mined__is_the_new_chain(
    chain: DeployedChain, tmp_path: Path
) -> None:
    hardhat: Hardhat = chain.client
    with Follower(chain.record, tmp_path / "node.db", finality=DEEP) as follower:
        before = hardhat.snapshot()
        for payload in (b"to be taken back", b"likewise"):
            chain.send(payload)
        follower.catch_up(chain.endpoint)
        head = chain.endpoint.head()

        hardhat.take_back(before)
        follower.step(chain.endpoint)
        for payload in (b"other", b"blocks", b"instead"):
            chain.send(payload)
        follower.catch_up(chain.endpoint)
        tables = chain_tables(follower.store)

    assert chain.endpoint.header(head.number).hash != head.hash
    assert tables == rows_of(chain, tmp_path / "clean.db")


def test_read_block__with_a_payload__is_proved(chain: DeployedChain) -> None:
    chain.send(b"proved")
    head = chain.endpoint.head()

    block = read_proved_block(chain.endpoint, head, chain.record.chain_id)

    assert len(block.receipts) == len(block.transactions) == 1


def test_export_chain__whole__is_written(chain: DeployedChain, tmp_path: Path) -> None:
    where = ("--rpc", chain.url, "--deployment", str(chain.record_path))

    outcome = run("audit", "export-chain", *where, "--out", str(tmp_path / "chain"))

    assert outcome.code == 0, outcome.err
    assert read_manifest(tmp_path / "chain", "chain").to_block > chain.record.first_block
