from __future__ import annotations

import time
from pathlib import Path

from chainkit.errors import StoreError
from chainkit_indexer.storage import schema
from support.chains.chain import LocalChain
from support.command_line import run
from support.indexer.registry_node import (
    RegistryNode,
    add_node,
    add_node_at,
    key,
    new_store,
    set_status,
)

from .conftest import Node as IndexerNode
from .conftest import publish

pytest_plugins = ["support.indexer.registry_fixtures"]


def test_nodes__at_a_block_and_through_time__shows_what_the_chain_says(
    follower: RegistryNode, tmp_path: Path
) -> None:
    chain = follower.chain
    first = add_node(chain, 1)
    added = chain.head()
    set_status(chain, first, False)
    disabled = chain.head()
    follower.catch_up()
    database = tmp_path / "node.db"

    now = run("index", "nodes", "--database", database)
    then = run("index", "nodes", "--database", database, "--block", added.number, "--json")
    history = run("index", "nodes", "--database", database, "--history", "--json")
    text = run("index", "nodes", "--database", database, "--history").out

    shown = f"0x{key(1).hex()[:8]}…  https://1.example.org"
    assert now.out.splitlines() == [
        f"registry 0x{chain.record.node_registry.address.hex()} of chain 31337",
        f"block    {disabled.reference}, nodes: 1",
        f"   100  disabled  {shown}",
    ]
    assert then.content["block_number"] == added.number
    assert [(node["node_id"], node["status"]) for node in then.content["nodes"]] == [
        (100, "enabled")
    ]
    assert [
        (update["block_hash"], update["status"], update["timestamp"])
        for update in history.content["updates"]
    ] == [
        (f"0x{added.hash.hex()}", "enabled", added.timestamp),
        (f"0x{disabled.hash.hex()}", "disabled", disabled.timestamp),
    ]
    assert f"{added.number}.2     100  enabled   {shown}" in text
    too_far = run("index", "nodes", "--database", database, "--block", disabled.number + 1)
    assert (too_far.code, too_far.out) == (2, "")
    assert f"got blocks up to {disabled.number}" in too_far.err


def test_nodes__stranger_s_address__cannot_write_to_the_screen(
    follower: RegistryNode, tmp_path: Path
) -> None:
    add_node_at(follower.chain, b"https://\xff\x1b[31m.example")
    follower.catch_up()

    shown = run("index", "nodes", "--database", tmp_path / "node.db")
    content = run("index", "nodes", "--database", tmp_path / "node.db", "--json").content

    assert shown.out.endswith("https://\\udcff\\x1b[31m.example\n")
    assert content["nodes"][0]["http_address"] == "https://\udcff\x1b[31m.example"


def test_nodes__registry_that_was_never_followed__is_said(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    new_store(local_chain, tmp_path / "node.db").close()

    outcome = run("index", "nodes", "--database", tmp_path / "node.db")

    assert (outcome.code, outcome.out) == (2, "")
    assert "a registry's history, got none" in outcome.err


def test_run__beside_the_payloads__follows_the_registry_and_keeps_what_a_replay_needs(
    node: IndexerNode,
) -> None:
    add_node(node.chain, 1)
    publish(node.chain, 2)
    process = node.start()
    try:
        deadline = time.monotonic() + 60
        while not (found := background_work_done(node))[0] or found[1] < 2:
            assert time.monotonic() < deadline, found
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.1)
    finally:
        process.terminate()
        error_output = process.communicate()[1]

    assert process.returncode == 0, error_output
    assert "registry: 1 update up to block" in error_output
    (kept,) = run("index", "nodes", "--database", node.database, "--json").content["nodes"]
    assert kept["signing_key"] == f"0x{key(1).hex()}"


def background_work_done(node: IndexerNode) -> tuple[int, int]:
    try:
        return len(node.rows(schema.registry_updates)), len(node.rows(schema.raw_transactions))
    except StoreError:
        return 0, 0
