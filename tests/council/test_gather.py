"""`chainkit council gather` from real servers, and what triage makes of it on a real registry."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import chainkit.cli.council.gather as gather_module
from chainkit.contracts.interface import shipped_interface
from chainkit.misbehavior.types import Misbehavior
from localnet.ports import free_port
from support.audit.identities import key_of
from support.chains.chain import REGISTRY_OWNER, LocalChain, dev_address
from support.command_line import Outcome, run
from support.council.hosts import HonestHost, after, hosted, hosted_safety, page, served
from support.originated import NOW_NS, signed

HONEST, OTHER, LIAR, OFF, AWAY = 100, 200, 300, 400, 500

TWICE = [signed(LIAR, 1), signed(LIAR, 1, NOW_NS - 1)]
"""The liar signed two envelopes of one sequence id."""


def proof(host_id: int, stored_ns: int) -> bytes:
    """A client's report of it, which the client sent to several nodes."""
    duplicate = Misbehavior.DUPLICATE_SEQUENCE_ID
    return hosted_safety(host_id, LIAR, stored_ns, duplicate, *TWICE)


def lie(request: bytes) -> bytes:
    """Hides what it has about itself, and accuses others under keys that it does not hold."""
    forged = [hosted(LIAR, HONEST, 1 + n, key=key_of(1000 + n)) for n in range(3)]
    return page(*forged, hosted(LIAR, HONEST, 9)) if after(request) == 0 else page()


class Council:
    """Nodes, two of them behind a server of their own, and what the council runs."""

    def __init__(self, chain: LocalChain, folder: Path, servers: ExitStack) -> None:
        answers = {
            HONEST: HonestHost([proof(HONEST, 5), hosted(HONEST, AWAY, 6), hosted(HONEST, OFF, 7)]),
            OTHER: HonestHost([proof(OTHER, 3)], page_size=1),
            OFF: HonestHost([hosted(OFF, AWAY, 8)]),
        }
        urls = {
            node_id: servers.enter_context(served(each.answer)) for node_id, each in answers.items()
        }
        urls[LIAR] = servers.enter_context(served(lie))
        urls[AWAY] = f"http://127.0.0.1:{free_port()}"
        self.off_url, urls[OFF] = urls[OFF], "https://gone.example"
        for number, node_id in enumerate((HONEST, OTHER, LIAR, OFF, AWAY)):
            added = chain.add_node(
                dev_address(2 + number), key_of(node_id).public_key, urls[node_id]
            )
            assert added == node_id
        update = shipped_interface("NodeRegistry").encode("updateHealth", OFF, False)
        chain.send(chain.record.node_registry.address, update, REGISTRY_OWNER)
        self.answers = answers
        self._options = ("--rpc", chain.url, "--deployment", chain.record_path)
        self.folder = folder / "evidence"

    def gather(self, *options: object) -> Outcome:
        off = ("--node", f"{OFF}={self.off_url}")
        outcome = run("council", "gather", self.folder, *self._options, *off, *options)
        if "--json" not in options:
            assert max(map(len, [*outcome.out.splitlines(), ""])) <= 100 + len(str(self.folder))
        return outcome

    def triage(self) -> Outcome:
        return run("council", "triage", self.folder, *self._options, "--json")


@pytest.fixture
def council(local_chain: LocalChain, tmp_path: Path) -> Iterator[Council]:
    with ExitStack() as servers:
        yield Council(local_chain, tmp_path, servers)


@pytest.mark.conforms("N53", "3.2.7-3")
def test_gather__node_that_hides_its_own_proof__is_found_by_the_others_reports(
    council: Council,
) -> None:
    outcome = council.gather()

    assert outcome.code == 1, outcome.err
    content = json.loads((council.folder / "gather.json").read_text())
    nodes = {each["node_id"]: each for each in content["nodes"]}
    assert {each: nodes[each]["reports"] for each in nodes} == {
        HONEST: 3, OTHER: 1, LIAR: 1, OFF: 1, AWAY: 0
    }  # fmt: skip
    assert [each for each in nodes if nodes[each]["complete"]] == [HONEST, OTHER, OFF]
    assert (nodes[LIAR]["wrong_key"], nodes[LIAR]["left_out"]) == (3, 1)
    assert (nodes[OFF]["status"], nodes[OFF]["fault"]) == ("disabled", None)
    assert "UNAVAILABLE" in nodes[AWAY]["fault"]
    judged = council.triage()
    assert judged.code == 1, judged.err
    assert judged.content["disable"] == [LIAR]
    accused = {each["node_id"]: each["recommendation"] for each in judged.content["nodes"]}
    assert accused == {
        LIAR: "disable: one safety proof",
        AWAY: "wait: 2 of 3 reporters",
        OFF: "wait: 1 of 3 reporters",
        HONEST: "wait: 1 of 3 reporters",
    }
    assert len(list(council.folder.glob("*.pb"))) == 6
    assert judged.content["not_counted"] == []


def test_gather__again_after_a_time__adds_what_is_new_alone(council: Council) -> None:
    first = council.gather("--json")
    council.answers[HONEST].reports = [*council.answers[HONEST].reports, hosted(HONEST, OFF, 11)]

    second = council.gather("--json", "--after", 7)

    assert first.content["nodes"][0]["next_after_ns"] == "7"
    nodes = {each["node_id"]: (each["reports"], each["new"]) for each in second.content["nodes"]}
    assert nodes == {HONEST: (1, 1), OTHER: (0, 0), LIAR: (0, 0), OFF: (1, 0), AWAY: (0, 0)}
    assert len(list(council.folder.glob("*.pb"))) == 7


def test_gather__takes_long__tells_which_nodes_are_waited_for(
    council: Council, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    @contextmanager
    def told_at_begin_and_end(words: Callable[[], str]) -> Iterator[None]:
        told.append(words())
        yield
        told.append(words())

    monkeypatch.setattr(gather_module, "told_while_waiting", told_at_begin_and_end)

    council.gather("--seconds", 20)

    first, last = told
    assert first == "0 of 5 nodes done; waiting for 100, 200, 300, 400, 500, up to 20 s each"
    assert last.startswith("5 of 5 nodes done")


def test_gather__node_that_is_not_registered__is_refused(council: Council) -> None:
    outcome = council.gather("--node", "900=http://127.0.0.1:1")

    assert outcome.code == 2
    assert "expected a node of the registry: 100, 200, 300, 400, 500, got 900" in outcome.err


def test_gather__nobody_answers__could_not_be_done(local_chain: LocalChain, tmp_path: Path) -> None:
    closed = f"http://127.0.0.1:{free_port()}"
    local_chain.add_node(dev_address(2), key_of(HONEST).public_key, closed)
    record = ("--rpc", local_chain.url, "--deployment", local_chain.record_path)

    outcome = run("council", "gather", tmp_path / "evidence", *record)

    assert outcome.code == 2
    assert "UNAVAILABLE" in outcome.out
