"""The indexer on geth: proofs of receipts, reorgs, and final blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chainkit.chain.transactions import estimate_gas
from chainkit.contracts.parameters import read_parameters
from chainkit_indexer.finality import FinalityPolicy
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.provenance import read_runs
from chainkit_indexer.types import Provenance
from localnet.deployment import PARAMETERS
from scripts._steps import deployment_steps
from support.chains.chain import dev_address
from support.indexer.follower import Follower
from support.indexer.honest_rows import Tables, chain_tables
from tools.gas_study.deployment import DEPLOYMENT_GAS

from .conftest import MESSAGES, GethChain

DEEP = FinalityPolicy(blocks=10_000)


def clean_run(chain: GethChain, location: Path) -> Tables:
    with Follower(chain.record, location, finality=DEEP) as follower:
        follower.catch_up(chain.endpoint)
        return chain_tables(follower.store)


def test_follow__deployment_and_traffic__one_endpoint_proves_each_block(
    chain: GethChain, tmp_path: Path
) -> None:
    with Follower(chain.record, tmp_path / "node.db") as follower:
        follower.catch_up(chain.endpoint)
        with follower.store.reading() as connection:
            runs = read_runs(connection)
            envelopes = connection.execute(schema.chain_envelopes.select()).all()

    assert len(envelopes) >= MESSAGES
    assert {run.provenance for run in runs} == {Provenance.RECEIPTS}


def test_deploy__gas_of_each_contract__is_as_documented_and_below_its_estimate(
    chain: GethChain,
) -> None:
    record, head = chain.record, chain.endpoint.head().reference
    deployed = {each.name: each for each in record.contracts}
    deployed |= {
        f"{each.name}'s implementation": each.implementation
        for each in record.sequenced_logs
        if each.implementation is not None
    }
    used = {
        name: int(
            chain.endpoint.request("eth_getTransactionReceipt", "0x" + each.transaction.hex())[
                "gasUsed"
            ],
            16,
        )
        for name, each in deployed.items()
    }
    estimated = {
        step.name: estimate_gas(chain.endpoint, None, step.trial_code, dev_address(0), head)
        for step in deployment_steps(dev_address(0), 0, read_parameters(PARAMETERS))
    }

    assert used == DEPLOYMENT_GAS[chain.geth.fork]
    assert all(gas <= estimated[name] for name, gas in used.items())
    assert sum(estimated.values()) < 1.15 * sum(used.values())


def test_follow__chain_set_back_and_built_again__is_the_new_chain(
    chain: GethChain, tmp_path: Path
) -> None:
    with Follower(chain.record, tmp_path / "node.db", finality=DEEP) as follower:
        chain.post(b"to be set back")
        follower.catch_up(chain.endpoint)
        head = chain.endpoint.head()

        chain.endpoint.request("debug_setHead", hex(head.number - 1))
        assert chain.endpoint.head().number == head.number - 1
        follower.step(chain.endpoint)
        for _ in range(5):
            chain.geth.mine(fee_recipient=1)
        follower.catch_up(chain.endpoint)
        tables = chain_tables(follower.store)

    assert chain.endpoint.header(head.number).hash != head.hash
    assert tables == clean_run(chain, tmp_path / "clean.db")


def test_follow__another_branch_is_chosen__removed_logs_are_taken_back(
    chain: GethChain, tmp_path: Path
) -> None:
    with Follower(chain.record, tmp_path / "node.db", finality=DEEP) as follower:
        fork = chain.geth.mine()
        fork_number = chain.endpoint.head().number
        watched = {"address": "0x" + chain.record.group_messages.address.hex()}
        filter_id = chain.endpoint.request("eth_newFilter", watched)
        chain.post(b"to be removed")
        chain.geth.mine()
        follower.catch_up(chain.endpoint)
        head = chain.endpoint.head()
        tip = fork
        for _ in range(head.number - fork_number + 1):
            tip = chain.geth.mine(tip, fee_recipient=2)
        told: list[Any] = chain.endpoint.request("eth_getFilterChanges", filter_id)
        follower.catch_up(chain.endpoint)
        tables = chain_tables(follower.store)

    assert any(log["removed"] for log in told)
    assert chain.endpoint.header(head.number).hash != head.hash
    assert tables == clean_run(chain, tmp_path / "clean.db")


def test_follow__finality_by_the_chains_tag__follows_the_tag(
    chain: GethChain, tmp_path: Path
) -> None:
    policy = FinalityPolicy(blocks=None, tag="finalized")
    with Follower(chain.record, tmp_path / "node.db", finality=policy) as follower:
        follower.catch_up(chain.endpoint)
        number = chain.endpoint.head().number
        chain.geth.finalize(chain.geth.hash_of(number - 2))
        chain.geth.mine()
        follower.catch_up(chain.endpoint)

        assert chain.endpoint.header("finalized").number == number - 2
        assert follower.store.final_block() == number - 2
