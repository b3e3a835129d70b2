import json
import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import update

from chainkit.chain import Endpoint, RetryPolicy
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.database import Database
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.store import Store
from localnet.commands import CHAINKIT
from support.chains.chain import LocalChain
from support.command_line import run as run_here

from .conftest import GROUP, Node, chainkit, publish
from .test_commands import unused_url

pytest_plugins = ["support.indexer.revisions"]


def test_rewind__indexer_runs__is_refused_and_read_only_commands_are_not(
    node: Node, local_chain: LocalChain, tmp_path: Path
) -> None:
    publish(local_chain, 2)
    node.catch_up()
    before = node.payload_rows()
    process = node.start()
    database = ["--database", str(node.database)]
    try:
        assert process.stderr is not None
        publish(local_chain, 1, start=5)
        while "1 envelopes" not in process.stderr.readline():
            pass
        target = local_chain.head().number - 2
        rewind = ("index", "rewind", "--to-block", target, *database)
        refused = run_here(*rewind, "--apply")
        assert refused.code == 2
        assert "expected no other indexer" in refused.err
        assert run_here("index", "migrate", *database, "--apply").code == 2
        assert run_here(*rewind).code == 0
        assert run_here("index", "migrate", *database).out.startswith("up to date")
        assert run_here("index", "status", *database).code == 0
        assert run_here("index", "history", 1, *database).code == 0
        assert run_here("index", "export", *database, "--out", tmp_path / "export").code == 0
    finally:
        process.terminate()
        assert process.wait(timeout=30) == 0
        assert process.stderr is not None
        process.stderr.close()
    assert node.payload_rows()[0][:2] == before[0]


def test_inspect__reorg_and_strangers_bytes__are_told_in_text_and_json(
    node: Node, local_chain: LocalChain, tmp_path: Path
) -> None:
    publish(local_chain, 1)
    local_chain.publish_message(GROUP, b"\x0a\x1b[2J not one")
    publish(local_chain, 1, start=1)
    node.catch_up()
    local_chain.reorg(1, [])
    publish(local_chain, 1, start=2)
    node.catch_up()
    database = ["--database", str(node.database)]

    history = run_here("index", "history", 3, *database, "--json").content
    text = run_here("index", "history", 3, *database).out
    transaction = history["retracted"][0]["transaction_hash"]
    listed = run_here("index", "quarantine", "list", *database)
    payload = tmp_path / "payload.bin"
    shown = run_here("index", "quarantine", "show", 2, *database, "--out", payload)

    assert [each["outcome"] for each in history["retracted"]] == ["dropped"]
    assert (history["now"]["state"], history["now"]["finality"]) == ("served", "soft")
    assert history["now"]["confirmations"] == 1
    assert "taken back by reorg 1 above block" in text
    assert "\n    soft, 1 confirmations" in text
    assert f"transaction {transaction[:10]}…" in text
    assert max(map(len, text.splitlines())) <= 100
    assert "\\x1b[2J not one" in listed.out
    assert "\x1b" not in listed.out + shown.out
    assert payload.read_bytes() == b"\x0a\x1b[2J not one"
    content = run_here("index", "quarantine", "list", *database, "--json").content
    assert [each["sequence_id"] for each in content["quarantined"]] == [2]
    assert content["more"] is False
    content = run_here("index", "quarantine", "show", 2, *database, "--json").content
    assert content["quarantined"]["payload"] == "0x" + b"\x0a\x1b[2J not one".hex()
    assert run_here("index", "history", 99, *database).code == 1
    assert run_here("index", "quarantine", "show", 1, *database).code == 1


def test_verify__rows_that_do_not_hold__are_few_short_lines_and_mended_by_a_rewind(
    node: Node, local_chain: LocalChain
) -> None:
    publish(local_chain, 24)
    finality = ["--finality", "2", "--until-idle"]
    assert chainkit("index", "run", *node.follower_options(), *finality).returncode == 0
    before = node.payload_rows()
    database = ["--database", node.database]
    opened = Database(str(node.database))
    with opened.writing() as connection:
        connection.execute(update(schema.envelope_logs).values(transaction_hash=b"\x01" * 32))
    opened.close()
    first = before[0][0]["block_number"]
    rpc = ["--rpc", local_chain.url]
    verify = ("index", "verify", *database, *rpc, "--deployment", local_chain.record_path)

    text = run_here(*verify, "--to-block", local_chain.head().number)
    content = run_here(*verify, "--to-block", local_chain.head().number, "--json").content

    assert max(map(len, text.out.splitlines())) <= 100
    # A line that is wider than a terminal goes on in an indented one.
    lines = text.out.replace("\n  ", " ").splitlines()
    assert (text.code, len(lines)) == (1, 22)
    assert lines[0].endswith(f", got 0x01010101… (block {first}, log 0)")
    assert lines[20] == "… and 4 more (--json lists all)"
    assert len(content["differences"]) == content["difference_count"] == 24
    assert content["differences"][0]["got"] == "0x" + "01" * 32
    rewind = ("index", "rewind", "--below-final", "--to-block", first - 1, *database, *rpc)
    assert run_here(*rewind, "--apply").code == 0
    assert "expected blocks to take back, got none" in run_here(*rewind).err
    assert chainkit("index", "run", *node.follower_options(), *finality).returncode == 0
    assert run_here(*verify).code == 0
    assert node.payload_rows() == before


@pytest.mark.parametrize("command", ["verify", "rewind", "replay"])
def test_repair__endpoints_in_the_environment_of_which_one_is_dead__asks_the_other(
    node: Node, local_chain: LocalChain, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    publish(local_chain, 4)
    finality = ["--finality", "2", "--until-idle"]
    assert chainkit("index", "run", *node.follower_options(), *finality).returncode == 0
    local_chain.reorg(1)
    node.catch_up()
    monkeypatch.setenv("CHAINKIT_RPC", f"{unused_url()} {local_chain.url}")
    more: dict[str, list[object]] = {
        "verify": ["--deployment", local_chain.record_path],
        "rewind": ["--below-final", "--to-block", local_chain.head().number - 3],
        "replay": [],
    }

    outcome = run_here("index", command, "--database", node.database, *more[command])

    said = {
        "verify": "all as on the chain",
        "rewind": "nothing was changed; add --apply",
        "replay": "dropped transactions: 1 would be sent",
    }
    assert outcome.err == ""
    assert outcome.code == 0
    assert said[command] in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 100


def test_status__watched__tells_each_round_in_a_line(node: Node, local_chain: LocalChain) -> None:
    publish(local_chain, 1)
    node.catch_up()
    watch = ["--database", node.database, "--watch", "0.1", "--rpc", local_chain.url]

    rounds = run_here("index", "status", *watch, "--rounds", 3, "--json")
    text = run_here("index", "status", *watch, "--rounds", 2)

    assert rounds.code == text.code == 0
    lines = [json.loads(line) for line in rounds.out.splitlines()]
    assert [line["envelopes"] for line in lines] == [1, 1, 1]
    assert [line["blocks_behind"] for line in lines] == [0, 0, 0]
    assert text.out.count("cursor ") == 2


def test_status__watched_while_the_endpoint_is_out__goes_on_and_says_so_once(
    node: Node, local_chain: LocalChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(local_chain, 1)
    node.catch_up()
    connect, dead = Endpoint.connect, unused_url()
    rounds = iter([local_chain.url, dead, dead, local_chain.url])
    once = RetryPolicy(attempts=1)
    monkeypatch.setattr(Endpoint, "connect", lambda url: connect(next(rounds), retry=once))
    watch = ["--database", node.database, "--watch", "0.1", "--rpc", local_chain.url]

    outcome = run_here("index", "status", *watch, "--rounds", 4)

    assert outcome.code == 0
    assert outcome.out.count("behind       0 blocks") == 2
    assert outcome.err == f"retrying: {dead}: expected an answer, got connection refused\n"
    assert max(map(len, outcome.out.splitlines())) <= 100


def test_status__watched_and_the_endpoint_is_out_in_the_last_round__ends_with_its_error(
    node: Node, local_chain: LocalChain
) -> None:
    publish(local_chain, 1)
    node.catch_up()
    watch = ["--database", node.database, "--watch", "0.1", "--rpc", unused_url()]

    outcome = run_here("index", "status", *watch, "--rounds", 1)

    assert outcome.code == 2
    assert outcome.out == ""
    assert "connection refused" in outcome.err


def test_status__node_key__is_short_for_a_person_and_whole_for_a_script(
    node: Node, local_chain: LocalChain
) -> None:
    publish(local_chain, 1)
    node.catch_up()
    status = ("index", "status", "--database", node.database)

    text, content = run_here(*status).out, run_here(*status, "--json").content

    whole = "0x" + node.key.public_key.hex()
    assert content["node_public_key"] == whole
    assert f"node         {whole[:10]}…\n" in text
    assert max(map(len, text.splitlines())) <= 100


def test_quarantine_list__bytes_that_need_escapes__fit_a_terminal_in_columns(
    node: Node, local_chain: LocalChain
) -> None:
    for payload in (b"\xff" * 200, b"\xff" * 20_000, b""):
        local_chain.publish_message(GROUP, payload)
    node.catch_up()
    listing = ("index", "quarantine", "list", "--database", node.database)

    lines = run_here(*listing).out.splitlines()
    other = run_here(*listing, "--reason", "another")

    assert len(lines) == 3
    assert max(map(len, lines)) <= 100
    assert len({line.index(" bytes  ") for line in lines}) == 1
    assert lines[0].endswith("…")
    assert (other.code, other.out) == (0, "nothing in quarantine that was asked for\n")


def test_status__watched_until_ctrl_c__ends_as_interrupted(
    node: Node, local_chain: LocalChain
) -> None:
    publish(local_chain, 1)
    node.catch_up()
    process = subprocess.Popen(
        [CHAINKIT, "index", "status", "--database", node.database, "--watch", "0.1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert "database" in process.stdout.readline()

    process.send_signal(signal.SIGINT)

    process.stdout.read()
    process.stdout.close()
    assert process.wait(timeout=10) == 130


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A database of the first revision: asked for before ``second_revision``."""
    path = tmp_path / "node.db"
    identity = Identity(1, bytes(32), bytes(65), first_block=0, contracts=())
    Store.open(str(path), identity).close()
    return path


def test_migrate__older_database__shows_then_upgrades_it(older: Path, second_revision: str) -> None:
    command = ("index", "migrate", "--database", older)

    refused = run_here("index", "status", "--database", older)
    shown = run_here(*command)
    still_refused = run_here("index", "status", "--database", older)
    done = run_here(*command, "--apply", "--json").content
    again = run_here(*command)

    assert refused.code == still_refused.code == 2
    assert "chainkit index migrate" in refused.err
    assert "nothing was changed; add --apply to upgrade: revision 0001 to 0002" in shown.out
    assert (done["before"], done["applied"]) == ("0001", True)
    assert again.out == f"up to date: revision {done['newest']}\n"
    assert run_here("index", "status", "--database", older).code == 0


def test_migrate__database_from_before_the_first_release__is_refused_in_a_sentence(
    older: Path,
) -> None:
    with closing(sqlite3.connect(older)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0006'")
        connection.commit()

    shown = run_here("index", "migrate", "--database", older)
    refused = run_here("index", "migrate", "--database", older, "--apply")
    used = run_here("index", "status", "--database", older)

    assert (shown.code, refused.code, used.code) == (0, 2, 2)
    for outcome in (refused, used):
        assert "expected revision 0001 or older, got 0006 (a newer chainkit" in outcome.err
        assert "Traceback" not in outcome.err


def test_migrate__no_database__leaves_nothing(tmp_path: Path) -> None:
    outcome = run_here("index", "migrate", "--database", tmp_path / "node.db", "--apply")

    assert outcome.code == 2
    assert list(tmp_path.iterdir()) == []
