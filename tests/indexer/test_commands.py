import json
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests

from chainkit.exports import files_of as names_of
from chainkit_indexer.storage import schema
from support.chains.chain import LocalChain
from support.command_line import run as run_here
from support.exports import read_manifest

from .conftest import GROUP, Node, chainkit, publish


def unused_url() -> str:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{bound.getsockname()[1]}"


def test_run__until_idle_then_status_and_export__tell_the_same(
    node: Node, local_chain: LocalChain, tmp_path: Path
) -> None:
    publish(local_chain, 3)
    local_chain.publish_message(GROUP, b"\xff")

    run = chainkit("index", "run", *node.follower_options(), "--until-idle")

    assert run.returncode == 0, run.stderr
    assert "3 envelopes, 1 quarantined" in run.stderr
    status = chainkit(
        "index", "status", "--database", str(node.database), "--rpc", local_chain.url, "--json"
    )
    content = json.loads(status.stdout)
    assert content["envelopes"] == 3
    assert content["quarantined"] == {"not a ClientEnvelope": 1}
    assert content["sequence_ids"] == {"0": 4}
    assert content["blocks_behind"] == 0
    folder = tmp_path / "export"
    export = chainkit("index", "export", "--database", str(node.database), "--out", str(folder))
    assert export.returncode == 0, export.stderr
    manifest = read_manifest(folder, "node")
    assert manifest.to_block == content["cursor"]["number"] == local_chain.head().number
    assert [manifest.files[name]["rows"] for name in names_of(manifest, "envelopes")] == [3]


def test_step__one_at_a_time__says_what_happened(node: Node, local_chain: LocalChain) -> None:
    publish(local_chain, 1)
    options = node.follower_options()

    advanced = chainkit("index", "step", *options, "--json")
    idle = chainkit("index", "step", *options)

    content = json.loads(advanced.stdout)
    assert content["result"] == "advanced"
    assert content["envelopes"] == 1
    assert content["cursor"]["hash"] == "0x" + local_chain.head().hash.hex()
    assert idle.stdout.startswith("idle at the head")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run__signal__ends_with_0(
    node: Node, local_chain: LocalChain, number: signal.Signals
) -> None:
    publish(local_chain, 1)
    process = node.start()
    assert process.stderr is not None
    assert "1 envelopes" in next_line(process)

    process.send_signal(number)

    _, said = process.communicate(timeout=30)
    assert process.returncode == 0
    head = local_chain.head().reference
    assert said.rstrip().endswith(f"stopped at block {head}, by a signal")


def next_line(process: subprocess.Popen[str]) -> str:
    """Read what an indexer says next, but not that the registry does not know its key."""
    assert process.stderr is not None
    line = process.stderr.readline()
    return process.stderr.readline() if " WARNING registry: this node's key" in line else line


def kill_after(node: Node, lines: int) -> str:
    """Start an indexer, read so many of its lines, kill it; return the last of them."""
    process = node.start("--page-blocks", "1")
    said = [next_line(process) for _ in range(lines)]
    process.kill()
    process.wait()
    assert process.stderr is not None
    process.stderr.close()
    return said[-1]


def test_run__killed_again_and_again__ends_as_if_it_never_was(
    node: Node, local_chain: LocalChain, tmp_path: Path
) -> None:
    for lines in (1, 3, 5):
        # Before it is killed, an indexer may have stored more than what was read of it.
        publish(local_chain, lines + 1)
        assert "1 envelopes" in kill_after(node, lines)
    node.catch_up()
    local_chain.reorg(4, [])
    publish(local_chain, 4, start=20)
    assert "4 blocks taken back" in kill_after(node, 1)
    assert "1 envelopes" in kill_after(node, 2)

    finished = chainkit("index", "run", *node.follower_options(), "--until-idle")

    assert finished.returncode == 0, finished.stderr
    clean = Node(local_chain, tmp_path, 1)
    clean.database = tmp_path / "clean.db"
    clean.catch_up()
    assert node.payload_rows() == clean.payload_rows()
    assert node.rows(schema.cursor) == clean.rows(schema.cursor)
    assert [row["outcome"] for row in node.rows(schema.journal)] == ["dropped"] * 4


class FlakyProxy(ThreadingHTTPServer):
    """Passes requests on to an endpoint, until it is told to be down."""

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), _Forward)
        self.target = target
        self.is_down = False
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Forward(BaseHTTPRequestHandler):
    server: FlakyProxy

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.is_down:
            self.send_error(503)
            return
        headers = {"Content-Type": "application/json"}
        answer = requests.post(self.server.target, data=body, headers=headers, timeout=10)
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def proxy(local_chain: LocalChain) -> Iterator[FlakyProxy]:
    with FlakyProxy(local_chain.url) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_run__endpoint_dies_and_comes_back__says_so_once_and_goes_on(
    node: Node, local_chain: LocalChain, proxy: FlakyProxy
) -> None:
    publish(local_chain, 1)
    goal = local_chain.head().number + 1
    process = node.start("--until-block", str(goal), rpc=proxy.url)
    assert process.stderr is not None
    assert "1 envelopes" in next_line(process)
    proxy.is_down = True
    assert "retrying" in next_line(process)
    publish(local_chain, 1, start=1)
    proxy.is_down = False

    assert process.wait(timeout=20) == 0
    assert process.stderr.read().count("envelopes") == 1
    process.stderr.close()


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize(
    ("command", "option", "expected"),
    [
        ("run", "rpc", "connection refused"),
        ("step", "rpc", "connection refused"),
        ("run", "deployment", "does not exist"),
        ("step", "keystore", "does not exist"),
        ("run", "password_file", "does not exist"),
        ("step", "database", "no folder"),
    ],
)
def test_follower__wrong_option__is_one_sentence_and_leaves_nothing(
    node: Node, tmp_path: Path, command: str, option: str, expected: str
) -> None:
    wrong = unused_url() if option == "rpc" else tmp_path / "missing" / "file"
    before = files_of(tmp_path)

    result = chainkit("index", command, *node.follower_options(**{option: wrong}))

    assert result.returncode == 2
    assert result.stderr.startswith("error: ")
    assert expected in result.stderr
    assert result.stderr.count("\n") == 1
    assert files_of(tmp_path) == before


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"chain_id": 1}, "expected 1, got 31337"),
        ({"genesis_hash": "0x" + "ee" * 32}, "block 0 at"),
    ],
)
def test_step__record_of_another_chain__leaves_nothing(
    node: Node, tmp_path: Path, change: dict[str, object], expected: str
) -> None:
    record = json.loads(node.chain.record_path.read_text()) | change
    foreign = tmp_path / "foreign.json"
    foreign.write_text(json.dumps(record))
    before = files_of(tmp_path)

    result = chainkit("index", "step", *node.follower_options(deployment=foreign))

    assert result.returncode == 2
    assert expected in result.stderr
    assert files_of(tmp_path) == before


def test_step__record_of_another_deployment_on_this_chain__changes_nothing(
    node: Node, local_chain: LocalChain, tmp_path: Path
) -> None:
    publish(local_chain, 1)
    node.catch_up()
    record = json.loads(local_chain.record_path.read_text())
    contracts = record["contracts"]
    contracts["GroupMessages"], contracts["IdentityUpdates"] = (
        contracts["IdentityUpdates"],
        contracts["GroupMessages"],
    )
    foreign = tmp_path / "foreign.json"
    foreign.write_text(json.dumps(record))
    before = files_of(tmp_path)

    result = chainkit("index", "step", *node.follower_options(deployment=foreign))

    assert result.returncode == 2
    assert "expected contracts IdentityUpdates 0x" in result.stderr
    assert files_of(tmp_path) == before


def test_step__database_of_another_key__changes_nothing(
    node: Node, local_chain: LocalChain, tmp_path: Path
) -> None:
    publish(local_chain, 1)
    node.catch_up()
    other = Node(local_chain, tmp_path, 2)
    before = files_of(tmp_path)

    result = chainkit("index", "step", *other.follower_options(database=node.database))

    assert result.returncode == 2
    assert "expected node public key 0x04" in result.stderr
    assert files_of(tmp_path) == before


@pytest.mark.parametrize("command", ["status", "export"])
def test_reader__no_database__leaves_nothing(tmp_path: Path, command: str) -> None:
    more = ["--out", str(tmp_path / "export")] if command == "export" else []

    result = chainkit("index", command, "--database", str(tmp_path / "node.db"), *more)

    assert result.returncode == 2
    assert "expected a file that exists, got none" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_run__reorg_below_the_final_block__names_the_command_that_lets_it_go_on(
    node: Node, local_chain: LocalChain, tmp_path: Path
) -> None:
    publish(local_chain, 4)
    local_chain.mine(5)
    finality = ["--finality", "2", "--until-idle"]
    assert chainkit("index", "run", *node.follower_options(), *finality).returncode == 0
    before = node.payload_rows()
    local_chain.reorg(6)
    local_chain.mine()
    head = local_chain.head().number

    stopped = chainkit("index", "run", *node.follower_options(), *finality)

    assert stopped.returncode == 2
    assert "chainkit index rewind --below-final" in stopped.stderr
    assert node.payload_rows() == before
    options = ["--below-final", "--database", str(node.database), "--rpc", local_chain.url]
    refused = run_here("index", "rewind", "--to-block", head - 5, *options, "--apply")
    assert refused.code == 2
    assert f"expected a block up to {head - 7}" in refused.err
    rewind = ("index", "rewind", "--to-block", head - 7, *options)
    assert "nothing was changed" in run_here(*rewind).out
    assert node.payload_rows() == before
    assert "reorg 1 in the journal" in run_here(*rewind, "--apply").out
    assert chainkit("index", "run", *node.follower_options(), *finality).returncode == 0
    clean = Node(local_chain, tmp_path, 1)
    clean.database = tmp_path / "clean.db"
    clean.catch_up()
    assert node.payload_rows() == clean.payload_rows()
    assert [row["outcome"] for row in node.rows(schema.journal)] == ["dropped"]
