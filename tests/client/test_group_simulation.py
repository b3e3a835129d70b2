"""Clients on a chain with reorgs, under seeds: all accept the same commits, all intents end.

``CHAINKIT_SEED`` begins elsewhere. ``CHAINKIT_SOAK`` plays 900 long worlds, 100,000 short ones, and
1,000 short ones with the real engine.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from chainkit_client.groups import history
from chainkit_client.groups.session import Session
from chainkit_client.intents import rows
from chainkit_client.mls.node_engine import NodeEngine
from chainkit_client.storage import schema
from chainkit_client.storage.sealing import Seal
from support.client.group_network import memory_folder
from support.client.simulation.hunt import long_world, short_world
from support.client.simulation.world import MakeEngine, toy_engine

IS_SOAK = bool(os.environ.get("CHAINKIT_SOAK"))
SEED = int(os.environ.get("CHAINKIT_SEED", "0"), 0)
LONG_WORLDS = 900 if IS_SOAK else 10
PARTS = 100 if IS_SOAK else 1
SHORT_WORLDS = 1_000 if IS_SOAK else 20
"""In each part."""
REAL_PARTS = 10 if IS_SOAK else 1
REAL_WORLDS = 100 if IS_SOAK else 3
MOST_WORLDS = 40
"""In which each planted bug is found."""

pytestmark = pytest.mark.timeout(18_000 if IS_SOAK else 300)


def simulate(
    play: Callable[[Path, int, MakeEngine], Counter[str]],
    seeds: Iterable[int],
    make_engine: MakeEngine = toy_engine,
) -> Counter[str]:
    counts: Counter[str] = Counter()
    with memory_folder() as folder:
        for seed in seeds:
            counts += play(folder, seed, make_engine)
    return counts


@pytest.mark.conforms("R6")
@pytest.mark.conforms("R7")
@pytest.mark.conforms("R24")
def test_world__reorgs_kills_and_lost_answers__all_clients_agree_and_all_intents_end() -> None:
    counts = simulate(long_world, range(SEED, SEED + LONG_WORLDS))

    # Each kind of fault was there.
    wanted = {"reorgs", "kills", "UNKNOWN lost", "UNKNOWN arrives", "REFUSED arrives", "TAKEN lost"}
    assert wanted <= counts.keys(), counts
    assert counts["messages read"] > 20 * counts["messages too old"]


@pytest.mark.parametrize("part", range(PARTS))
def test_world__four_wishes_at_once__all_agree_in_whichever_order_they_go_on(part: int) -> None:
    first = SEED + part * SHORT_WORLDS
    counts = simulate(short_world, range(first, first + SHORT_WORLDS))

    assert counts["messages read"] > 20 * counts["messages too old"]


@pytest.mark.parametrize("part", range(REAL_PARTS))
def test_world__with_the_real_engine__ends_as_with_the_toy(part: int) -> None:
    first = SEED + part * REAL_WORLDS
    seeds = range(first, first + REAL_WORLDS)
    with NodeEngine() as engine:
        counts = simulate(short_world, seeds, lambda world: engine)

    assert counts["messages read"]


def _overlook_reorgs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(history, "first_epoch_after", lambda *_: None)


def _wait_for_what_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Session, "end_payloads", lambda *_: None)


def _invite_too_early(patch: pytest.MonkeyPatch) -> None:
    publish = rows.publish

    def early(connection: Connection, seal: Seal, intent: Any, built: Any) -> None:
        publish(connection, seal, intent, built)
        rows.change_welcomes(connection, built.payload_hash, schema.WelcomeState.READY_TO_SEND)

    patch.setattr(rows, "publish", early)


@pytest.mark.parametrize(
    "plant",
    [
        _overlook_reorgs,
        _wait_for_what_lost,
        _invite_too_early,
    ],
)
def test_world__a_planted_bug__is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)

    with pytest.raises(Exception) as caught:
        simulate(long_world, range(SEED, SEED + MOST_WORLDS))

    assert any(note.startswith("seed ") for note in caught.value.__notes__)
