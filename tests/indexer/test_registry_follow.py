from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chainkit.errors import ReorgTooDeep, StoreError
from chainkit_indexer.registry.follower import (
    RegistryIdle,
    RegistryRolledBack,
)
from chainkit_indexer.storage import schema
from support.chains.chain import Deployment, LocalChain, redeployed
from support.endpoints.fault_proxy import FaultProxy
from support.indexer.registry_node import (
    DEEP,
    NEAR,
    TABLES,
    RegistryNode,
    add_node,
    add_node_at,
    clean_rows,
    key,
    narrow_range,
    new_store,
    set_status,
)
from support.seeds import IS_SOAK

pytest_plugins = ["support.indexer.registry_fixtures"]


@pytest.mark.parametrize("window_blocks", [NEAR, DEEP])
def test_follow__history_of_nodes__equals_the_listing_at_each_block(
    follower: RegistryNode, window_blocks: int
) -> None:
    follower.window_blocks = window_blocks
    chain = follower.chain
    first = add_node(chain, 1)
    add_node(chain, 2)
    chain.mine(3)
    set_status(chain, first, False)
    set_status(chain, first, True)
    set_status(chain, first, False)
    chain.mine(3)

    follower.catch_up()

    (updates,) = follower.rows(schema.registry_updates)
    assert [(row[5], row[8]) for row in updates] == [
        (100, True),
        (200, True),
        (100, False),
        (100, True),
        (100, False),
    ]
    for block in range(chain.record.node_registry.block, chain.head().number + 1):
        assert follower.nodes(block) == follower.listed(block)


def test_follow__another_chain__is_independent_of_the_payloads_chain(
    local_chain: LocalChain, local_deployment: Deployment, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    # An hour later, so that it has another block 0.
    later = ("--timestamp", str(local_chain.endpoint.header(0).timestamp + 3600))
    with redeployed(local_deployment, tmp_path / "other", *later) as other:
        follower = RegistryNode(other, new_store(local_chain, tmp_path / "node.db"))
        add_node(other, 1)
        add_node(local_chain, 2)

        follower.catch_up()

        assert [node.signing_key for node in follower.nodes()] == [key(1)]
        follower.chain = local_chain
        with pytest.raises(StoreError, match="the history of the registry"):
            follower.step()
        follower.store.close()


def test_follow__reorg_takes_an_added_node_back__forgets_it_and_reads_the_other_branch(
    local_chain: LocalChain, database_url: str, tmp_path: Path
) -> None:
    follower = RegistryNode(local_chain, new_store(local_chain, database_url))
    add_node(local_chain, 1)
    local_chain.mine(2)
    add_node(local_chain, 2)
    local_chain.mine()
    follower.catch_up()
    assert len(follower.nodes()) == 2
    local_chain.reorg(3)
    add_node(local_chain, 3)

    result = follower.step()

    assert isinstance(result, RegistryRolledBack)
    assert (result.depth, result.retracted) == (3, 1)
    follower.catch_up()
    assert [node.signing_key for node in follower.nodes()] == [key(1), key(3)]
    assert follower.rows(*TABLES) == clean_rows(follower, tmp_path)
    follower.store.close()


def test_follow__additions_come_again_the_other_way_round__each_key_keeps_its_id(
    follower: RegistryNode,
) -> None:
    chain, added = follower.chain, []
    for number in (1, 2):
        add_node(chain, number)
        block = chain.anvil.request("eth_getBlockByNumber", "latest", False)
        added.append(chain.raw_transaction(bytes.fromhex(block["transactions"][0][2:])))
    follower.catch_up()
    before = {node.node_id: node.signing_key for node in follower.nodes()}
    chain.rewind(2)
    chain.mine()

    # The second one waits for the first: the registry's owner numbers its transactions.
    chain.anvil.request("eth_sendRawTransaction", "0x" + added[1].hex())
    chain.mine()
    follower.catch_up()
    without = {node.node_id: node.signing_key for node in follower.nodes()}
    chain.send_raw(added[0])
    chain.mine()
    follower.catch_up()

    assert (before, without) == ({100: key(1), 200: key(2)}, {})
    assert {node.node_id: node.signing_key for node in follower.nodes()} == before


def test_follow__chain_shorter_than_the_cursor__waits_until_it_contradicts(
    follower: RegistryNode,
) -> None:
    chain = follower.chain
    add_node(chain, 1)
    chain.mine(3)
    follower.catch_up()
    before = follower.rows(*TABLES)
    chain.rewind(2)

    assert isinstance(follower.step(), RegistryIdle)
    assert follower.rows(*TABLES) == before
    add_node(chain, 2)
    assert isinstance(follower.step(), RegistryRolledBack)
    follower.catch_up()
    assert len(follower.nodes()) == 2


def test_follow__reorg_deeper_than_the_window__stops_and_changes_nothing(
    follower: RegistryNode,
) -> None:
    follower.window_blocks = DEEP
    add_node(follower.chain, 1)
    follower.chain.mine(10)
    follower.catch_up()
    before = follower.rows(*TABLES)
    follower.chain.reorg(5)
    follower.chain.mine()

    with pytest.raises(ReorgTooDeep, match="the oldest one known"):
        follower.step()

    assert follower.rows(*TABLES) == before


def test_follow__address_that_is_no_utf8__is_kept_to_the_byte(follower: RegistryNode) -> None:
    url = b"https://\xff\xfe\x1b[31m.example"
    add_node_at(follower.chain, url)

    follower.catch_up()

    assert follower.rows(schema.registry_updates)[0][0][7] == url
    assert follower.nodes() == follower.listed(follower.chain.head().number)


FOLLOW_FOREVER = """
import sys
from pathlib import Path
from chainkit.chain import Endpoint
from chainkit.contracts.deployment import read_deployment_record
from chainkit.contracts.followed import FollowedDeployment
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.registry.follower import RegistryFollower
from chainkit_indexer.storage.store import Store

url, record_path, database, key = sys.argv[1:]
deployment = FollowedDeployment.of(read_deployment_record(Path(record_path)))
store = Store.open(database, Identity.of(deployment, bytes.fromhex(key)))
follower = RegistryFollower(store, deployment.registry, 2)
endpoint = Endpoint.connect(url)
while True:
    print(follower.step(endpoint), flush=True)
"""


def test_follow__killed_in_between__ends_like_a_clean_run(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    for number in range(1, 9):
        add_node(local_chain, number)
        local_chain.mine(3)
    path = tmp_path / "killed.db"
    with FaultProxy(local_chain.url) as proxy:
        proxy.arm(narrow_range(2))
        for kill_after in range(1, 14, 1 if IS_SOAK else 6):
            child = subprocess.Popen(
                [sys.executable, "-c", FOLLOW_FOREVER, proxy.url,
                 str(local_chain.record_path), str(path), key(99).hex()],
                stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            assert child.stdout is not None
            for _ in range(kill_after):
                assert child.stdout.readline()
            time.sleep(0.003 * kill_after)
            child.send_signal(signal.SIGKILL)
            child.wait()
            child.stdout.close()
    follower = RegistryNode(local_chain, new_store(local_chain, path), DEEP)
    follower.catch_up()

    assert follower.rows(*TABLES) == clean_rows(follower, tmp_path)
    follower.store.close()
