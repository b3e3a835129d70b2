"""The child process: what it is bounded by, and what its death loses."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep

import pytest

from chainkit_client.mls.child import Child, ChildLimits
from chainkit_client.mls.engine import EngineDied, EngineFailed
from chainkit_client.mls.frames import MOST_FRAME_BYTES, encode_fields, encode_frame, number
from chainkit_client.mls.node_engine import NodeEngine
from chainkit_client.mls.program import PROGRAM, find_node
from support.client.hostile import Hostile
from support.client.parties import child_pid, founder, group_of

PATIENCE = 20.0
SHORT = ChildLimits(seconds=0.5)


@pytest.fixture
def own_engine() -> Iterator[NodeEngine]:
    with NodeEngine() as running:
        yield running


def ended(pid: int) -> bool:
    """Wait until no process has this id, or it is a zombie; False where it lives on."""
    deadline = monotonic() + PATIENCE
    while monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        sleep(0.01)
    return False


def program_that(folder: Path, body: str) -> Path:
    """Return a program that takes Node's arguments and does something else."""
    path = folder / "node"
    path.write_text(f"#!{sys.executable}\n" + textwrap.dedent(body))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


READY = encode_frame([b"ready", number(24)])
START = f"import sys, time\nout = sys.stdout.buffer\nout.write({READY!r}); out.flush()\n"


def test_child__killed_between_two_calls__loses_nothing(own_engine: NodeEngine) -> None:
    alice, bob = group_of(own_engine, b"alice", b"bob")
    message = alice.send(b"hello")
    first = child_pid(own_engine)
    assert first is not None

    os.kill(first, signal.SIGKILL)
    assert ended(first)

    assert bob.read(message).plaintext == b"hello"
    assert child_pid(own_engine) not in (None, first)


def test_child__killed_in_the_midst_of_a_call__is_replaced_by_one_that_answers(
    own_engine: NodeEngine,
) -> None:
    alice = founder(own_engine)
    first = child_pid(own_engine)
    assert first is not None
    os.kill(first, signal.SIGSTOP)

    with ThreadPoolExecutor(1) as pool:
        # The request lies in the pipe of a process that cannot read it.
        call = pool.submit(lambda: alice.view)
        assert not call.done()
        os.kill(first, signal.SIGKILL)
        assert call.result(PATIENCE).epoch == 0

    assert child_pid(own_engine) not in (None, first)


def test_call__that_kills_each_child__fails_after_the_second(tmp_path: Path) -> None:
    count = tmp_path / "count"
    # It notes that it lives before it says so: from then on it can open nothing.
    mortal = program_that(
        tmp_path,
        f"open({str(count)!r}, 'a').write('x')\n{START}sys.stdin.buffer.read(4)\nsys.exit(9)\n",
    )
    engine = NodeEngine(node=mortal, limits=ChildLimits(seconds=PATIENCE))

    with pytest.raises(EngineDied, match="expected an answer, got exit status 9"):
        engine.view(b"state")
    assert count.read_text() == "xx"
    assert child_pid(engine) is None
    engine.close()


def test_child__that_hangs__is_killed_after_its_time(hostile_program: Path) -> None:
    hanging = Hostile(hostile_program, SHORT)

    with pytest.raises(EngineFailed, match=r"expected an answer within 0\.5 s, got none"):
        hanging.call("hang")
    assert not hanging.child.is_alive


@pytest.mark.parametrize("kind", [b"heap", b"buffers"])
def test_child__that_takes_ever_more_memory__ends_alone(hostile_program: Path, kind: bytes) -> None:
    limits = ChildLimits(heap_mebibytes=64, data_bytes=512 << 20)
    greedy = Hostile(hostile_program, limits)

    with pytest.raises((EngineFailed, AssertionError)) as caught:
        greedy.call("exhaust", kind)
    greedy.child.kill()
    assert "out of memory" in str(caught.value) or "SIG" in str(caught.value)


@pytest.mark.parametrize("kind", ["file", "write", "program", "environment", "network"])
def test_child__that_reaches_outside__meets_nothing(hostile: Hostile, kind: str) -> None:
    [met] = hostile.call("touchOutside", kind.encode())

    assert met in (b"ERR_ACCESS_DENIED", b"EMFILE", b"none")


def test_child__that_never_says_that_it_is_ready__is_refused(tmp_path: Path) -> None:
    ends_at_once = program_that(tmp_path, "raise SystemExit('this is no Node')")

    with pytest.raises(EngineFailed, match="expected an answer, got exit status 1: this is no"):
        Child(ends_at_once, PROGRAM, SHORT)


def test_child__of_a_program_that_is_not_there__is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineFailed, match=r"expected Node\.js 22\.13 or newer"):
        Child(tmp_path / "missing", PROGRAM, SHORT)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"no length at all, only words", "frame of the MLS engine: expected at most"),
        ((MOST_FRAME_BYTES + 1).to_bytes(4, "big"), "frame of the MLS engine: expected at most"),
        (b"\0\0\0\x08\xff\xff\xff\xffword", "fields of the MLS engine"),
        (encode_frame([b"one"]) * 2, "expected one frame"),
        (b"\0\0\1\0only the beginning", r"an answer within 0\.5 s, got none"),
        (b"", r"an answer within 0\.5 s, got none"),
    ],
)
def test_child__that_answers_with_something_else__is_killed(
    tmp_path: Path, answer: bytes, expected: str
) -> None:
    rude = program_that(
        tmp_path,
        f"{START}sys.stdin.buffer.read(4)\nout.write({answer!r}); out.flush()\ntime.sleep(600)\n",
    )
    child = Child(rude, PROGRAM, SHORT)

    with pytest.raises(EngineFailed, match=expected):
        child.ask([b"request"])
    assert not child.is_alive


VIEW = encode_fields([b"group", number(0), number(0), number(1), bytes(32), b""])


@pytest.mark.parametrize(
    "answer",
    [
        [],
        [number(2), b"done", VIEW],
        [number(1), b"done"],
        [number(1), b"done", VIEW, VIEW],
        [number(1), b"perhaps", VIEW],
        [number(1), b"done", encode_fields([b"group"])],
    ],
)
def test_engine__answered_by_something_else__fails_and_asks_another_child(
    tmp_path: Path, answer: list[bytes]
) -> None:
    frame = encode_frame(answer)
    rude = program_that(
        tmp_path,
        f"{START}sys.stdin.buffer.read(4)\nout.write({frame!r}); out.flush()\ntime.sleep(600)\n",
    )

    engine = NodeEngine(node=rude, limits=SHORT)
    with pytest.raises(EngineFailed, match="MLS engine: expected the answer to its request"):
        engine.view(b"state")
    if (child := child_pid(engine)) is not None:
        os.kill(child, signal.SIGKILL)
    engine.close()


def test_child__that_reads_nothing__holds_up_no_caller(tmp_path: Path) -> None:
    deaf = Child(program_that(tmp_path, f"{START}time.sleep(600)\n"), PROGRAM, SHORT)

    with pytest.raises(EngineFailed, match=r"an answer within 0\.5 s, got none"):
        deaf.ask([bytes(8 << 20)])
    assert not deaf.is_alive


def test_child__that_complains_without_end__is_read_and_bounded(tmp_path: Path) -> None:
    noisy = program_that(
        tmp_path, f"{START}sys.stdin.read(4)\nsys.stderr.write('x' * 10**7)\nsys.exit(3)\n"
    )
    child = Child(noisy, PROGRAM, ChildLimits(seconds=PATIENCE))

    with pytest.raises(EngineFailed, match=r"got exit status 3: x+$") as caught:
        child.ask([b"request"])
    assert len(str(caught.value)) < 3000


def test_child__asked_for_too_much__answers_no_frame(own_engine: NodeEngine) -> None:
    with pytest.raises(EngineFailed, match="frame of the MLS engine: expected at most"):
        own_engine.view(bytes(MOST_FRAME_BYTES))
    assert founder(own_engine).view.epoch == 0


def test_engine__asked_by_many_threads__answers_each_its_own(engine: NodeEngine) -> None:
    states = {name: founder(engine, name).state for name in (b"%d" % n for n in range(8))}

    def credential(name: bytes) -> bytes:
        return engine.view(states[name]).members[0].credential

    with ThreadPoolExecutor(8) as pool:
        asked = list(states) * 20
        assert list(pool.map(credential, asked)) == asked


def test_engine__in_a_forked_process__starts_a_child_of_its_own(own_engine: NodeEngine) -> None:
    state = founder(own_engine).state
    parents = child_pid(own_engine)
    reader, writer = os.pipe()
    if (forked := os.fork()) == 0:
        epoch = own_engine.view(state).epoch
        os.write(writer, f"{epoch} {child_pid(own_engine)}".encode())
        own_engine.close()
        os._exit(0)
    os.waitpid(forked, 0)
    epoch, other = os.read(reader, 100).split()
    os.close(reader)
    os.close(writer)

    assert (int(epoch), int(other) != parents) == (0, True)
    assert child_pid(own_engine) == parents
    assert own_engine.view(state).epoch == 0


def test_child__whose_parent_is_killed__ends_with_it() -> None:
    script = textwrap.dedent(
        """
        import sys, time
        from chainkit_client.mls.node_engine import NodeEngine
        engine = NodeEngine()
        engine.create(engine.new_installation(b"alice"), b"group")
        print(engine._child.pid, flush=True)
        time.sleep(600)
        """
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert Path(f"/proc/{child}/environ").read_bytes() == b""
        parent.kill()
        assert ended(child)


def test_close__ends_the_child__and_the_next_call_starts_another(own_engine: NodeEngine) -> None:
    state = founder(own_engine).state
    first = child_pid(own_engine)
    assert first is not None

    own_engine.close()
    own_engine.close()

    assert child_pid(own_engine) is None
    assert ended(first)
    assert own_engine.view(state).epoch == 0


def test_child__in_the_list_of_processes__shows_no_secret(engine: NodeEngine) -> None:
    founder(engine)
    child = child_pid(engine)

    shown = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
    assert shown[0] == os.fsencode(find_node())
    assert shown[-2] == os.fsencode(PROGRAM)
    assert b"--permission" in shown
