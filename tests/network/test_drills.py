"""Several people at once: today's native clients on one node, which is killed, and one gateway."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial

import pytest

from support.chains.chain import Deployment
from support.network.drill import NONE, Drill, Group, differences, drill, renamed, together
from support.network.node_sdk import NodeSdkClient
from support.network.real_nodes import until

STREAM_SECONDS = 20.0
"""How long a message may take to be shown: one that is lost never is."""
OUTAGE_SECONDS = 8.0


@pytest.fixture(scope="module")
def small(
    local_deployment: Deployment, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Drill]:
    with drill(local_deployment, tmp_path_factory.mktemp("drills")) as running:
        yield running


@pytest.fixture(scope="module")
def people(small: Drill) -> Iterator[list[NodeSdkClient]]:
    with small.people(3) as registered:
        yield registered


@pytest.fixture
def group(small: Drill, people: list[NodeSdkClient]) -> Group:
    return small.group(people)


@pytest.fixture
def streamer(people: list[NodeSdkClient], group: Group) -> NodeSdkClient:
    """Begins to stream once it is in the group; a second stream of a client is another one."""
    people[2].stream()
    return people[2]


def test_send__two_at_the_same_moments__all_lists_have_one_order_and_the_stream_each_text_once(
    group: Group, streamer: NodeSdkClient
) -> None:
    texts = [[f"{name} {number}" for number in range(60)] for name in ("ann", "ben")]
    ann, ben, _ = group.members

    together([partial(group.send_all, ann, texts[0]), partial(group.send_all, ben, texts[1])])

    sent = [*texts[0], *texts[1]]
    assert differences(sent, group.shows(streamer, sent, STREAM_SECONDS)) == NONE
    lists = group.lists()
    assert differences(sent, lists[0][3:]) == NONE
    assert lists == [lists[0]] * 3


def test_rename__only_node_is_away_meanwhile__one_commit_and_its_sender_goes_on(
    small: Drill, group: Group
) -> None:
    [node] = small.network.nodes
    ann, ben, _ = group.members
    before = len(small.commits(group))

    small.network.chain.pause_mining()
    with ThreadPoolExecutor(1) as pool:
        renaming = pool.submit(ann.rename, group.group_id, "in the dark")
        until(small.is_in_pool)
        node.kill()
        small.network.chain.resume_mining()
        small.network.chain.mine()
        time.sleep(OUTAGE_SECONDS)
        node.restart()
        wait([renaming])
    commits = len(small.commits(group)) - before
    assert commits == 1
    renaming.result()
    assert group.names() == {"in the dark"}
    ben.send(group.group_id, "can you read me?")
    ann.send(group.group_id, "yes")
    lists = group.lists()
    assert lists == [lists[0]] * 3
    assert lists[0][3:] == [renamed("in the dark"), "can you read me?", "yes"]


def test_rename__in_turns_with_texts_within_seconds__lists_and_streams_show_all_in_one_order(
    group: Group, streamer: NodeSdkClient
) -> None:
    ann, ben, _ = group.members
    done = []
    for number in range(8):
        sender = (ann, ben)[number % 2]
        sender.rename(group.group_id, f"name {number}")
        sender.send(group.group_id, f"text {number}")
        done += [renamed(f"name {number}"), f"text {number}"]

    assert differences(done, group.shows(streamer, done, STREAM_SECONDS)) == NONE
    lists = group.lists()
    assert lists == [lists[0]] * 3
    assert lists[0][3:] == done
    assert group.names() == {"name 7"}
