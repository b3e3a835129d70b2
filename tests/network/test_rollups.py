"""A node on chains of Arbitrum Nitro and of the OP stack, and proofs of what it serves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from chainkit.chain import Endpoint
from chainkit.contracts.deployment import read_deployment_record
from chainkit.evidence.message_proof import message_proof_bytes
from chainkit.protocol.envelope import parse_originator_envelope
from chainkit.signatures import SigningKey
from chainkit_client.network.chain import Chain
from chainkit_client.network.proving import prove
from localnet.commands import Background, Settings
from localnet.network import publish_welcome, start_service, wait_for_entry
from support import publishes
from support.chains.chain import Deployment, LocalChain, dev_address, redeployed
from support.chains.nitro_chain import NitroChain
from support.chains.optimism_chain import OptimismChain
from support.chains.replayed_chain import ReplayedChain
from support.command_line import run, write_keystore
from support.network.api import Api

COMMITS = 4
KEY = b"\5" * 32


@pytest.fixture(scope="module")
def posted(
    local_deployment: Deployment, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalChain]:
    """A chain that lists a node, with commits and an identity update."""
    folder = tmp_path_factory.mktemp("rollups")
    with redeployed(local_deployment, folder, block_seconds=1) as chain:
        node_key = SigningKey(KEY).public_key
        chain.add_node(dev_address(3), node_key, "https://node.example")
        for _ in range(COMMITS):
            chain.publish_message(publishes.GROUP_ID.ljust(32, b"\0"), publishes.commit())
        chain.publish_identity_update(publishes.INBOX_ID, publishes.identity_update())
        chain.mine(2)
        yield chain


def proved(rollup: ReplayedChain, record_path: Path, envelope: bytes, path: Path) -> str | None:
    """Prove an envelope as ``client prove`` does, verify the proof, and return who paid."""
    chain = Chain(Endpoint.connect(rollup.url), read_deployment_record(record_path), frozenset({0}))
    proof, told = prove(chain, envelope)
    path.write_bytes(message_proof_bytes(proof))
    block_hash = rollup.blocks[told.block.number].header["hash"]
    where = ("--trust", block_hash, "--deployment", record_path, "--json")

    verified = run("client", "verify", path, *where)

    assert verified.code == 0, verified.err
    assert verified.content["verdict"] == "proved"
    assert verified.content["sequence_id"] == told.place[1]
    return verified.content["payer"]


@pytest.mark.parametrize(
    ("rollup_type", "types"),
    [(NitroChain, {2, 0x65, 0x66, 0x68}), (OptimismChain, {2, 0x7E})],
    ids=["Nitro", "OP stack"],
)
def test_node__chain_of_a_rollup__serves_payloads_of_every_type_and_clients_prove_them(
    posted: LocalChain,
    tmp_path: Path,
    rollup_type: type[ReplayedChain],
    types: set[int],
) -> None:
    write_keystore(tmp_path, KEY)
    with ExitStack() as stack:
        rollup = stack.enter_context(rollup_type(posted))
        assert rollup.payload_types(posted.record.group_messages.address) == types
        settings = Settings(rollup.url, posted.record_path, tmp_path / "password.txt")
        node = Background(
            settings,
            tmp_path / "log",
            *("node", "run", "--keystore", tmp_path / "key.json"),
            *("--database", tmp_path / "node.db", "--grpc", "127.0.0.1:0"),
            *("--stale-seconds", "0", "--log-format", "json"),
        )
        url = f"http://127.0.0.1:{start_service(stack, node, 'node_listening')}"
        api = stack.enter_context(closing(Api(url)))
        # A stream brings what the node indexes while the stream is open.
        streamed = api.subscribe(originators=[0], cursor={}).take(COMMITS + 1)
        wait_for_entry(node, lambda entry: entry.get("event") == "own_log_known")
        welcome = publish_welcome(url, 100, b"\7" * 32)

        assert api.query(originators=[0]) == streamed
        assert [parse_originator_envelope(each).sequence_id for each in streamed] == list(
            range(1, COMMITS + 2)
        )
        times = [parse_originator_envelope(each).originator_ns for each in streamed]
        assert times == sorted(set(times))
        path = tmp_path / "proof.json"
        paid = [proved(rollup, posted.record_path, each, path) for each in streamed]
        # Nobody signed what layer 1 sent.
        assert paid.count(dev_address(2)) == 1
        assert paid.count(None) == COMMITS
        assert proved(rollup, posted.record_path, welcome, path)
