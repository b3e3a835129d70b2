"""``client group``: groups and their members."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import click

from chainkit.terminal.command import CompleteGroup
from chainkit.terminal.facts import echo_fact, echo_notice
from chainkit.terminal.options import echo_json, json_option
from chainkit_client.cli import pages
from chainkit_client.cli.home import Home, home_options
from chainkit_client.cli.names import checked_names, find_group, find_joined, short
from chainkit_client.cli.opened import PASSING, brought_up_to_date, check_done, run, settled
from chainkit_client.home import Client
from chainkit_client.messenger import Messenger
from chainkit_client.mls.engine import Member

_names = click.argument("names", nargs=-1, required=True, metavar="NAME…")
_group = click.argument("group_text", metavar="GROUP")


@click.group("group", cls=CompleteGroup)
def group() -> None:
    """Make groups, list them, and change who is in them.

    GROUP is a group's id in hex, or the beginning of one. NAME is an inbox id or an address.

    \b
    Example:
      chainkit client group list --home alice
    """


@group.command("new")
@click.argument("names", nargs=-1, metavar="[NAME]…")
@home_options
@json_option
def new(names: tuple[str, ...], home: Home, as_json: bool) -> int:
    """Make a group with inboxes, and print its id.

    Nothing is on the network before somebody else is in it.

    \b
    Example:
      chainkit client group new 0x70997970c51812dc3a010c7d01b50e0d17dc79c8 --home alice
    """
    wanted = checked_names(names)

    async def do(client: Client) -> int:
        messenger = client.messenger
        group_id = await messenger.create_group(wanted)
        if as_json:
            echo_json({"group": group_id.hex()})
        else:
            echo_fact("group", group_id.hex())
        await _done(messenger, group_id)
        return 0

    return run(home, do)


@group.command("list")
@home_options
@json_option
def list_(home: Home, as_json: bool) -> int:
    """List groups and invitations.

    \b
    Example:
      chainkit client group list --home alice --json
    """

    async def do(client: Client) -> int:
        messenger = client.messenger
        await brought_up_to_date(messenger)
        groups = [*messenger.groups(), *messenger.imported_groups()]
        waiting = {each.id: pages.count_waiting(messenger.intents(each.id)) for each in groups}
        if as_json:
            echo_json([pages.group_as_json(each, waiting[each.id]) for each in groups])
        else:
            click.echo("\n".join(pages.groups_lines(groups, waiting)))
        for line in pages.unopened_lines(messenger.unopened_welcomes()):
            echo_notice(line)
        return 0

    return run(home, do)


@group.command("show")
@_group
@home_options
@json_option
def show(group_text: str, home: Home, as_json: bool) -> int:
    """Show a group and its members, and whether their inboxes have them.

    It exits with 1 where a member names an inbox that does not have it, or another member has
    another history of the group.

    \b
    Example:
      chainkit client group show 3fa2 --home alice
    """

    async def do(client: Client) -> int:
        return await show_group(client.messenger, group_text, as_json)

    return run(home, do)


async def show_group(messenger: Messenger, group_text: str, as_json: bool) -> int:
    """Print a group; return 1 where something is wrong with the group."""
    await brought_up_to_date(messenger)
    found = find_group(messenger.groups(), group_text)
    members = [] if found.epoch is None else list(messenger.members(found.id))
    impostors: list[Member] = []
    why = ""
    try:
        impostors = [] if found.epoch is None else await messenger.impostors(found.id)
    except PASSING as error:
        why = f"members not compared with their inboxes: {error}"
    waiting = pages.count_waiting(messenger.intents(found.id))
    unheard = messenger.unheard(found.id)
    if as_json:
        content = pages.group_as_json(found, waiting)
        echo_json(content | {"members": pages.members_as_json(members, impostors, unheard)})
    else:
        echo_fact("group", found.id.hex())
        echo_fact("you", pages.membership(found))
        echo_fact("epoch", "none yet" if found.epoch is None else str(found.epoch))
        echo_fact("waits", str(waiting))
        own = messenger.inbox_id.hex()
        click.echo("\n".join(["", *pages.members_lines(members, impostors, unheard, own)]))
    if why:
        click.echo(why, err=True)
    return 1 if impostors or found.forked_at_epoch is not None else 0


@group.command("add")
@_group
@_names
@home_options
def add(group_text: str, names: tuple[str, ...], home: Home) -> int:
    """Add inboxes to a group, and wait until the chain has it.

    \b
    Example:
      chainkit client group add 3fa2 0x70997970c51812dc3a010c7d01b50e0d17dc79c8 --home alice
    """
    return _change(home, group_text, names, Messenger.add)


@group.command("remove")
@_group
@_names
@home_options
def remove(group_text: str, names: tuple[str, ...], home: Home) -> int:
    """Remove inboxes from a group, and wait until the chain has it.

    NAME may also be the key of one device, which `group show` prints where it is not of its inbox.

    \b
    Example:
      chainkit client group remove 3fa2 0x70997970c51812dc3a010c7d01b50e0d17dc79c8 --home alice
    """
    return _change(home, group_text, names, Messenger.remove)


def _change(
    home: Home,
    group_text: str,
    names: Sequence[str],
    change: Callable[[Messenger, bytes, Sequence[str]], Awaitable[int]],
) -> int:
    """Queue a change of a group's members, wait for it, and print the new number of inboxes."""
    wanted = checked_names(names)

    async def do(client: Client) -> int:
        messenger = client.messenger
        await messenger.sync()
        group_id = find_joined(messenger.groups(), group_text).id
        await _done(messenger, group_id, await change(messenger, group_id, wanted))
        accounts = {each.credential for each in messenger.members(group_id)}
        [now] = [each for each in messenger.groups() if each.id == group_id]
        count = f"{len(accounts)} inbox" + ("" if len(accounts) == 1 else "es")
        click.echo(f"group {short(group_id)} has {count} in epoch {now.epoch}")
        return 0

    return run(home, do)


async def _done(messenger: Messenger, group_id: bytes, intent_id: int | None = None) -> None:
    await settled(messenger)
    intents = messenger.intents(group_id)
    wanted = [each for each in intents if intent_id in (None, each.id)]
    check_done(wanted, f"change of group {short(group_id)}")
