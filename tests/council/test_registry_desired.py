"""`chainkit registry diff` and `plan`: from a file of nodes to calls that a real registry takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from chainkit.signatures import address_of
from support.chains.chain import REGISTRY_OWNER, LocalChain
from support.council.registry_commands import (
    KEYS,
    OPERATOR,
    OTHER_OPERATOR,
    registry_command,
    sent_by,
    standing,
)


@dataclass(frozen=True)
class Wanted:
    """A node in the file."""

    number: int
    status: str = "enabled"
    holder: str = OPERATOR
    url: str = ""

    def __str__(self) -> str:
        return (
            f"  - key: 0x{KEYS[self.number].hex()}\n    holder: {self.holder}\n"
            f"    http_address: {self.url or url(self.number)}\n    status: {self.status}\n"
        )


def url(number: int) -> str:
    return f"https://{number}.example"


def write(folder: Path, *nodes: Wanted) -> Path:
    path = folder / "nodes.yaml"
    path.write_text("nodes:\n" + "".join(map(str, nodes)) if nodes else "nodes: []\n")
    return path


@pytest.fixture
def chain(local_chain: LocalChain) -> LocalChain:
    """Nodes 100 and 200, both enabled."""
    for number in (0, 1):
        local_chain.add_node(OPERATOR, KEYS[number], url(number))
    return local_chain


def test_diff__chain_as_in_the_file__exits_0(chain: LocalChain, tmp_path: Path) -> None:
    outcome = registry_command(chain, "diff", write(tmp_path, Wanted(0), Wanted(1)))

    assert outcome.code == 0, outcome.err
    assert outcome.out.endswith("verdict         the same\n")


def test_diff__chain_differs__exits_1_and_tells_it_by_node(
    chain: LocalChain, tmp_path: Path
) -> None:
    before = standing(chain)
    path = write(tmp_path, Wanted(0, "disabled", OTHER_OPERATOR), Wanted(2))

    outcome = registry_command(chain, "diff", path)
    as_json = registry_command(chain, "diff", path, "--json")

    assert (outcome.code, as_json.code) == (1, 1)
    assert max(map(len, outcome.out.splitlines())) <= 100
    text = " ".join(outcome.out.split())
    assert "node 100 status: enabled -> disabled" in text
    assert f"holder: {OPERATOR} -> {OTHER_OPERATOR}" in text
    assert f"new node key of {address_of(KEYS[2])} status: (none) -> enabled" in text
    assert "node 200 enabled and not in the file" in text
    assert as_json.content["differs"] is True
    assert [node["node_id"] for node in as_json.content["nodes"]] == [100, None]
    assert [node["node_id"] for node in as_json.content["unlisted"]] == [200]
    assert standing(chain) == before


def test_diff__at_an_earlier_block__is_of_that_block(chain: LocalChain, tmp_path: Path) -> None:
    path, earlier = write(tmp_path, Wanted(0)), chain.head().number - 1

    assert registry_command(chain, "diff", path, "--block", earlier).code == 0
    assert registry_command(chain, "diff", path).code == 1


def test_plan__everything_at_once__is_shown_in_order_and_not_sent(
    chain: LocalChain, tmp_path: Path
) -> None:
    before = standing(chain)
    path = write(tmp_path, Wanted(0, "disabled", OTHER_OPERATOR), Wanted(2))

    outcome = registry_command(chain, "plan", path, "--no-check-url")
    sent = registry_command(
        chain, "plan", path, "--no-check-url", *sent_by(tmp_path, REGISTRY_OWNER)
    )
    as_json = registry_command(chain, "plan", path, "--no-check-url", "--json").content

    assert outcome.code == 0, outcome.err
    assert max(map(len, outcome.out.splitlines())) <= 100
    functions = [line.split()[1] for line in outcome.out.splitlines() if line.startswith("call ")]
    assert functions == ["addNode", "updateHealth", "transferFrom"]
    assert "warning: node 200 is enabled and not in the file" in outcome.err
    assert [call["function"] for call in as_json["calls"]] == functions
    assert (sent.code, as_json["sent"]) == (2, False)
    assert "3 calls: an account with a key makes one call at a time" in sent.err
    assert standing(chain) == before


@pytest.mark.parametrize(
    "wanted",
    [
        (Wanted(0, "disabled"), Wanted(1)),
        (Wanted(0), Wanted(1, holder=OTHER_OPERATOR)),
        (Wanted(0), Wanted(1), Wanted(2)),
    ],
    ids=["disable", "transfer", "add"],
)
def test_plan__one_call_broadcast__makes_chain_and_file_the_same(
    chain: LocalChain, tmp_path: Path, wanted: tuple[Wanted, ...]
) -> None:
    path, sending = write(tmp_path, *wanted), sent_by(tmp_path, REGISTRY_OWNER)

    sent = registry_command(chain, "plan", path, "--no-check-url", *sending)

    assert sent.code == 0, sent.err
    assert registry_command(chain, "diff", path).code == 0
    again = registry_command(chain, "plan", path, "--no-check-url", *sending)
    assert again.code == 2
    assert "expected something that differs, got all" in again.err


def test_plan__what_no_call_can_reach__is_told_at_once(chain: LocalChain, tmp_path: Path) -> None:
    path = write(
        tmp_path,
        Wanted(0, url="https://moved.example"),
        replace(Wanted(2), url=url(1)),
        Wanted(3, "disabled"),
    )

    outcome = registry_command(chain, "plan", path)

    assert outcome.code == 2
    assert "node 100 keeps its URL" in outcome.err
    assert "the key of node 200, which keeps its key" in outcome.err
    assert "nodes[2].status enabled for a new node" in outcome.err
    assert outcome.err.count("error:") == 1


@pytest.mark.parametrize("command", ["diff", "plan"])
def test_command__file_that_cannot_be_used__is_refused_before_the_chain_is_asked(
    chain: LocalChain, tmp_path: Path, command: str
) -> None:
    path = write(tmp_path, Wanted(0, "asleep"), Wanted(0))

    outcome = registry_command(chain, command, path, url="http://127.0.0.1:9")

    assert outcome.code == 2
    assert "nodes[0].status" in outcome.err
    assert "connection refused" not in outcome.err
