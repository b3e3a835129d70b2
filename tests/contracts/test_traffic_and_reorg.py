import json
import random
from collections import Counter

import ape
import pytest

from chainkit.contracts.deployment import read_deployment_record
from chainkit.errors import ConfigurationError
from chainkit.protocol.envelope import quarantine_reason
from chainkit.protocol.events import (
    IDENTITY_UPDATE_CREATED_TOPIC,
    MESSAGE_SENT_TOPIC,
    decode_payload_event,
)
from chainkit.types import PayloadEvent, TopicKind
from localnet.anvil import Anvil
from localnet.deployment import deploy, run_ape_script
from scripts import _payloads, reorg
from support.endpoints.fake_endpoint import FakeProvider

MESSAGES, MALFORMED = 60, 12


@ape.fixture(scope="module", chain_isolation=False)
def network(tmp_path_factory):
    """An anvil with the contracts and some traffic: its record and what the script summed up."""
    record = tmp_path_factory.mktemp("network") / "record.json"
    with Anvil() as anvil:
        deploy(anvil.url, record)
        options = ("--messages", str(MESSAGES), "--malformed", str(MALFORMED), "--per-block", "4")
        printed = run_ape_script("traffic", anvil.url, "--record", str(record), "--json", *options)
        yield anvil, read_deployment_record(record), json.loads(printed)


def published(anvil, record):
    """All payload events of the chain in its order, as (event, transaction hash)."""
    head = anvil.endpoint.head().number
    topics = (MESSAGE_SENT_TOPIC, IDENTITY_UPDATE_CREATED_TOPIC)
    logs = anvil.endpoint.logs(record.first_block, head, record.payload_addresses, topics)
    return [(decode_payload_event(log), log.transaction_hash) for log in logs]


def test_traffic__its_summary__is_what_the_chain_holds(network):
    anvil, record, summary = network
    events = [event for event, _ in published(anvil, record)]
    reasons = [quarantine_reason(event) for event in events]
    served = [event for event, reason in zip(events, reasons, strict=True) if reason is None]
    assert summary["published"] == len(events) == MESSAGES + MALFORMED
    assert summary["malformed"] == len(events) - len(served) == MALFORMED
    kinds = Counter(event.kind for event in served)
    assert summary["group_messages"] == kinds[TopicKind.GROUP_MESSAGE]
    assert summary["identity_updates"] == kinds[TopicKind.IDENTITY_UPDATE]
    assert summary["last_block"] - summary["first_block"] + 1 == (MESSAGES + MALFORMED) / 4
    assert [event.sequence_id for event in events] == list(range(1, len(events) + 1))


def test_reorg__five_blocks_with_three_dropped__tells_what_the_chain_shows(network):
    anvil, record, _ = network
    before = published(anvil, record)
    depth, replaced = 5, 20
    old = [anvil.endpoint.header(anvil.endpoint.head().number - back) for back in range(6)]
    options = ("--depth", str(depth), "--drop", "3", "--json")
    result = json.loads(run_ape_script("reorg", anvil.url, *options))

    after = published(anvil, record)
    head = anvil.endpoint.head()
    assert result["depth"] == depth
    assert result["new_head"] == {"number": head.number, "hash": "0x" + head.hash.hex()}
    same = [anvil.endpoint.header(header.number) == header for header in old]
    assert same == 5 * [False] + [True]

    kept = {hash_ for _, hash_ in after}
    dropped = {hash_ for _, hash_ in before} - kept
    assert {"0x" + hash_.hex() for hash_ in dropped} == set(result["dropped"])
    assert len(result["dropped"]) == 3
    remined = {hash_ for _, hash_ in before[-replaced:]} & kept
    assert {"0x" + hash_.hex() for hash_ in remined} == set(result["remined"])
    assert before[:-replaced] == after[: -replaced + 3]
    assert [event.sequence_id for event, _ in after] == list(range(1, len(after) + 1))
    assert [hash_ for _, hash_ in after] != [hash_ for _, hash_ in before if hash_ in kept]
    assert anvil.request("anvil_getAutomine") is True


@pytest.mark.parametrize(
    ("depth", "drop", "message"),
    [(5000, 0, "depth: expected less than the height"), (1, 5000, "drop: expected at most")],
)
def test_reorg__more_than_there_is__is_refused_and_changes_nothing(network, depth, drop, message):
    anvil = network[0]
    before = anvil.endpoint.head()
    with pytest.raises(ConfigurationError, match=message):
        reorg.reorganise(anvil.endpoint, depth, drop, 0.0, seed=1)
    assert anvil.endpoint.head() == before
    assert anvil.request("anvil_getAutomine") is True


def clock(endpoint):
    """The date of a block that would be mined now."""
    return int(endpoint.request("eth_getBlockByNumber", "pending", False)["timestamp"], 16)


def test_reorg__of_blocks_that_are_minutes_old__lets_the_clock_go_on():
    with Anvil() as anvil:
        for _ in range(4):
            anvil.request("evm_mine")
        stays = anvil.endpoint.header(2)
        anvil.request("evm_increaseTime", 600)
        before = clock(anvil.endpoint)
        reorg.reorganise(anvil.endpoint, 2, 0, 0.0, seed=1)
        dates = [anvil.endpoint.header(number).timestamp for number in (2, 3, 4)]
        assert before <= clock(anvil.endpoint) < before + 60
        # The new blocks are not older than what was published in the meantime.
        assert dates[0] == stays.timestamp
        assert dates[1] - dates[0] == dates[2] - dates[1] >= 300


def test_reorg__of_another_client__is_refused_before_anything_is_asked():
    with pytest.raises(ConfigurationError, match="expected anvil, got Geth"):
        endpoint = FakeProvider({"web3_clientVersion": "Geth/v1.14.0"}).endpoint()
        reorg.reorganise(endpoint, 1, 1, 0.0, 1)


def event_of(payload):
    return PayloadEvent(payload.kind, payload.identifier, payload.data, 1)


def test_payloads__same_arguments__are_the_same_bytes():
    arguments = {"messages": 30, "identity_share": 0.3, "malformed": 12, "last_seen": 4}
    first = _payloads.payloads(**arguments, seed=1)
    assert first == _payloads.payloads(**arguments, seed=1)
    assert first != _payloads.payloads(**arguments, seed=2)


def test_payloads__marked_malformed__are_exactly_those_that_may_not_be_served():
    made = _payloads.payloads(400, 0.25, 48, last_seen=0, seed=3)
    assert len(made) == 448
    reasons = Counter(quarantine_reason(event_of(payload)) for payload in made)
    assert reasons.pop(None) == 400
    assert len(reasons) >= 5
    for payload in made:
        assert (quarantine_reason(event_of(payload)) is not None) == payload.malformed
    kinds = Counter(payload.kind for payload in made if not payload.malformed)
    assert kinds == {TopicKind.GROUP_MESSAGE: 300, TopicKind.IDENTITY_UPDATE: 100}


def test_payloads__well_formed__have_realistic_sizes():
    made = _payloads.payloads(400, 0.5, 0, last_seen=9, seed=3)
    commits = [len(p.data) for p in made if p.kind is TopicKind.GROUP_MESSAGE]
    updates = [len(p.data) for p in made if p.kind is TopicKind.IDENTITY_UPDATE]
    assert 300 <= min(commits) < 600
    assert 6_000 < max(commits) <= 8_200
    assert min(updates) >= 200
    assert max(updates) <= 1_300


def mined(*senders):
    nonces = Counter()
    found = []
    for index, sender in enumerate(senders):
        found.append(reorg.Mined(f"hash{index}", sender, nonces[sender], "", f"raw{index}"))
        nonces[sender] += 1
    return found


@pytest.mark.parametrize("seed", range(5))
def test_drop_and_place__any_chance__leave_each_sender_s_nonces_in_order(seed):
    found, chance = mined(*"abcabcabcaab"), random.Random(seed)
    dropped = reorg.choose_dropped(found, 4, chance)
    kept = [item for item in found if item.hash not in dropped]
    placements = reorg.place(kept, 3, chance)
    by_raw = {item.raw: item for item in found}
    assert len(dropped) == 4
    assert sorted(raw for raw, _ in placements) == sorted(item.raw for item in kept)
    assert [block for _, block in placements] == sorted(block for _, block in placements)
    assert all(0 <= block < 3 for _, block in placements)
    for sender in "abc":
        nonces = [by_raw[raw].nonce for raw, _ in placements if by_raw[raw].sender == sender]
        assert nonces == list(range(len(nonces)))
