"""Real nodes beside others that lie over gRPC: each lie is reported as what it is."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest

from chainkit.misbehavior.evidence import Weight, judge_safety
from chainkit.misbehavior.signed import SignedReport, take_apart
from chainkit.misbehavior.topic_evidence import TopicEvidence
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.originated_envelope import parse_originated
from chainkit.protocol.topic_heads import Chain, Entry, TopicHead, entry_of, sign_topic_head
from chainkit.signatures import SigningKey
from chainkit.types import TopicKind
from chainkit_client.breach import Breach
from chainkit_client.home import HomeFolder, Settings
from chainkit_client.storage.evidence import keep_breaches
from chainkit_client.storage.store import Store
from localnet.postgres import Postgres
from support import publishes
from support.chains.chain import Deployment
from support.command_line import run
from support.network.api import Api
from support.network.false_node import FalseNode, FalseNodes
from support.network.foreign_node import ForeignProcess, foreign_process
from support.network.originator import BEGIN_NS, SECOND_NS, Originator
from support.network.real_nodes import RealNetwork, RealNode, real_network, until
from support.network.simulation.lies import EXPECTED, Liar, Lie

FROM_ID = 3
COUNT = 6
"""Envelopes that each false node signs."""
FOREIGN_SECRET = b"\x4e" * 32
UNSERVED = (Lie.STALLS, Lie.FAILS, Lie.MAKES_UP, Lie.SERVES_THE_CHAIN)
"""Nobody gets all that such a node signs."""


@dataclass(frozen=True)
class Story:
    """Honest nodes, and one false node for each lie."""

    network: RealNetwork
    honest: list[RealNode]
    liars: dict[Lie, FalseNode]
    foreign: ForeignProcess
    """A node of another make that signs two under one id, and gives the other one to the first."""
    published: dict[int, list[bytes]]
    false: FalseNodes

    def keys(self) -> dict[int, bytes]:
        others = (*self.liars.values(), self.foreign)
        return self.network.keys() | {each.node_id: each.key.public_key for each in others}

    def reports(self) -> list[SignedReport]:
        """All that honest nodes saw themselves, each signed by its reporter."""
        found = []
        for node in self.honest:
            for each in node.api.query_reports():
                signed = take_apart(each)
                assert signed.reporter == node.key.public_key
                if signed.report.is_from_node:
                    found.append(signed)
        return found

    def weight(self, signed: SignedReport) -> Weight:
        """Judge a report as anybody can, without asking a node; a claim is as it is."""
        if signed.report.misbehavior.is_liveness:
            return Weight.CLAIMED
        return judge_safety(signed.report, self.keys(), time.time_ns()).weight


@pytest.fixture(scope="module")
def story(
    local_deployment: Deployment, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("lies")
    with ExitStack() as stack:
        postgres = stack.enter_context(Postgres(fsync="off"))
        network = stack.enter_context(real_network(local_deployment, folder))
        honest = [network.add(), network.add(), network.add(postgres.new_database())]
        for node in honest:
            node.listens()
        for node in honest:
            node.originates()
        false = stack.enter_context(FalseNodes())
        victims = {honest[0].node_id}
        liars = {
            lie: false.add(Liar(lie, FROM_ID, victims), key_of(number), network.register)
            for number, lie in enumerate(Lie)
        }
        foreign = stack.enter_context(foreign_process(FOREIGN_SECRET))
        foreign_id = network.register(foreign.key, foreign.url)
        urls = {each.node_id: each.gate.url for each in honest}
        foreign.begin(foreign_id, urls, honest[0].node_id)
        for liar in liars.values():
            false.sign(liar, COUNT)
        foreign.publish(COUNT - 1)
        foreign.sign_twice()
        published = {each.node_id: each.publish(3) for each in honest}
        story = Story(network, honest, liars, foreign, published, false)
        until(lambda: all(has_read(node, liars) for node in honest))
        until(lambda: all(COUNT in ids(node.holds(foreign_id)) for node in honest))
        # The streams open again, and nodes compare their logs with one that begins to answer.
        for node in honest:
            node.gate.drop()
        yield story


def key_of(number: int) -> SigningKey:
    return SigningKey(bytes([77]) * 31 + bytes([number + 1]))


def has_read(node: RealNode, liars: dict[Lie, FalseNode]) -> bool:
    """Whether a node has the last envelope of each that gives it away."""
    return all(
        COUNT in ids(node.holds(liar.node_id)) for lie, liar in liars.items() if lie not in UNSERVED
    )


def ids(envelopes: list[bytes]) -> list[int]:
    return [parse_originated(each).envelope.sequence_id for each in envelopes]


@pytest.mark.parametrize("lie", list(EXPECTED))
def test_a_lie__of_a_real_node__is_reported_as_what_it_is(story: Story, lie: Lie) -> None:
    liar_id = story.liars[lie].node_id

    def is_reported() -> bool:
        about_liar = [each for each in story.reports() if each.node_id == liar_id]
        found = {(each.report.misbehavior, story.weight(each)) for each in about_liar}
        return EXPECTED[lie] in found

    until(is_reported)


def test_node_of_another_make__lies_to_one__is_proved_and_all_else_is_equal(story: Story) -> None:
    foreign, proof = story.foreign, (Misbehavior.DUPLICATE_SEQUENCE_ID, Weight.PROVED)

    def accusations() -> set[tuple[Misbehavior, Weight]]:
        about = [each for each in story.reports() if each.node_id == foreign.node_id]
        found = {(each.report.misbehavior, story.weight(each)) for each in about}
        return {each for each in found if not each[0].is_liveness}

    until(lambda: accusations() == {proof})
    for originator_id, envelopes in story.published.items():
        until(lambda: foreign.holds(originator_id)[:3] == envelopes)  # noqa: B023
    logs = [api.query(originators=[foreign.node_id]) for api in apis(story)]
    logs.append(foreign.holds(foreign.node_id))
    assert [ids(each) for each in logs] == [list(range(1, COUNT + 1))] * 4
    assert len({tuple(each[:-1]) for each in logs}) == 1
    assert len({each[-1] for each in logs}) == 2


def test_questions__of_nodes_watchers_and_auditors__have_a_cursor(
    story: Story, tmp_path: Path
) -> None:
    asked, without_cursor = story.foreign.asked()
    assert (asked >= len(story.honest), without_cursor) == (True, 0)

    chain = ("--rpc", story.network.chain.url, "--deployment", story.network.chain.record_path)
    run("audit", "export-node", story.foreign.url, *chain, "--out", tmp_path / "node")

    again, without_cursor = story.foreign.asked()
    assert (again > asked, without_cursor) == (True, 0)


def apis(story: Story) -> list[Api]:
    return [each.api for each in story.honest]


@pytest.mark.conforms("N31")
def test_lies__of_all_kinds__honest_nodes_hold_the_same(story: Story) -> None:
    def is_same(originator_id: int) -> bool:
        disputed = {
            (each.node_id, parse_originated(envelope).envelope.sequence_id)
            for each in story.reports()
            for envelope in each.report.envelopes
            if each.report.misbehavior.name == "DUPLICATE_SEQUENCE_ID"
        }
        logs = [
            [
                envelope
                for envelope, sequence_id in zip(held, ids(held), strict=True)
                if (originator_id, sequence_id) not in disputed
            ]
            for held in (node.holds(originator_id) for node in story.honest)
        ]
        return logs == [logs[0]] * len(logs)

    for liar in story.liars.values():
        until(lambda: is_same(liar.node_id))  # noqa: B023
    for node in story.honest:
        for originator_id, envelopes in story.published.items():
            assert node.holds(originator_id)[: len(envelopes)] == envelopes


def test_repeats__of_a_real_node__are_stored_once_and_are_no_lie(story: Story) -> None:
    liar = story.liars[Lie.REPEATS]

    for node in story.honest:
        until(lambda: node.holds(liar.node_id) == liar.log.envelopes())  # noqa: B023
    about_liar = [
        each.report.misbehavior for each in story.reports() if each.node_id == liar.node_id
    ]
    # A busy machine may be late; nothing else was seen.
    assert all(each.is_liveness for each in about_liar)


def test_honest_nodes__among_liars__are_accused_of_nothing_unsafe(story: Story) -> None:
    reports = story.reports()
    honest = {node.node_id for node in story.honest}

    unsafe = Counter(each.node_id for each in reports if not each.report.misbehavior.is_liveness)

    assert unsafe
    assert not unsafe.keys() & honest
    assert Weight.REFUTED not in map(story.weight, reports)


SEEN_BY_STRANGERS = {
    **EXPECTED,
    # Its victim is a node: strangers get all of it.
    Lie.OMITS_TO_ONE: None,
    # A query's answer that nobody signed shows what a stream's would not.
    Lie.MAKES_UP: (None, None),
    Lie.SERVES_THE_CHAIN: (None, None),
}
"""The type and worth of a lie as a stranger's check finds it; None where it cannot."""


def test_check__by_a_stranger__finds_each_lie_and_triage_takes_the_evidence(
    story: Story, tmp_path: Path
) -> None:
    network = story.network
    chain = ("--rpc", network.chain.url, "--deployment", network.chain.record_path)
    checked = run(
        *("client", "check", *chain, "--patience", "4.5", "--evidence", tmp_path, "--report"),
        "--json",
    )

    assert checked.code == 1, checked.err
    assert story.foreign.asked()[1] == 0
    nodes = {each["node_id"]: each for each in checked.content["nodes"]}
    for node in story.honest:
        types = {each["type"] for each in nodes[node.node_id]["findings"]}
        assert types <= {"SLOW_NODE"}
        assert nodes[node.node_id]["error"] is None
    for lie, expected in SEEN_BY_STRANGERS.items():
        findings = nodes[story.liars[lie].node_id]["findings"]
        found = {(each["type"], each["weight"]) for each in findings}
        if expected is not None:
            misbehavior, weight = expected
            name = "OTHER" if misbehavior is None else misbehavior.name
            assert (name, weight or "seen") in found, (lie, findings)
    repeats = nodes[story.liars[Lie.REPEATS].node_id]["findings"]
    assert {each["type"] for each in repeats} <= {"SLOW_NODE"}

    triage = run("council", "triage", tmp_path, *chain, "--json")

    assert triage.code in (0, 1), triage.err
    proved = {
        story.liars[lie].node_id for lie, each in EXPECTED.items() if each[1] is Weight.PROVED
    }
    assert set(triage.content["disable"]) >= proved
    assert not set(triage.content["disable"]) & {node.node_id for node in story.honest}
    for node in story.honest:
        hosted = [take_apart(each) for each in node.api.query_reports()]
        # A node keeps one report of each proof, and most of them it had seen itself.
        assert proved <= {each.node_id for each in hosted}
        assert any(not each.report.is_from_node for each in hosted)


@pytest.mark.conforms("3.2.7-1")
def test_report__of_a_client_that_holds_topic_heads__is_taken_by_nodes_and_triage(
    story: Story, tmp_path: Path
) -> None:
    """One head leaves an envelope out that the client has, and two of another node disagree."""
    network = story.network
    omits, contradicts = story.liars[Lie.REPEATS], story.liars[Lie.STALLS]
    breaches = [omission(omits), contradiction(contradicts)]
    home, password = HomeFolder(tmp_path / "home"), tmp_path / "password"
    password.write_text("password")
    home.make()
    settings = (network.chain.url, str(network.chain.record_path), "0x" + "12" * 20)
    home.write_settings(Settings("http://127.0.0.1:9", *settings))
    store = Store.open(home.database_path, "password", cost=2)
    with store.writing() as connection:
        keep_breaches(connection, breaches, time.time_ns())
    store.close()
    folder = tmp_path / "evidence"

    told = run(
        *("client", "report", "--home", home.home_path, "--password-file", password),
        *("--evidence", folder, "--submit", "--json"),
    )
    chain = ("--rpc", network.chain.url, "--deployment", network.chain.record_path)
    triage = run("council", "triage", folder, *chain, "--json")

    assert told.code == 1, told.err
    assert {each["reason"] for each in told.content} == {each.reason for each in breaches}
    assert set(triage.content["disable"]) == {omits.node_id, contradicts.node_id}
    for node in story.honest:
        hosted = [take_apart(each) for each in node.api.query_reports()]
        assert {each.node_id for each in hosted if each.report.topics is not None} == {
            omits.node_id,
            contradicts.node_id,
        }


def omission(liar: FalseNode) -> Breach:
    """A head up to 9 that has 2 and 8, beside an envelope 5 of its topic."""
    node = Originator(liar.node_id, liar.key)
    evidence = TopicEvidence((head(node, 9, 2, 8),), entries(node, 2, 8))
    reason = "its topic head up to 9 lacks 5"
    return Breach(liar.node_id, Misbehavior.OUT_OF_ORDER, reason, (node.signed(5),), evidence)


def contradiction(liar: FalseNode) -> Breach:
    node = Originator(liar.node_id, liar.key)
    evidence = TopicEvidence((head(node, 9, 2), head(node, 9, 2, 8)))
    return Breach(liar.node_id, Misbehavior.OUT_OF_ORDER, "two heads up to 9", (), evidence)


def head(node: Originator, through: int, *numbers: int) -> bytes:
    topic = TopicKind.GROUP_MESSAGE.topic(publishes.GROUP_ID)
    chain = Chain().extended(entries(node, *numbers))
    return sign_topic_head(TopicHead(node.node_id, topic, through, chain), node.key)


def entries(node: Originator, *numbers: int) -> tuple[Entry, ...]:
    return tuple(entry_of(node.signed(each)) for each in numbers)


def test_honest_node__another_names_its_next_id__reports_it_and_takes_no_cycle(
    story: Story,
) -> None:
    honest, liar = story.honest[0], story.liars[Lie.DEPENDS_ON_NOTHING]
    [last_id] = ids(honest.publish(1))
    named_id = len(liar.log) + 1

    def paid(node_id: int, seen: dict[int, int]) -> bytes:
        return publishes.paid(publishes.group_message(identifier=b"c" * 16, seen=seen), node_id)

    seconds = (time.time_ns() - BEGIN_NS) / SECOND_NS
    payload = paid(liar.node_id, {honest.node_id: last_id + 1})
    ahead = Originator(liar.node_id, liar.key).signed(named_id, seconds, payload)
    answer = paid(honest.node_id, {liar.node_id: named_id})

    story.false.keep(liar, ahead)
    until(lambda: ahead in honest.holds(liar.node_id))

    with pytest.raises(grpc.RpcError, match="which names what this node has not given") as refusal:
        honest.api.publish(answer)
    assert refusal.value.code() is grpc.StatusCode.ABORTED
    until(lambda: any(each.report.envelopes == (ahead,) for each in story.reports()))
    # The id is given to another payload: an answer is behind it, and in no cycle.
    assert ids(honest.publish(1)) == [last_id + 1]
    assert ids(honest.api.publish(answer)) == [last_id + 2]
