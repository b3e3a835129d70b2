import json
from pathlib import Path

from sqlalchemy import update

from chainkit_indexer.storage import schema
from support.chains.chain import LocalChain
from support.command_line import Outcome
from support.command_line import run as run_here
from support.indexer.follower import Follower
from support.payloads import commit, identity_update

from .conftest import GROUP

INBOX = b"\x22" * 32


def fill(chain: LocalChain) -> None:
    """Post to both contracts: three payloads, one of them malformed, and empty blocks."""
    chain.publish_message(GROUP, commit(GROUP))
    chain.publish_message(GROUP, b"\xff")
    chain.mine(3)
    chain.publish_identity_update(INBOX, identity_update(INBOX))


def verify(chain: LocalChain, database: str, *options: object) -> Outcome:
    where = ("--rpc", chain.url, "--deployment", chain.record_path, "--database", database)
    return run_here("index", "verify", *where, *options)


def test_verify__real_chain_and_each_database__exits_0_then_1_with_the_difference(
    local_chain: LocalChain, database_url: str
) -> None:
    fill(local_chain)
    with Follower(local_chain.record, database_url) as follower:
        follower.catch_up(local_chain.endpoint)
        clean = verify(local_chain, database_url)
        with follower.store.writing() as connection:
            table = schema.envelope_logs
            wrong = update(table).where(table.c.sequence_id == 3).values(log_index=7)
            connection.execute(wrong)
        text = verify(local_chain, database_url)
        content = verify(local_chain, database_url, "--json")

    assert (clean.code, text.code, content.code) == (0, 1, 1)
    assert "2 envelopes, 1 quarantined: all as on the chain" in clean.out
    head = local_chain.head().number
    first, summary = text.out.splitlines()
    assert first == (
        f"envelope 3 of originator 0: expected log_index 0, got 7 (block {head}, log 0)"
    )
    assert summary.endswith("1 differences")
    assert content.content["difference_count"] == 1
    assert content.content["differences"][0]["got"] == "7"


def test_verify__record_of_another_deployment__exits_2(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    database = str(tmp_path / "node.db")
    fill(local_chain)
    with Follower(local_chain.record, database) as follower:
        follower.catch_up(local_chain.endpoint)
    record = json.loads(local_chain.record_path.read_text())
    contracts = record["contracts"]
    contracts["GroupMessages"]["block"] -= 1
    local_chain.record_path.write_text(json.dumps(record))

    outcome = verify(local_chain, database)

    assert outcome.code == 2
    assert "expected first block" in outcome.err


def test_verify__chain_was_reorganized_since__tells_it_and_agrees_after_following(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    database = str(tmp_path / "node.db")
    fill(local_chain)
    with Follower(local_chain.record, database) as follower:
        follower.catch_up(local_chain.endpoint)
        raw = local_chain.raw_transaction(local_chain.publish_message(GROUP, commit(GROUP, seed=1)))
        follower.catch_up(local_chain.endpoint)
        local_chain.reorg(2, [(raw, 0)])
        local_chain.mine()

        stale = verify(local_chain, database)
        follower.catch_up(local_chain.endpoint)
        fresh = verify(local_chain, database)

    assert (stale.code, fresh.code) == (1, 0)
    assert "expected none, got one" in stale.out
