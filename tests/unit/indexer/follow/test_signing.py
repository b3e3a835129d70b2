import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from chainkit.protocol.envelope import parse_originator_envelope, recover_node_key
from chainkit.signatures import SigningKey, keccak256
from chainkit.types import Log, identity_update_created, message_sent
from chainkit_indexer.follow import signing
from chainkit_indexer.follow.signing import (
    NoKey,
    Outcome,
    Outcomes,
    Signer,
    SignerFailed,
    SignerProcess,
)
from chainkit_indexer.types import PlacedEvent
from support.payloads import commit, identity_update

KEY = SigningKey(bytes([7]) * 32)


def payloads(count: int, start: int = 0) -> list[PlacedEvent]:
    return [_payload(number) for number in range(start, start + count)]


def _payload(number: int) -> PlacedEvent:
    identifier = keccak256(number.to_bytes(4, "big"))
    if number % 3 == 0:
        event = message_sent(identifier, commit(identifier, size=20), number)
    elif number % 3 == 1:
        event = identity_update_created(identifier, identity_update(identifier, size=20), number)
    else:
        event = message_sent(identifier, b"\xff", number, originator_id=number)
    log = Log(bytes(20), (), b"", 1, bytes(32), identifier[::-1], 0, number)
    return PlacedEvent(event, log, 1_700_000_000 + number)


def more_than_the_pipe_holds() -> list[PlacedEvent]:
    return [
        placed._replace(event=placed.event._replace(payload=commit(identifier, size=60_000)))
        for placed in payloads(40)
        for identifier in [placed.event.identifier]
    ]


def begin_and_be_held_up(
    threads: ThreadPoolExecutor, signer: SignerProcess, events: list[PlacedEvent]
) -> Future[Outcomes]:
    os.kill(child_of(signer), signal.SIGSTOP)
    signing = threads.submit(signer.sign, events)
    deadline = time.monotonic() + 10
    while not signer._sending.locked():
        assert time.monotonic() < deadline
        time.sleep(0.001)
    return signing


@pytest.fixture
def signer() -> Iterator[SignerProcess]:
    process = SignerProcess(KEY)
    yield process
    process.close()


def child_of(signer: SignerProcess) -> int:
    return signer._child.pid


@pytest.mark.parametrize("count", [0, 1, 33, 5000])
def test_sign__in_a_process__gives_the_same_envelopes(signer: SignerProcess, count: int) -> None:
    assert signer.sign(payloads(count))() == Signer(KEY).sign(payloads(count))()


def test_sign__many_batches_before_one_is_awaited__answers_each_with_its_own(
    signer: SignerProcess,
) -> None:
    batches = [payloads(200, start=200 * number) for number in range(40)]
    answers = [signer.sign(batch) for batch in batches]

    for batch, answer in reversed(list(zip(batches, answers, strict=True))):
        for placed, outcome in zip(batch, answer(), strict=True):
            if isinstance(outcome, str):
                assert outcome == "not a ClientEnvelope" and placed.event.payload == b"\xff"
            else:
                served = parse_originator_envelope(outcome)
                assert served.sequence_id == placed.event.sequence_id
                assert recover_node_key(served) == KEY.public_key


def test_sign__more_than_the_child_has_under_way__is_made_by_who_waits(
    signer: SignerProcess,
) -> None:
    batches = [payloads(40, start=40 * number) for number in range(30)]
    expected = [Signer(KEY).sign(batch)() for batch in batches]
    os.kill(child_of(signer), signal.SIGSTOP)
    answers = [signer.sign(batch) for batch in batches]

    assert answers[-1]() == expected[-1]
    os.kill(child_of(signer), signal.SIGCONT)
    assert [answer() for answer in answers] == expected


def test_sign__two_threads__each_gets_its_own(signer: SignerProcess) -> None:
    def sign(start: int) -> list[Outcome]:
        batches = [payloads(40, start + 40 * number) for number in range(20)]
        return [outcome for answer in map(signer.sign, batches) for outcome in answer()]

    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(sign, (0, 10_000)))

    assert found == [Signer(KEY).sign(payloads(800, start))() for start in (0, 10_000)]


def test_sign__no_key__differs_in_the_signature_only() -> None:
    for signed, unsigned in zip(
        Signer(KEY).sign(payloads(9))(), NoKey().sign(payloads(9))(), strict=True
    ):
        if isinstance(signed, str) or isinstance(unsigned, str):
            assert signed == unsigned
        else:
            signature = parse_originator_envelope(signed).node_signature
            assert unsigned == signed.replace(signature, bytes(65))


def test_sign__child_killed__fails_what_is_pending_and_what_comes(signer: SignerProcess) -> None:
    os.kill(child_of(signer), signal.SIGSTOP)
    pending = signer.sign(payloads(100))
    os.kill(child_of(signer), signal.SIGKILL)

    with pytest.raises(SignerFailed, match="expected signed envelopes"):
        pending()
    signer._child.wait()
    with pytest.raises(SignerFailed):
        signer.sign(payloads(100))()


def test_sign__child_hangs__fails_in_a_while_and_close_ends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signing, "_PATIENCE_SECONDS", 0.2)
    process = SignerProcess(KEY)
    os.kill(child_of(process), signal.SIGSTOP)

    with pytest.raises(SignerFailed, match=r"nothing for 0\.2 s"):
        process.sign(payloads(100))()
    process.close()
    assert process._child.returncode == -signal.SIGKILL


def test_start__secret__is_neither_argument_nor_environment(signer: SignerProcess) -> None:
    signer.sign(payloads(100))()
    for name in ("cmdline", "environ"):
        with open(f"/proc/{child_of(signer)}/{name}", "rb") as file:
            content = file.read()
        assert bytes([7]) * 32 not in content
        assert (bytes([7]) * 32).hex().encode() not in content


def test_start__module_in_the_working_directory__is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "queue.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    process = SignerProcess(KEY)

    assert process.sign(payloads(100))() == Signer(KEY).sign(payloads(100))()
    process.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal__to_the_whole_group__leaves_the_end_to_the_parent(
    signer: SignerProcess, number: signal.Signals
) -> None:
    signer.sign(payloads(100))()
    os.kill(child_of(signer), number)

    assert len(signer.sign(payloads(100))()) == 100


def test_close__child__ends() -> None:
    process = SignerProcess(KEY)
    process.close()

    assert process._child.returncode == 0


def test_close__while_others_sign__ends_the_child_and_refuses_what_is_not_answered() -> None:
    events = more_than_the_pipe_holds()
    expected = Signer(KEY).sign(events)()
    process = SignerProcess(KEY)
    with ThreadPoolExecutor(3) as threads:
        before = begin_and_be_held_up(threads, process, events)
        closing = threads.submit(process.close)
        meanwhile = threads.submit(process.sign, events)
        os.kill(child_of(process), signal.SIGCONT)

        for begun in (before, meanwhile):
            with suppress(SignerFailed):
                assert begun.result()() == expected
        closing.result()
    with pytest.raises(SignerFailed, match="a closed pipe"):
        process.sign(events)
    assert process._child.returncode == 0


def test_close__child_hangs_while_another_signs__ends_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signing, "_PATIENCE_SECONDS", 0.2)
    process = SignerProcess(KEY)
    with ThreadPoolExecutor(1) as threads:
        held_up = begin_and_be_held_up(threads, process, more_than_the_pipe_holds())
        process.close()

        with pytest.raises(SignerFailed, match="a closed pipe"):
            held_up.result()
    assert process._child.returncode == -signal.SIGKILL
