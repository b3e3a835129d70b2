"""``client doctor``: checks the parts of a client, and advises on broken parts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Final, TypeVar

import click

from chainkit.errors import ChainkitError
from chainkit.extras import how_to_install
from chainkit.nodes.connection import NodeConnection, NodeEntry
from chainkit.nodes.gateway import Gateway
from chainkit.service.log_lines import one_line
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.options import echo_json, json_option
from chainkit.types import NANOSECONDS_PER_SECOND, TopicKind
from chainkit_client.cli.home import Home, home_options
from chainkit_client.cli.opened import open_store
from chainkit_client.home import Settings, connect_chain
from chainkit_client.mls.node_engine import NodeEngine
from chainkit_client.network.chain import Chain
from chainkit_client.storage.evidence import count_unknown, read_breaches
from chainkit_client.storage.own import read_installation
from chainkit_client.storage.store import Store

_ASK_SECONDS: Final = 5.0
_MOST_SECONDS_APART: Final = 120.0
_NO_TOPIC: Final = TopicKind.GROUP_MESSAGE.topic(bytes(16))
"""A topic that nobody uses."""

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Looked:
    """One checked part."""

    name: str
    works: bool
    found: str
    advice: str = ""
    """How to repair the part; empty where it works."""


@click.command("doctor", cls=CompleteCommand)
@home_options
@json_option
def doctor_command(home: Home, as_json: bool) -> int:
    """Say what of a client works, and what to do about what does not.

    It looks at settings, database and password, the MLS engine, the chain and its registry, the
    gateway, each enabled node, and this clock by theirs. It exits with 1 where something does not
    work.

    \b
    Example:
      chainkit client doctor --home alice
    """
    looked = asyncio.run(look(home))
    if as_json:
        echo_json([asdict(each) for each in looked])
    else:
        click.echo("\n".join(lines(looked)))
    return 0 if all(each.works for each in looked) else 1


def lines(looked: list[Looked]) -> list[str]:
    """Return the checks as lines for people, with advice below each broken part."""
    shown = []
    for each in looked:
        shown.append(f"{'ok' if each.works else 'WRONG':<7}{each.name:<11}{one_line(each.found)}")
        if each.advice:
            shown.append(f"{'':<18}-> {each.advice}")
    return shown


async def look(home: Home) -> list[Looked]:
    """Check every part that can be checked, even after other parts failed."""
    looked: list[Looked] = []
    settings = _tried(looked, "settings", lambda: _settings(home), "`chainkit client init`")
    store = _tried(looked, "database", lambda: _store(home), "the right password, or a copy of it")
    if store is not None:
        _look_at_store(looked, store)
    _tried(looked, "MLS engine", _engine, how_to_install("client"))
    if settings is None:
        return looked
    chain = await asyncio.to_thread(
        _tried, looked, "chain", lambda: _chain(settings), "another --rpc: `chainkit client init`"
    )
    advice = "ask who runs it, or name another one: `chainkit client init --gateway URL`"
    await _asked(looked, "gateway", lambda: _ask_gateway(settings), advice)
    if chain is not None:
        await _look_at_nodes(looked, chain)
    return looked


def _tried(
    looked: list[Looked], name: str, find: Callable[[], tuple[Found, str]], advice: str
) -> Found | None:
    try:
        value, found = find()
    except ChainkitError as error:
        looked.append(Looked(name, False, str(error), advice))
        return None
    looked.append(Looked(name, True, found))
    return value


async def _asked(
    looked: list[Looked], name: str, ask: Callable[[], Awaitable[str]], advice: str
) -> None:
    try:
        looked.append(Looked(name, True, await ask()))
    except ChainkitError as error:
        looked.append(Looked(name, False, str(error), advice))


def _settings(home: Home) -> tuple[Settings, str]:
    settings = home.read_settings()
    return settings, f"{home.settings_path}, deployment {Path(settings.deployment)}"


def _store(home: Home) -> tuple[Store, str]:
    return open_store(home), f"{home.database_path}, opened by the password"


def _look_at_store(looked: list[Looked], store: Store) -> None:
    try:
        _tried(looked, "inbox", lambda: _inbox(store), "`chainkit client init` again")
        looked.append(look_at_evidence(store))
    finally:
        store.close()


def look_at_evidence(store: Store) -> Looked:
    """Count broken rules, and payloads of the chain that the chain does not have."""
    with store.reading() as connection:
        breaches, unknown = len(read_breaches(connection)), count_unknown(connection)
    found = f"{breaches} broken rules kept" if breaches else "no node broke a rule"
    # A reorg may have taken such a payload back: it is no broken rule.
    absent = ", ".join(f"{count} of node {node_id}" for node_id, count in unknown.items())
    found += f"; payloads that the chain does not have: {absent}" if absent else ""
    return Looked("evidence", True, found)


def _inbox(store: Store) -> tuple[None, str]:
    with store.reading() as connection:
        installation = read_installation(connection, store.seal)
    return None, installation.credential.decode()


def _engine() -> tuple[None, str]:
    begin = time.monotonic()
    with NodeEngine() as engine:
        engine.new_installation(b"doctor")
    return None, f"answers after {time.monotonic() - begin:.1f} s"


def _chain(settings: Settings) -> tuple[Chain, str]:
    chain = connect_chain(settings)
    return chain, f"answers, head {chain.endpoint.head().reference.number}"


async def _ask_gateway(settings: Settings) -> str:
    gateway = Gateway(settings.gateway)
    try:
        await gateway.connect()
    finally:
        await gateway.close()
    return f"{settings.gateway} takes connections"


async def _look_at_nodes(looked: list[Looked], chain: Chain) -> None:
    try:
        block, nodes = await asyncio.to_thread(chain.read_nodes)
    except ChainkitError as error:
        looked.append(Looked("registry", False, str(error), "wait for its owner to enable a node"))
        return
    enabled = [each for each in nodes if each.is_enabled]
    found = f"{len(enabled)} of {len(nodes)} nodes enabled at block {block.number}"
    looked.append(Looked("registry", True, found))
    apart: list[float] = []
    for each in enabled:
        entry = NodeEntry(each.http_address, each.signing_key)
        advice = "others are asked in its place; tell its operator"
        ask = _ask_node(each.node_id, entry, apart)
        await _asked(looked, f"node {each.node_id}", ask, advice)
    if apart:
        looked.append(look_at_clock(apart))


def look_at_clock(apart: Sequence[float]) -> Looked:
    """Judge this clock by how many seconds each node's clock is ahead of it."""
    middle = median(apart)
    found = f"the nodes' clocks are {middle:+.0f} s from this one"
    works = abs(middle) <= _MOST_SECONDS_APART
    return Looked("clock", works, found, "" if works else "set this machine's clock")


def _ask_node(node_id: int, entry: NodeEntry, apart: list[float]) -> Callable[[], Awaitable[str]]:
    async def ask() -> str:
        node = NodeConnection(node_id, entry)
        try:
            begin = time.monotonic()
            await node.behind(_NO_TOPIC, {}, _ASK_SECONDS)
            milliseconds = 1000 * (time.monotonic() - begin)
            now_ns = await node.clock_ns(_ASK_SECONDS)
            if now_ns is not None:
                apart.append((now_ns - time.time_ns()) / NANOSECONDS_PER_SECOND)
        finally:
            await node.close()
        return f"{entry.url} answers after {milliseconds:.0f} ms"

    return ask
