"""``client history request`` and others: history that one device asks another one for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import click

from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.facts import echo_fact
from chainkit.terminal.options import echo_json, json_option
from chainkit.terminal.tables import columns
from chainkit.terminal.waiting import told_while_waiting
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_client.cli.home import Home, home_options
from chainkit_client.cli.loaded import tell_loaded
from chainkit_client.cli.names import NAME, found_index, short
from chainkit_client.cli.opened import PASSING, caught_up, run
from chainkit_client.cli.pages import time_of
from chainkit_client.exchange.errors import ResponseNotFound
from chainkit_client.exchange.exchange import HistoryExchange
from chainkit_client.home import Client
from chainkit_client.storage.exchange_rows import Ask, OwnRequest
from chainkit_client.storage.exchange_schema import RequestStatus

_DAY_NS: Final = 86_400 * NANOSECONDS_PER_SECOND
_request = click.argument("request_text", metavar="REQUEST")

days_option = click.option(
    "--days",
    type=click.IntRange(1, 36_500),
    metavar="DAYS",
    help="Leave out messages that are older.",
)
"""Pass ``days`` to a command that sends messages: None for all."""


@click.command("storage", cls=CompleteCommand)
@click.argument("url", required=False, metavar="[URL]")
@click.option("--off", "is_off", is_flag=True, help="Ask for nothing, and give nothing.")
@home_options
@json_option
def storage_command(url: str | None, is_off: bool, home: Home, as_json: bool) -> int:
    """Show or change the storage service that carries history between your devices.

    Both devices must name the same one, and your gateway must give uploads to it. Without one
    history is off: requests of other devices are deleted unread. It asks nobody.

    \b
    Example:
      chainkit client history storage https://backups.example --home phone
    """
    if url is not None and is_off:
        raise click.UsageError("URL and --off exclude each other")
    settings = home.read_settings()
    if url is not None or is_off:
        settings = replace(settings, storage=url)
        home.write_settings(settings)
    if as_json:
        echo_json({"storage": settings.storage})
    else:
        echo_fact("storage", settings.storage or "none: history is off")
    return 0


@click.command("request", cls=CompleteCommand)
@home_options
@json_option
def request_command(home: Home, as_json: bool) -> int:
    """Ask your other devices for the messages that they have.

    It prints a PIN of four digits. You type it at one of the other devices, where you approve the
    request; then you apply what came here. A request holds for a day.

    \b
    Example:
      chainkit client history request --home phone
    """

    async def do(client: Client) -> int:
        tell_asked(client.history, await ask(client.history), as_json)
        return 0

    return run(home, do, tells_asked=False)


async def ask(history: HistoryExchange) -> list[OwnRequest]:
    """Ask all other devices. Raises HistoryOff, NoOtherDevice, and the network's errors."""
    with told_while_waiting(lambda: "asking your other devices …"):
        return await history.requester.request()


def tell_asked(history: HistoryExchange, asked: Sequence[OwnRequest], as_json: bool) -> None:
    """Print requests that were sent, and what to type."""
    pin = history.requester.pin(asked[0])
    if as_json:
        echo_json(asked_as_json(history, asked))
        return
    echo_fact("pin", pin)
    for each in asked:
        echo_fact("asked", f"device {each.installation.hex()[:NAME]}, request {each.id.hex()}")
    echo_fact("until", f"{time_of(asked[0].expires_ns)} UTC")
    commands = f"chainkit client history approve {short(asked[0].id)}"
    echo_fact("there", f"{commands} (on one of these devices, with its own request)")
    echo_fact("then here", "chainkit client history apply")


def asked_as_json(history: HistoryExchange, asked: Sequence[OwnRequest]) -> dict[str, Any]:
    """Return requests that were sent for a script."""
    return {
        "pin": history.requester.pin(asked[0]),
        "requests": [
            {"id": each.id.hex(), "device": each.installation.hex(), "expires_ns": each.expires_ns}
            for each in asked
        ],
    }


@click.command("list", cls=CompleteCommand)
@home_options
@json_option
def list_command(home: Home, as_json: bool) -> int:
    """List what other devices of yours ask this one for.

    The PIN is not shown: the device that asks shows it, and you type it to approve.

    \b
    Example:
      chainkit client history list --home laptop
    """

    async def do(client: Client) -> int:
        tell_asks(await _synced_asks(client.history), as_json)
        return 0

    return run(home, do, tells_asked=False)


@click.command("approve", cls=CompleteCommand)
@_request
@days_option
@home_options
@json_option
def approve_command(request_text: str, days: int | None, home: Home, as_json: bool) -> int:
    """Send the messages of this device to another one of yours that asks for them.

    It asks for the PIN that the other device shows. Read it there yourself: nobody else needs it.
    The third wrong one deletes the request. The devices of your inbox are read from the chain
    again, and a device that was revoked gets nothing.

    \b
    Example:
      chainkit client history approve 3fa2 --home laptop
    """
    since_ns = 0 if days is None else time.time_ns() - days * _DAY_NS

    async def do(client: Client) -> int:
        found = find_ask(await _synced_asks(client.history), request_text)
        await caught_up(client.messenger)
        await send_history(client.history, found, since_ns, as_json)
        return 0

    return run(home, do, tells_asked=False)


async def send_history(history: HistoryExchange, found: Ask, since_ns: int, as_json: bool) -> None:
    """Ask for the PIN, send the messages since a time to the device that asks, and say so."""
    pin = click.prompt("PIN on the other device", err=True).strip()
    with told_while_waiting(lambda: "sending what was said …"):
        saved = await history.provider.approve(found.id, pin, since_ns)
    if as_json:
        echo_json({"id": found.id.hex(), "messages": saved.messages, "groups": saved.groups})
    else:
        echo_fact("sent", f"{saved.messages:,} messages of {saved.groups} groups")
        echo_fact("there", "chainkit client history apply")


@click.command("deny", cls=CompleteCommand)
@_request
@home_options
def deny_command(request_text: str, home: Home) -> int:
    """Delete the request of another device. The device is not told.

    \b
    Example:
      chainkit client history deny 3fa2 --home laptop
    """

    async def do(client: Client) -> int:
        found = find_ask(await _synced_asks(client.history), request_text)
        client.history.provider.deny(found.id)
        echo_fact("deleted", f"request {short(found.id)}")
        return 0

    return run(home, do, tells_asked=False)


@click.command("apply", cls=CompleteCommand)
@click.argument("request_text", required=False, metavar="[REQUEST]")
@home_options
@json_option
def apply_command(request_text: str | None, home: Home, as_json: bool) -> int:
    """Fetch and read the messages that another device of yours sent.

    Without REQUEST it takes the first that was answered. The file must be the one that the device
    named and signed, and nothing of another one is kept. `read` marks the messages, and `history
    check` compares them with the network.

    \b
    Example:
      chainkit client history apply --home phone
    """

    async def do(client: Client) -> int:
        requester = client.history.requester
        with told_while_waiting(lambda: "reading what is new …"):
            await client.history.sync()
        request_id = _answered(requester.requests(), request_text)
        with told_while_waiting(lambda: "fetching the file …"):
            loaded = await requester.apply(request_id)
        tell_loaded(loaded, as_json)
        return 0

    return run(home, do, tells_asked=False)


@click.command("status", cls=CompleteCommand)
@home_options
@json_option
def status_command(home: Home, as_json: bool) -> int:
    """List what this device asked others for, and how far it is.

    A request is pending, expired, applied or failed. After it failed, ask again.

    \b
    Example:
      chainkit client history status --home phone
    """

    async def do(client: Client) -> int:
        requester = client.history.requester
        try:
            with told_while_waiting(lambda: "reading what is new …"):
                await client.history.sync()
        except PASSING as error:
            click.echo(f"not up to date: {error}", err=True)
        found = requester.requests()
        if as_json:
            echo_json([_status_as_json(client.history, each) for each in found])
        else:
            click.echo("\n".join(_status_lines(client.history, found)))
        return 0

    return run(home, do, tells_asked=False)


async def _synced_asks(history: HistoryExchange) -> list[Ask]:
    provider = history.provider
    with told_while_waiting(lambda: "reading what is new …"):
        await history.sync()
    return provider.asks()


def find_ask(asks: Sequence[Ask], text: str) -> Ask:
    """Return the request that a person names by the beginning of its id."""
    return asks[found_index("REQUEST", "request", [each.id for each in asks], text)]


def _answered(requests: Sequence[OwnRequest], text: str | None) -> bytes:
    """Return the request that a person names, or the first one that was answered."""
    if text is not None:
        ids = [each.id for each in requests]
        return ids[found_index("REQUEST", "request", ids, text)]
    for each in requests:
        if each.status is RequestStatus.PENDING and each.response is not None:
            return each.id
    waiting = sum(each.status is RequestStatus.PENDING for each in requests)
    got = f"none; {waiting} wait for one" if waiting else "none: `chainkit client history request`"
    raise ResponseNotFound("history", "a response of another device", got)


def tell_asks(asks: Sequence[Ask], as_json: bool) -> None:
    """Print what other devices ask for."""
    if as_json:
        echo_json([_ask_as_json(each) for each in asks])
    else:
        click.echo("\n".join(_ask_lines(asks)))


def _ask_lines(asks: Sequence[Ask]) -> list[str]:
    if not asks:
        return ["no other device asks for history"]
    rows = [
        (
            short(each.id),
            each.installation.hex()[:NAME],
            time_of(each.received_ns),
            time_of(each.expires_ns),
            "sends" if each.response is not None else "waits for you",
        )
        for each in asks
    ]
    return columns(("request", "device", "came", "until", "state"), rows)


def _ask_as_json(found: Ask) -> dict[str, Any]:
    return {
        "id": found.id.hex(),
        "device": found.installation.hex(),
        "received_ns": found.received_ns,
        "expires_ns": found.expires_ns,
        "is_approved": found.response is not None,
    }


def _status_lines(history: HistoryExchange, found: Sequence[OwnRequest]) -> list[str]:
    if not found:
        return ["nothing was asked for: `chainkit client history request`"]
    rows = [
        (
            short(each.id),
            each.installation.hex()[:NAME],
            each.status.name.lower(),
            time_of(each.expires_ns),
            _next_step(history, each),
        )
        for each in found
    ]
    return columns(("request", "device", "state", "until", "next"), rows)


def _next_step(history: HistoryExchange, found: OwnRequest) -> str:
    if found.status is not RequestStatus.PENDING:
        return ""
    if found.response is not None:
        return "chainkit client history apply"
    return f"approve it there, PIN {history.requester.pin(found)}"


def _status_as_json(history: HistoryExchange, found: OwnRequest) -> dict[str, Any]:
    is_pending = found.status is RequestStatus.PENDING
    return {
        "id": found.id.hex(),
        "device": found.installation.hex(),
        "status": found.status.name.lower(),
        "is_answered": found.response is not None,
        "pin": history.requester.pin(found) if is_pending else None,
        "expires_ns": found.expires_ns,
    }
