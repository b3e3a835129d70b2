import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from chainkit.signatures import SigningKey, keccak256, recover_public_key
from chainkit_indexer.signing import Signer, SignerFailed, SignerProcess

KEY = SigningKey(bytes([7]) * 32)


def digests(count: int, start: int = 0) -> list[bytes]:
    return [keccak256(number.to_bytes(4, "big")) for number in range(start, start + count)]


@pytest.fixture
def signer() -> Iterator[SignerProcess]:
    process = SignerProcess(KEY)
    yield process
    process.close()


def child_of(signer: SignerProcess) -> int:
    return signer._child.pid


@pytest.mark.parametrize("count", [0, 1, 33, 5000])
def test_sign__in_a_process__gives_the_same_signatures(signer: SignerProcess, count: int) -> None:
    assert signer.sign(digests(count))() == Signer(KEY).sign(digests(count))()


def test_sign__many_batches_before_one_is_awaited__answers_each_with_its_own(
    signer: SignerProcess,
) -> None:
    batches = [digests(200, start=200 * number) for number in range(40)]
    answers = [signer.sign(batch) for batch in batches]

    for batch, answer in reversed(list(zip(batches, answers, strict=True))):
        signatures = answer()
        assert len(signatures) == len(batch)
        assert recover_public_key(signatures[-1], batch[-1]) == KEY.public_key


def test_sign__child_killed__fails_what_is_pending_and_what_comes(signer: SignerProcess) -> None:
    os.kill(child_of(signer), signal.SIGSTOP)
    pending = signer.sign(digests(100))
    os.kill(child_of(signer), signal.SIGKILL)

    with pytest.raises(SignerFailed, match="expected signatures"):
        pending()
    signer._child.wait()
    with pytest.raises(SignerFailed):
        signer.sign(digests(100))()


def test_start__secret__is_neither_argument_nor_environment(signer: SignerProcess) -> None:
    signer.sign(digests(100))()
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

    assert process.sign(digests(100))() == Signer(KEY).sign(digests(100))()
    process.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal__to_the_whole_group__leaves_the_end_to_the_parent(
    signer: SignerProcess, number: signal.Signals
) -> None:
    signer.sign(digests(100))()
    os.kill(child_of(signer), number)

    assert len(signer.sign(digests(100))()) == 100


def test_close__child__ends() -> None:
    process = SignerProcess(KEY)
    process.close()

    assert process._child.returncode == 0
