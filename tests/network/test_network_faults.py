"""Real nodes that are killed, paused, parted, restored, disabled and re-keyed behind a proxy."""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest

from chainkit.misbehavior.signed import SignedReport, take_apart
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.originated_envelope import parse_originated
from chainkit.protocol.proto.message_api_pb2 import (
    QueryEnvelopesRequest,
    UnsignedMisbehaviorReport,
)
from chainkit.service.node_token import NODE_TOKEN_KEY, write_token
from localnet.commands import start_command
from localnet.postgres import Postgres
from support.chains.chain import Deployment
from support.command_line import run
from support.network import skewed_clock
from support.network.api import REPLICATION, query
from support.network.payer_books import books_agree
from support.network.real_nodes import RealNetwork, RealNode, real_network, until
from support.network.tcp_proxy import Mode


@dataclass
class Four:
    """Four nodes: the third one on PostgreSQL, all others on SQLite."""

    network: RealNetwork
    nodes: list[RealNode]
    acknowledged: dict[int, list[bytes]] = field(default_factory=dict)
    """Whatever a node has answered to payers, by its id."""

    def publish(self, node: RealNode, count: int = 1) -> list[bytes]:
        """Publish on a node that answers; what it answers must outlive everything."""
        published = node.publish(count)
        self.acknowledged.setdefault(node.node_id, []).extend(published)
        return published

    def hold_the_same(self, nodes: Sequence[RealNode]) -> bool:
        """Whether nodes hold all that was acknowledged, and the same bytes of it."""
        for originator_id, envelopes in self.acknowledged.items():
            logs = [node.holds(originator_id) for node in nodes]
            if logs != [logs[0]] * len(logs) or not set(envelopes) <= set(logs[0]):
                return False
            assert ids(logs[0]) == list(range(1, len(logs[0]) + 1))
        return True


@pytest.fixture(scope="module")
def four(local_deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Four]:
    folder = tmp_path_factory.mktemp("faults")
    with ExitStack() as stack:
        postgres = stack.enter_context(Postgres(fsync="off"))
        network = stack.enter_context(real_network(local_deployment, folder))
        databases = (None, None, postgres.new_database(), None)
        nodes = [network.add(each, "--payer-report-seconds", "2") for each in databases]
        for node in nodes:
            node.listens()
        for node in nodes:
            node.originates()
        yield Four(network, nodes)


@pytest.fixture(autouse=True)
def mended(four: Four) -> Iterator[None]:
    """Each test finds a network in which every node reads every other from itself."""
    for node in four.nodes:
        until(lambda: reads_directly(node, four.nodes))  # noqa: B023
    yield
    four.network.set_all(Mode.OPEN)


def reads_directly(reader: RealNode, nodes: Sequence[RealNode]) -> bool:
    """Whether a node has all others' streams open, and asks nobody in another one's place."""
    others = [each for each in nodes if each is not reader]
    return reader.peer_streams() == len(others) and not any(map(reader.substitutes, others))


def ids(envelopes: Sequence[bytes]) -> list[int]:
    return [parse_originated(each).envelope.sequence_id for each in envelopes]


def ids_of(nodes: Sequence[RealNode]) -> set[int]:
    return {each.node_id for each in nodes}


def reports_about(node: RealNode, node_id: int) -> list[SignedReport]:
    found = [take_apart(each) for each in node.api.query_reports()]
    assert all(each.reporter == node.key.public_key for each in found)
    return [each for each in found if each.node_id == node_id]


@pytest.mark.conforms("N27", "N28", "T6", "2.2.1-14")
def test_node__killed_under_publishes__all_hold_the_same_after_its_restart(four: Four) -> None:
    victim = four.nodes[1]

    def publishes(node: RealNode) -> None:
        # The one that is killed breaks off; its last answer may be lost, and its envelope not.
        with suppress(grpc.RpcError):
            for _ in range(20):
                four.publish(node)

    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(publishes, node) for node in four.nodes]
        until(lambda: len(four.acknowledged.get(victim.node_id, ())) >= 5)
        os.kill(victim.pid, signal.SIGKILL)
        for each in running:
            each.result()
    victim.kill()
    victim.restart()
    victim.originates()
    four.publish(victim)

    until(lambda: four.hold_the_same(four.nodes))
    until(lambda: books_agree(four.nodes))


@pytest.mark.conforms("N30", "N43")
def test_node__paused__is_reported_again_and_again_and_catches_up(four: Four) -> None:
    paused, *others = four.nodes[2], four.nodes[0], four.nodes[1], four.nodes[3]
    os.kill(paused.pid, signal.SIGSTOP)
    try:
        # The system still accepts connections for it, and nobody answers on them.
        paused.gate.drop()
        for node in others:
            four.publish(node)
            until(lambda: len(unanswered_streams(node, paused.node_id)) >= 2)  # noqa: B023
    finally:
        os.kill(paused.pid, signal.SIGCONT)

    first, second, *_ = unanswered_streams(others[0], paused.node_id)
    assert second - first > 8 * 10**9
    four.publish(paused)
    until(lambda: four.hold_the_same(four.nodes))


def unanswered_streams(node: RealNode, node_id: int) -> list[int]:
    """Return when a node reported streams that were not answered; the watchdog asks, too."""
    reports = [
        UnsignedMisbehaviorReport.FromString(each.unsigned_misbehavior_report)
        for each in node.api.query_reports()
    ]
    return [
        each.reporter_time_ns
        for each in reports
        if each.misbehaving_node_id == node_id
        and each.type == Misbehavior.UNRESPONSIVE_NODE
        and each.liveness.HasField("subscribe")
    ]


@pytest.mark.conforms("N30")
def test_node__out_of_reach_of_one__is_read_through_others_until_it_is_back(four: Four) -> None:
    reader, *others, absent = four.nodes
    four.network.cut(reader, absent)
    [envelope] = four.publish(absent)

    until(lambda: reader.substitutes(absent) == ids_of(others))
    until(lambda: envelope in reader.holds(absent.node_id))
    # The node itself cannot be reached, and two are asked in its place.
    until(lambda: reader.peer_streams() == 4)

    # Its envelopes come directly again, and the other streams end.
    four.network.set_all(Mode.OPEN)
    until(lambda: reads_directly(reader, four.nodes))


@pytest.mark.conforms("N31")
def test_partition__publishes_on_both_sides__all_hold_the_same_once_it_heals(four: Four) -> None:
    sides = four.nodes[:2], four.nodes[2:]
    four.network.partition(four.nodes[:2])
    published = [four.publish(node, 2) for node in four.nodes]

    for side in sides:
        until(lambda: all(missing(node, side, four.nodes, published) for node in side))  # noqa: B023

    four.network.set_all(Mode.OPEN)
    until(lambda: four.hold_the_same(four.nodes))


def missing(
    node: RealNode, side: Sequence[RealNode], all_nodes: Sequence[RealNode], published: list[bytes]
) -> bool:
    """Whether a node has its own side's envelopes, and none of the other's."""
    return all(
        (envelopes[-1] in node.holds(each.node_id)) == (each in side)
        for each, envelopes in zip(all_nodes, published, strict=True)
    )


@pytest.mark.conforms("N7")
def test_database__restored_from_an_older_copy__takes_its_own_envelopes_back(
    four: Four, tmp_path: Path
) -> None:
    node, *others = four.nodes
    copy = tmp_path / "backup.db"
    assert run("index", "backup", "--database", node.database, "--out", str(copy)).code == 0
    lost = four.publish(node, 3)
    until(lambda: four.hold_the_same(others))
    node.kill()
    for each in Path(node.database).parent.glob("node.db*"):
        each.unlink()
    shutil.copy(copy, node.database)

    # The record knows better, and is not asked.
    node.has_record = False
    node.restart()
    node.originates()
    [envelope] = four.publish(node)

    assert ids([envelope]) == [ids(lost)[-1] + 1]
    until(lambda: four.hold_the_same(four.nodes))
    # No id was signed twice.
    assert node.holds(node.node_id)[-4:] == [*lost, envelope]
    about_it = (each.report for other in others for each in reports_about(other, node.node_id))
    assert [each for each in about_it if not each.misbehavior.is_liveness] == []


def test_node__clock_is_ten_minutes_ahead__signs_nothing_until_it_is_set_right(
    four: Four, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, seconds = four.nodes[3], tmp_path / "seconds"
    seconds.write_text("600")
    paths = [str(Path(skewed_clock.__file__).parent), os.environ.get("PYTHONPATH", "")]
    with monkeypatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        patch.setenv("SKEWED_CLOCK", str(seconds))
        # A fork of a warm process is past its start.
        patch.setattr("localnet.commands.start_command", start_command)
        node.kill()
        node.restart()

    until(lambda: "clock_wrong" in node.attention())
    with pytest.raises(grpc.RpcError) as raised:
        four.publish(node)
    # Reading goes on, and so do heads, which have no time.
    assert node.holds(node.node_id) and node.api.heads(bytes(33))
    seconds.with_suffix(".new").write_text("0")
    os.replace(seconds.with_suffix(".new"), seconds)

    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
    # A clock is known as well as the way to it is short: a busy machine takes seconds.
    assert re.search(r"(59\d|60\d) s ahead", raised.value.details())
    until(lambda: bool(four.publish(node)))
    until(lambda: "clock_wrong" not in node.attention() and four.hold_the_same(four.nodes))
    node.kill()
    node.restart()
    node.originates()


@pytest.mark.conforms("N7")
def test_node__alone_without_a_record__originates_once_another_answers(four: Four) -> None:
    node = four.nodes[1]
    node.kill()
    four.network.set_all(Mode.CUT)
    node.has_record = False
    node.restart()
    node.said("own_log_unanswered")
    assert node.number("chainkit_node_own_log_waits") == 1

    with pytest.raises(grpc.RpcError) as caught:
        until_synced(node)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "expected an answer of another node" in str(caught.value.details())

    four.network.set_all(Mode.OPEN)
    node.originates()
    assert node.number("chainkit_node_own_log_waits") == 0
    four.publish(node)


def until_synced(node: RealNode) -> None:
    """Publish until the answer is about something else than the chain, which it follows anew."""
    deadline = time.monotonic() + 30
    while True:
        try:
            node.publish()
        except grpc.RpcError as error:
            details = str(error.details())  # type: ignore[attr-defined]
            if "answer of the chain" not in details or time.monotonic() > deadline:
                raise
            continue
        return


@pytest.mark.conforms("N7")
def test_node__alone_with_a_record__goes_on(four: Four) -> None:
    node = four.nodes[3]
    last = ids(four.publish(node))[-1]
    node.kill()
    four.network.set_all(Mode.CUT)
    assert node.record.read_bytes().endswith(b" %d\n" % last)
    node.restart()
    node.originates()

    [envelope] = four.publish(node)

    assert ids([envelope]) == [last + 1]


@pytest.mark.conforms("N32", "N37")
def test_node__disabled__is_read_through_others_until_it_is_enabled_again(four: Four) -> None:
    reader, starting, other, disabled = four.nodes
    starting.kill()
    [envelope] = four.publish(disabled)
    until(lambda: four.hold_the_same([reader, other]))
    now = int(time.time())
    token = write_token(disabled.key, disabled.node_id, reader.node_id, now, now + 60)
    assert code_of_query(reader, token) is grpc.StatusCode.OK

    four.network.set_enabled(disabled.node_id, is_enabled=False)

    # It was told apart while the node ran, and by the node that starts later.
    until(lambda: code_of_query(reader, token) is grpc.StatusCode.UNAUTHENTICATED)
    starting.restart()
    until(lambda: envelope in starting.holds(disabled.node_id))
    until(lambda: reader.substitutes(disabled) == ids_of([starting, other]))
    # Two nodes are read from themselves, and the third from both.
    until(lambda: reader.peer_streams() == 4)
    with pytest.raises(grpc.RpcError, match="expected an enabled node, got a disabled one"):
        disabled.publish()
    until(lambda: disabled.number('chainkit_node_registry_state{state="disabled"}') == 1)

    four.network.set_enabled(disabled.node_id, is_enabled=True)
    starting.originates()
    for node in four.nodes:
        until(lambda: reads_directly(node, four.nodes))  # noqa: B023
    until(lambda: bool(four.publish(disabled)))
    until(lambda: disabled.number('chainkit_node_registry_state{state="enabled"}') == 1)
    until(lambda: four.hold_the_same(four.nodes))


def code_of_query(node: RealNode, token: str) -> grpc.StatusCode:
    request = QueryEnvelopesRequest(query=query(originators=[node.node_id])).SerializeToString()
    call = node.api.channel.unary_unary(f"/{REPLICATION}/QueryEnvelopes")
    try:
        call(request, timeout=10, metadata=[(NODE_TOKEN_KEY, token)])
    except grpc.RpcError as error:
        code: grpc.StatusCode = error.code()  # type: ignore[attr-defined]
        return code
    return grpc.StatusCode.OK


def test_databases__after_all_faults_and_beside_their_nodes__are_verified(four: Four) -> None:
    for node in four.nodes:
        folder = f'{{folder="{node.record.parent}"}}'
        assert node.number(f"chainkit_indexer_disk_free_bytes{folder}") > 0
        verified = run("node", "verify", "--database", node.database, "--json")

        assert verified.code == 0, verified.out
        held = {
            each["originator_id"]: each["envelopes"] for each in verified.content["originators"]
        }
        acknowledged = {each: len(set(some)) for each, some in four.acknowledged.items()}
        assert all(held[each] >= count for each, count in acknowledged.items())


@pytest.mark.conforms("N32", "N33", "2.2.1-14", "2.2.1-15")
def test_operator__with_a_new_key__is_followed_and_its_old_node_no_more(four: Four) -> None:
    old, *others = four.nodes
    four.publish(old)
    new = four.network.add()
    new.listens()
    new.originates()
    # Before anybody restarts: all of them open streams to the node that was added.
    four.publish(new)
    until(lambda: four.hold_the_same([*four.nodes, new]))

    four.network.set_enabled(old.node_id, is_enabled=False)
    old.kill()

    for node in (new, *others):
        until(lambda: node.peer_streams() == expected_streams(len(others)))  # noqa: B023
    four.publish(new)
    until(lambda: four.hold_the_same([*others, new]))
    four.nodes[0] = new


def expected_streams(others: int) -> int:
    """Each other enabled node is asked for its own, and for those of the old one."""
    return 2 * others
