import signal
import threading

import pytest

from localnet.process import interrupt, interruptions_deferred


def test_interrupt__outside_a_deferred_block__raises_at_once() -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupt(signal.SIGTERM, None)


def test_interrupt__inside_a_deferred_block__raises_at_its_end() -> None:
    reached = []
    with pytest.raises(KeyboardInterrupt), interruptions_deferred():
        # As Python calls it where another thread got the signal that this one holds back.
        interrupt(signal.SIGTERM, None)
        reached.append("the end")
    assert reached == ["the end"]
    with interruptions_deferred():
        pass


def test_interrupt__noted_and_held_back_at_once__raises_once() -> None:
    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt), interruptions_deferred():
            interrupt(signal.SIGTERM, None)
            signal.raise_signal(signal.SIGTERM)
        with interruptions_deferred():
            pass
    finally:
        signal.signal(signal.SIGTERM, previous)


def test_interrupt__while_another_thread_defers__raises_at_once() -> None:
    inside, done = threading.Event(), threading.Event()

    def defer() -> None:
        with interruptions_deferred():
            inside.set()
            done.wait(10)

    thread = threading.Thread(target=defer)
    thread.start()
    inside.wait(10)
    with pytest.raises(KeyboardInterrupt):
        interrupt(signal.SIGTERM, None)
    done.set()
    thread.join()
