from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chainkit.chain.sending import Sending
from chainkit.contracts.interface import shipped_interface
from chainkit.contracts.parameters import read_parameters
from chainkit.council.upgrade.upgrade import deploy_implementation
from chainkit.protocol.envelope import parse_originator_envelope
from chainkit_indexer.storage import schema
from chainkit_indexer.types import Advanced, Idle
from localnet.deployment import PARAMETERS
from support import payloads
from support.chains.branches import GROUP, INBOX
from support.chains.chain import Deployment, LocalChain, redeployed
from support.chains.tampering import ADMINISTRATOR, call_as
from support.council.signers import dev_signer
from support.indexer.follower import Follower, clean_run
from support.indexer.honest_rows import chain_tables, rows_of
from support.vectors import from_hex, load

LOGS_IN_A_BLOCK = 10_000
BLOCKS_IN_A_DAY = 1_440
SECONDS_IN_A_DAY = 86_400
FUNCTIONS = {"MessageSent": "addMessage", "IdentityUpdateCreated": "addIdentityUpdate"}
CONTRACTS = {"MessageSent": "GroupMessages", "IdentityUpdateCreated": "IdentityUpdates"}


@pytest.fixture
def local_chain(local_deployment: Deployment, tmp_path: Path) -> Iterator[LocalChain]:
    """A chain without a cap of gas: the largest payloads need more than Osaka lets one ask for."""
    with redeployed(local_deployment, tmp_path, caps_gas=False) as chain:
        yield chain


@pytest.fixture
def follower(local_chain: LocalChain, tmp_path: Path) -> Iterator[Follower]:
    with Follower(local_chain.record, tmp_path / "node.db") as running:
        yield running


@pytest.fixture
def wide_chain(local_deployment: Deployment, tmp_path: Path) -> Iterator[LocalChain]:
    """A chain whose blocks have room for everything."""
    with redeployed(
        local_deployment, tmp_path, "--gas-limit", "3000000000", caps_gas=False
    ) as chain:
        yield chain


def post(chain: LocalChain, event: str, identifier: bytes, payload: bytes) -> None:
    """Publish and see that it was taken, whatever its size."""
    of_event = {
        "MessageSent": chain.record.group_messages,
        "IdentityUpdateCreated": chain.record.identity_updates,
    }
    data = shipped_interface(CONTRACTS[event]).encode(FUNCTIONS[event], identifier, payload)
    transaction = chain.send(of_event[event].address, data, gas=25_000_000)
    receipt = chain.endpoint.receipt(transaction)
    assert receipt is not None and receipt["status"] == "0x1", receipt


def quarantined(follower: Follower) -> list[dict[str, Any]]:
    with follower.store.reading() as connection:
        rows = rows_of(connection, schema.quarantine)
    return [dict(zip(schema.quarantine.columns.keys(), row, strict=True)) for row in rows]


def served(follower: Follower) -> dict[int, bytes]:
    """Sequence id to the payload that was served under it."""
    with follower.store.reading() as connection:
        rows = rows_of(connection, schema.envelopes)
    column = schema.envelopes.columns.keys().index("envelope")
    parsed = [parse_originator_envelope(row[column]) for row in rows]
    return {each.sequence_id: each.client_envelope for each in parsed}


def test_follow__every_kind_of_poison__quarantines_each_and_goes_on(
    local_chain: LocalChain, follower: Follower
) -> None:
    cases = load("client_envelopes")["cases"]
    for case in cases:
        post(local_chain, case["event"], from_hex(case["identifier"]), from_hex(case["payload"]))

    follower.catch_up(local_chain.endpoint)

    numbered = list(enumerate(cases, 1))
    assert served(follower) == {
        number: from_hex(case["payload"]) for number, case in numbered if case["valid"]
    }
    found = {row["sequence_id"]: (row["reason"], row["payload"]) for row in quarantined(follower)}
    assert found == {
        number: (case["reason"], from_hex(case["payload"]))
        for number, case in numbered
        if not case["valid"]
    }


def test_follow__largest_payloads_and_empty_ones__keeps_every_byte(
    local_chain: LocalChain, follower: Follower
) -> None:
    largest = read_parameters(PARAMETERS).payload_bounds["GroupMessages"].maximum
    overhead = len(payloads.commit(GROUP, size=largest // 2)) - largest // 2
    valid = payloads.commit(GROUP, size=largest - overhead)
    poison = b"\xff" * largest
    assert len(valid) == largest
    for payload in (valid, b"", poison, valid[:-1], valid):
        post(local_chain, "MessageSent", GROUP, payload)

    follower.catch_up(local_chain.endpoint)

    assert served(follower) == {1: valid, 5: valid}
    assert [row["payload"] for row in quarantined(follower)] == [b"", poison, valid[:-1]]


def upgrade(chain: LocalChain) -> None:
    """Let the proxy of GroupMessages run another contract, of the same code."""
    record, signer = chain.record, dev_signer(ADMINISTRATOR)
    new = deploy_implementation(Sending(chain.endpoint), record, "GroupMessages", signer)
    proxy, address = record.group_messages.address, "0x" + new.address.hex()
    call_as(chain, ADMINISTRATOR, "GroupMessages", proxy, "upgradeToAndCall", address, b"")


def test_follow__contract_paused_and_upgraded_meanwhile__misses_nothing(
    local_chain: LocalChain, follower: Follower, tmp_path: Path
) -> None:
    proxy = local_chain.record.group_messages.address
    sent = [payloads.commit(GROUP, seed=seed) for seed in range(4)]
    update = payloads.identity_update(INBOX)
    local_chain.publish_message(GROUP, sent[0])
    follower.catch_up(local_chain.endpoint)
    call_as(local_chain, ADMINISTRATOR, "GroupMessages", proxy, "pause")
    refused = local_chain.publish_message(GROUP, b"refused")
    local_chain.publish_identity_update(INBOX, update)
    follower.catch_up(local_chain.endpoint)
    upgrade(local_chain)
    call_as(local_chain, ADMINISTRATOR, "GroupMessages", proxy, "unpause")
    for payload in sent[1:]:
        local_chain.publish_message(GROUP, payload)

    follower.catch_up(local_chain.endpoint)

    receipt = local_chain.endpoint.receipt(refused)
    assert receipt is not None and receipt["status"] == "0x0"
    assert served(follower) == {1: sent[0], 2: update, 3: sent[1], 4: sent[2], 5: sent[3]}
    assert chain_tables(follower.store) == clean_run(local_chain, tmp_path / "clean.db")


CALLER = b"\xca" * 20


def fill_a_block(chain: LocalChain, count: int) -> None:
    """Mine one block of so many messages, a hundred in each transaction.

    anvil shows a block's transactions in a time that grows with the square of their number.
    """
    chain.anvil.request("anvil_setCode", "0x" + CALLER.hex(), "0x" + caller_code().hex())
    chain.pause_mining()
    encode = shipped_interface("GroupMessages").encode
    calls = [
        encode("addMessage", GROUP, payloads.commit(GROUP, size=16, seed=number))
        for number in range(count)
    ]
    [size] = {len(call) for call in calls}
    head = chain.record.group_messages.address.rjust(32, b"\0") + size.to_bytes(32, "big")
    for start in range(0, count, 100):
        chain.send(CALLER, head + b"".join(calls[start : start + 100]), gas=16_000_000)
    chain.mine()
    chain.resume_mining()


def caller_code() -> bytes:
    """Code that makes the calls in its calldata: target, size of a call, the calls."""
    parts = (
        "6040",  # the place of the first call, on the stack
        "5b",  # 2: the loop
        "80361115602e57",  # end unless the place is below CALLDATASIZE
        "60203581600037",  # copy the call to memory
        "60006000602035600060006000355af1",  # CALL the target with it
        "15603057",  # fail if it failed
        "60203501",  # the next place
        "600256",  # again
    )
    code = "".join(parts)
    end = len(code) // 2
    code = code.replace("602e57", f"60{end:02x}57").replace("603057", f"60{end + 2:02x}57")
    return bytes.fromhex(code + "5b00" + "5b60006000fd")


def test_follow__ten_thousand_logs_in_one_block__stores_all_at_once(
    wide_chain: LocalChain, tmp_path: Path
) -> None:
    fill_a_block(wide_chain, LOGS_IN_A_BLOCK)
    block = wide_chain.head()
    wide_chain.publish_message(GROUP, payloads.commit(GROUP))

    with Follower(wide_chain.record, tmp_path / "node.db", page_blocks=1) as follower:
        steps = []
        while not isinstance(result := follower.step(wide_chain.endpoint), Idle):
            assert isinstance(result, Advanced)
            steps.append(result)
        assert sorted(served(follower)) == list(range(1, LOGS_IN_A_BLOCK + 2))

    (full,) = [step for step in steps if step.cursor == block.reference]
    assert full.envelopes == LOGS_IN_A_BLOCK


def test_follow__no_log_for_a_day__passes_over_it(
    local_chain: LocalChain, follower: Follower, tmp_path: Path
) -> None:
    local_chain.publish_message(GROUP, payloads.commit(GROUP))
    follower.catch_up(local_chain.endpoint)
    before = local_chain.head().timestamp
    interval = SECONDS_IN_A_DAY // BLOCKS_IN_A_DAY
    for _ in range(BLOCKS_IN_A_DAY // 120):
        local_chain.anvil.request("anvil_mine", hex(120), hex(interval))
    local_chain.publish_message(GROUP, payloads.commit(GROUP, seed=1))
    assert local_chain.head().timestamp - before >= SECONDS_IN_A_DAY - interval

    follower.catch_up(local_chain.endpoint)

    assert list(served(follower)) == [1, 2]
    assert follower.store.position().header.reference == local_chain.head().reference
    assert chain_tables(follower.store) == clean_run(local_chain, tmp_path / "clean.db")
