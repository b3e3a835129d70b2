"""All nodes asked at once: no fault of one is another's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from chainkit.council.gathering.folder import ReportFolder
from chainkit.council.gathering.gatherer import ATTEMPTS, Gathered, Gatherer, Host
from chainkit.council.gathering.node_answers import Share
from chainkit.council.gathering.page import gather_page
from chainkit.council.triage.files import find_evidence
from chainkit.errors import ChainError, ConfigurationError, EndpointUnavailable, RateLimited
from chainkit.types import BlockReference
from support.council.hosts import Answer, FakeNetwork, HonestHost, after, at_once, hosted, page
from support.council.triage import registered

BLOCK = BlockReference(7, b"\7" * 32)
TOO_LONG = 3_600
"""Seconds: no test waits for it."""


def host(node_id: int) -> Host:
    return Host(registered(node_id, is_enabled=node_id != 200).node, f"http://{node_id}")


def gathered(
    folder: Path, answers: Mapping[int, Answer], seconds: float = TOO_LONG, nodes: int = 0
) -> dict[int, Gathered]:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    network = FakeNetwork({f"http://{node_id}": each for node_id, each in answers.items()})
    report_folder = ReportFolder(folder)
    share = report_folder.share(nodes or len(answers), seconds)
    gatherer = Gatherer(report_folder, network.connect, share, sleep=sleep)
    told: list[Gathered] = []
    results = asyncio.run(gatherer.gather([host(each) for each in answers], told.append))
    assert sorted(map(id, told)) == sorted(map(id, results))
    return {each.host.node.node_id: each for each in results}


def honest(node_id: int, *stored: int) -> Answer:
    return at_once(HonestHost([hosted(node_id, 300, each) for each in stored]).answer)


def refusing(error: ChainError, *then: Answer) -> Answer:
    """Refuses ``ATTEMPTS - 1`` times, then answers, if there is an answer."""
    asked: list[bytes] = []

    async def ask(request: bytes) -> bytes:
        asked.append(request)
        if then and len(asked) >= ATTEMPTS:
            return await then[0](request)
        raise error

    return ask


async def silent(_: bytes) -> bytes:
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


AWAY = EndpointUnavailable("node", "a page", "UNAVAILABLE")


@pytest.mark.conforms("N53")
def test_gather__some_nodes_are_at_fault__all_others_reports_are_kept(tmp_path: Path) -> None:
    answers = {
        100: honest(100, 1, 2, 3),
        200: honest(200, 5),
        300: refusing(AWAY),
        400: at_once(lambda _: b"\xff"),
        500: at_once(lambda request: page(hosted(100, 300, after(request) + 1))),
    }

    results = gathered(tmp_path / "new", answers)

    faults = {node_id: each.fault for node_id, each in results.items()}
    assert (faults[100], faults[200]) == (None, None)
    assert "got UNAVAILABLE" in (faults[300] or "")
    assert "a page of reports, got 1 other bytes" in (faults[400] or "")
    assert "pages without one" in (faults[500] or "")
    assert results[500].pages.wrong_key == 8
    assert [each for each in results if results[each].is_complete] == [100, 200]
    kept = names(tmp_path / "new")
    assert sorted({each[:8] for each in kept}) == ["node-100", "node-200"]
    assert len(kept) == 4
    assert len(find_evidence(tmp_path / "new").pieces) == 4


def test_gather__silent_node__ends_after_its_time(tmp_path: Path) -> None:
    results = gathered(tmp_path, {100: silent, 200: honest(200, 1)}, seconds=0.01)

    assert results[100].fault == "not done after 0.01 s"
    assert results[200].is_complete


def test_gather__node_that_drips__keeps_what_came_before_its_time(tmp_path: Path) -> None:
    answer = honest(100, 1, 2, 3)

    async def drips(request: bytes) -> bytes:
        return await (answer if after(request) == 0 else silent)(request)

    results = gathered(tmp_path, {100: drips}, seconds=0.05)

    assert results[100].fault == "not done after 0.05 s"
    assert (results[100].new, results[100].pages.after_ns) == (2, 2)


@pytest.mark.parametrize("error", [AWAY, RateLimited("node", "a page", "RESOURCE_EXHAUSTED")])
def test_gather__busy_node__is_asked_again(tmp_path: Path, error: ChainError) -> None:
    results = gathered(tmp_path, {100: refusing(error, honest(100, 1))})

    assert results[100].is_complete
    assert results[100].new == 1


def test_gather__node_whose_url_is_none__is_its_own_fault(tmp_path: Path) -> None:
    gatherer = Gatherer(ReportFolder(tmp_path), FakeNetwork({}).connect, Share(1, 1, 1))

    (result,) = asyncio.run(gatherer.gather([host(100)]))

    assert result.fault == "URL of the node: expected http://host:port, got another URL"


def test_gather__again__overwrites_nothing_and_adds_what_is_new(tmp_path: Path) -> None:
    first = gathered(tmp_path, {100: honest(100, 1, 2)})
    before = {each.name: each.stat().st_mtime_ns for each in tmp_path.iterdir()}

    second = gathered(tmp_path, {100: honest(100, 1, 2, 3)})

    assert (first[100].new, second[100].new, second[100].pages.reports) == (2, 1, 3)
    assert {name: (tmp_path / name).stat().st_mtime_ns for name in before} == before


def test_gather__file_of_that_name_with_other_content__is_refused(tmp_path: Path) -> None:
    gathered(tmp_path, {100: honest(100, 1)})
    (path,) = tmp_path.iterdir()

    for data in (b"\xff", hosted(100, 300, 9)):
        path.write_bytes(data)
        with pytest.raises(ConfigurationError, match="what it was named after"):
            gathered(tmp_path, {100: honest(100, 1)})
        assert path.read_bytes() == data


def test_gather__link_of_that_name__is_refused_and_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "evidence"
    gathered(folder, {100: honest(100, 1)})
    (path,) = folder.iterdir()
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(ConfigurationError, match="no link"):
        gathered(folder, {100: honest(100, 1)})


def test_folder__share__is_the_same_for_each_node_and_fits_triage(tmp_path: Path) -> None:
    folder = ReportFolder(tmp_path)

    assert folder.share(1, 5).reports == 5_000
    assert folder.share(100, 5) == Share(199, 2**30 // 100, 5)
    with pytest.raises(ConfigurationError, match="gather into a new folder"):
        folder.share(20_000, 5)


def test_folder__something_else__is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    for path in (tmp_path / "file", tmp_path / "missing" / "folder"):
        with pytest.raises(ConfigurationError, match="a folder for reports"):
            ReportFolder(path)


# ------------------------------------------------------------------ the page


@pytest.mark.conforms("N53")
def test_page__node_that_leaves_out_what_others_have__is_seen(tmp_path: Path) -> None:
    def of_client(node_id: int, stored: int) -> bytes:
        return hosted(node_id, 300, stored, time_ns=7, is_from_node=False)

    answers = {
        300: honest(300),
        100: at_once(HonestHost([of_client(100, 1), hosted(100, 300, 2)]).answer),
        200: at_once(HonestHost([of_client(200, 9)]).answer),
    }
    results = gathered(tmp_path, answers)

    content = gather_page(list(results.values()), 31337, BLOCK, 0)

    left_out = {each["node_id"]: each["left_out"] for each in content["nodes"]}
    assert left_out == {100: 0, 200: 0, 300: 1}
    assert [each["status"] for each in content["nodes"]] == ["enabled", "disabled", "enabled"]
    hosts = {each["submitted_by_node"]: each["hosts"] for each in content["reports"]}
    assert hosts == {False: [100, 200], True: [100]}
    assert content["complete"]


def test_page__written__is_replaced_and_triage_does_not_look_at_it(tmp_path: Path) -> None:
    gathered(tmp_path, {100: honest(100, 1)})
    folder = ReportFolder(tmp_path)

    for number in (1, 2):
        folder.write_page({"number": number})

    assert json.loads((tmp_path / "gather.json").read_text()) == {"number": 2}
    found = find_evidence(tmp_path)
    assert (len(found.pieces), found.others) == (1, {})


def test_page__link_in_its_place__is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "mine"
    target.write_text("mine")
    folder = ReportFolder(tmp_path)
    (tmp_path / "gather.json").symlink_to(target)

    with pytest.raises(ConfigurationError, match="a regular file to write over"):
        folder.write_page({})
    assert target.read_text() == "mine"
    assert "gather.json" in find_evidence(tmp_path).others
