"""Attackers of all kinds at once: each attack runs again and again in a process of its own."""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from threading import Event, Thread
from typing import Any, Final

from chainkit.signatures import SigningKey
from support.endpoints.broken_answers import SHAPELESS_ANSWERS
from support.endpoints.fault_proxy import FaultProxy
from support.endpoints.faults import UNTRUE
from support.network import attackers, bad_payers
from support.network.attackers import Attack
from support.network.false_node import FalseNode, FalseNodes
from support.network.originator import Originator
from support.network.simulation.lies import Liar, Lie

Strangers = Sequence[tuple[Attack, int]]
"""Attacks, and how often each is done in one round."""

FIRST_ADDRESS: Final = 20
LIE_SHARE: Final = 0.01
"""The share of each kind of lie among a chain's answers; there are more than a hundred kinds."""
LIAR_FROM: Final = 3
HUGE_ID: Final = 2**62
SIGN_SECONDS: Final = 1.0

AT_NODE: Final[Strangers] = (
    (attackers.dear_queries, 4),
    (attackers.dear_publishes, 2),
    (attackers.queries_of_1_mib, 20),
    (attackers.streams_without_request, 2000),
    (attackers.endless_bodies, 20),
    (attackers.endless_readers, 20),
    (attackers.many_topics, 20),
    # The answers fit into one window.
    (bad_payers.floods, 30),
    (bad_payers.forged_days, 100),
    (bad_payers.garbage_payloads, 200),
)
AT_TLS: Final[Strangers] = ((attackers.bad_handshakes, 50),)
AT_GATEWAY: Final[Strangers] = (
    (attackers.dear_client_publishes, 2),
    (attackers.client_streams_without_request, 2000),
    (attackers.endless_client_bodies, 20),
    (bad_payers.garbage_for_clients, 200),
)
AT_STORAGE: Final[Strangers] = ((bad_payers.endless_uploads, 8), (bad_payers.odd_downloads, 50))


@dataclass(frozen=True)
class Swarming:
    """An attack that goes on."""

    attack: Attack
    process: Any
    rounds: Any
    """How often it came to its end, or to that of its connection: shared with its process."""

    def __str__(self) -> str:
        """Return the attack's name."""
        function = self.attack.func if isinstance(self.attack, partial) else self.attack
        return str(getattr(function, "__name__", function))

    def goes_on(self) -> bool:
        """Return whether it has been done, and is done again."""
        return self.process.is_alive() and self.rounds.value > 0


@contextmanager
def swarm(*attacked: tuple[Strangers, int]) -> Iterator[list[Swarming]]:
    """Attack ports beside the block, each attack from an address of its own."""
    context = multiprocessing.get_context("spawn")
    attacks = [(*each, port) for strangers, port in attacked for each in strangers]
    running = []
    for number, (attack, count, port) in enumerate(attacks, FIRST_ADDRESS):
        rounds = context.Value("q", 0)
        arguments = (attack, port, f"127.0.0.{number}", count, rounds)
        process = context.Process(target=_repeat, args=arguments, daemon=True)
        running.append(Swarming(attack, process, rounds))
    try:
        for each in running:
            each.process.start()
        yield running
    finally:
        for each in running:
            if each.process.pid is not None:
                each.process.kill()
                each.process.join()


def _repeat(attack: Attack, port: int, address: str, count: int, rounds: Any) -> None:
    attackers.leave_the_processor()
    while True:
        # The service ends connections in the middle of an attack.
        with suppress(OSError, AssertionError):
            attack(port, address, count)
        with rounds.get_lock():
            rounds.value += 1


@contextmanager
def bad_nodes(register: Callable[[SigningKey, str], int]) -> Iterator[Mapping[Lie, FalseNode]]:
    """Register a node for each lie; all sign on beside the block, and one signs a huge id."""
    ended = Event()
    with ExitStack() as stack:
        false = stack.enter_context(FalseNodes())
        liars = {
            lie: false.add(
                Liar(lie, LIAR_FROM), SigningKey(bytes([78]) * 31 + bytes([n])), register
            )
            for n, lie in enumerate(Lie, 1)
        }
        huge = liars[Lie.REPEATS]
        false.keep(huge, Originator(huge.node_id, huge.key).signed(HUGE_ID))

        def sign() -> None:
            while not ended.wait(SIGN_SECONDS):
                for each in liars.values():
                    false.sign(each)

        thread = Thread(target=sign)
        thread.start()
        stack.callback(thread.join)
        stack.callback(ended.set)
        yield liars


@contextmanager
def bad_endpoint(chain: FaultProxy) -> Iterator[None]:
    """Have an endpoint lie and break now and then beside the block."""
    chain.arm(*UNTRUE, *SHAPELESS_ANSWERS, probability=LIE_SHARE, random=random.Random(46))
    try:
        yield
    finally:
        chain.lift()
