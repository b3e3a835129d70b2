from dataclasses import replace
from typing import Any

import pytest
from eth_utils.address import to_checksum_address

from chainkit.cli.council.log_output import echo_trail, trail_json
from chainkit.council.calls import Call
from chainkit.council.log.calls import TrailCall
from chainkit.council.log.executions import Act
from chainkit.council.log.proposals import KeptProposals
from chainkit.council.log.signers import Signer
from chainkit.council.log.trail import Trail
from chainkit.council.log.transactions import Entry
from chainkit.council.proposal import AddressBook
from chainkit.council.proposal.grounds import Trailer
from chainkit.types import BlockReference
from support.council.fake_registry import node_key
from support.council.proposals import EXPIRES, OWNERS, RECORD, SAFE, disable, grounds

BLOCK = BlockReference(7, b"\x0b" * 32)
LOOK_ALIKE = OWNERS[0][:6] + 32 * "0" + OWNERS[0][-4:]


def call(made: Call) -> TrailCall:
    return TrailCall(made.target, made.calldata, 0, made, "")


def act(*calls: TrailCall, **changes: Any) -> Act:
    signers = tuple(Signer(owner, True, True, "") for owner in OWNERS[:2])
    trailer = Trailer(EXPIRES, grounds().digest)
    return replace(
        Act(b"\x0c" * 32, 3, True, "calldata", calls, signers, trailer, grounds()), **changes
    )


def trail(*acts: Act, **changes: Any) -> Trail:
    entry = Entry(BLOCK, 1000, b"\x0d" * 32, "council", OWNERS[2], acts, (), (), ())
    return Trail(1, BLOCK, (replace(entry, **changes),), (), ())


def shown(given: Trail, capsys: pytest.CaptureFixture[str], kept: Any = None) -> list[str]:
    echo_trail(given, AddressBook(RECORD, SAFE), SAFE, kept or KeptProposals())
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    assert all(line.isprintable() for line in lines)
    return lines


def test_show__execution__is_one_paragraph(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(trail(act(call(disable()))), capsys)

    assert lines[3:16] == [
        f"block           {BLOCK}, 1970-01-01 00:16 UTC, by the council's account",
        f"transaction     0x{'0d' * 32}",
        f"sent by         {OWNERS[2]} (carol)",
        "nonce           3, success",
        f"SafeTx hash     0x{'0c' * 32}",
        f"signed by       {OWNERS[0]} (alice)",
        f"signed by       {OWNERS[1]} (bob)",
        "call            NodeRegistry.updateHealth(tokenId=300, isHealthy=false)",
        f"grounds         0x{grounds().digest.hex()}",
        "valid until     2096-10-02 07:06 UTC",
        'reason          > "node 300 served what the chain does not hold"',
        f"evidence        sha256 {'ab' * 32}",
        '                > "node-300"',
    ]
    assert lines[-1] == "warnings        none"


def test_show__long_arguments__have_a_line_each_and_move_no_cursor(
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = "https://a.example/\x1b[2J" + 300 * "x"
    made = Call.make(RECORD, "NodeRegistry", "addNode", OWNERS[0], node_key(1).public_key, url)

    lines = shown(trail(act(call(made))), capsys)

    start = lines.index("call            NodeRegistry.addNode")
    assert lines[start + 1] == f"  to            {OWNERS[0]} (alice)"
    assert any(r"https://a.example/\x1b[2Jxxx" in line for line in lines)
    assert "                … (322 characters; --json shows all)" in lines
    assert any("characters; --json shows all)" in line for line in lines)
    (found,) = trail_json(trail(act(call(made))), SAFE, KeptProposals())["transactions"]
    assert found["acts"][0]["calls"][0]["arguments"]["httpAddress"] == url


def test_show__signer_that_passes_for_an_owner__is_called_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    passing = to_checksum_address(LOOK_ALIKE)
    signer = Signer(passing, False, False, "a contract's signature, not checked here")

    text = " ".join(shown(trail(act(call(disable()), signers=(signer,))), capsys))

    text = " ".join(text.split())
    assert f"{passing} (NOT IN YOUR FILE, and looks like {OWNERS[0]}: alice)" in text
    assert "a contract's signature, not checked here, NO OWNER THEN" in text


def test_show__alarms__stand_in_the_paragraph_and_are_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = trail(alarms=("first", "second"))
    found = replace(found, alarms=("third",))

    lines = shown(found, capsys, KeptProposals(unread=("no proposal",)))

    assert not found.is_clean
    assert [line for line in lines if line.startswith("WARNING")] == [
        "WARNING         first",
        "WARNING         second",
        "WARNING         third",
    ]
    assert "not read        no proposal" in lines
    assert lines[-1] == "warnings        3"
    content = trail_json(found, SAFE, KeptProposals())
    assert (content["clean"], content["warnings"]) == (False, ["third"])
    assert content["transactions"][0]["warnings"] == ["first", "second"]


def test_show__calls_not_found__says_nothing_of_grounds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    unknown = act(source=None, nonce=None, signers=(), trailer=None, grounds=None)

    lines = shown(trail(unknown), capsys)

    assert "nonce           unknown, success" in lines
    assert not any(line.startswith("grounds") for line in lines)
