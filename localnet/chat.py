"""`make chat`: Alice and Bob in two panes, a chain that reorganises, and a node that lies."""

from __future__ import annotations

import asyncio
import signal
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import ClassVar, Final

import click
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Footer, Input, Static

from chainkit.errors import ChainkitError
from chainkit_client.cli.chat import Pane
from chainkit_client.cli.conversation import Conversation
from chainkit_client.storage.schema import MessageKind
from localnet.chat_stage import NAMES, Stage, stage
from localnet.process import interrupt

_SECONDS: Final = 120.0
_PAUSE_SECONDS: Final = 0.2


class TwoPanes(App[None]):
    """Alice at the left, Bob at the right, and keys for events of the network."""

    ENABLE_COMMAND_PALETTE = False
    CSS = "Horizontal { height: 1fr; } #told { height: auto; padding: 0 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "app.focus_next", "the other one types", priority=True),
        Binding("f2", "reorganise", "chain takes a commit back"),
        Binding("f3", "lie", "node replaces a message"),
        Binding("ctrl+c", "quit", "end", priority=True),
        Binding("ctrl+q", "quit", "end", priority=True, show=False),
    ]

    def __init__(self, played: Stage) -> None:
        """Take the stage."""
        super().__init__()
        self._stage = played

    def compose(self) -> ComposeResult:
        """Show two panes, what happened last, and the keys."""
        with Horizontal():
            for name, sees in zip(NAMES, self._stage.people, strict=True):
                yield Pane(sees, name)
        yield Static("Type, and Enter sends; Tab lets the other one type.", id="told", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Let Alice type first."""
        self.query(Input).first().focus()

    def action_reorganise(self) -> None:
        """Let the chain take a block back."""
        self.run_worker(self._do(self._stage.reorganise))

    def action_lie(self) -> None:
        """Let a node lie."""
        self.run_worker(self._do(self._stage.lie))

    async def _do(self, happen: Callable[[], Awaitable[str]]) -> None:
        status = self.query_one("#told", Static)
        status.update("…")
        try:
            status.update(await happen())
        except ChainkitError as error:
            status.update(str(error))


async def play(played: Stage, tell: Callable[[str], None]) -> bool:
    """Play what a person may do with the keys; return whether both agree at the end.

    Raises TimeoutError where something does not come.
    """
    alice, bob = played.people
    async with asyncio.timeout(_SECONDS):
        await _say(played, alice, "hello, Bob")
        tell(await played.reorganise())
        await _say(played, bob, "after the reorg")
        await _say(played, alice, "a message that a node will replace")
        tell(await played.lie())
        await _until(played, lambda: all(each.messenger.breaches() for each in played.people))
        await _say(played, bob, "after the lie")
    for name, sees in zip(NAMES, played.people, strict=True):
        tell(f"{name}: {sees.status}")
        for line in sees.lines:
            tell(f"  {line}")
    return _texts(alice) == _texts(bob) and _epoch(alice) == _epoch(bob)


async def _say(played: Stage, speaker: Conversation, text: str) -> None:
    await speaker.say(text)
    await _until(played, lambda: all(text in _texts(each) for each in played.people))


async def _until(played: Stage, is_so: Callable[[], bool]) -> None:
    while not is_so():
        for each in played.people:
            await each.follow()
        await asyncio.sleep(_PAUSE_SECONDS)


def _texts(sees: Conversation) -> list[str]:
    messages = sees.messenger.messages(sees.group_id)
    return [
        each.content.decode()
        for each in messages
        if each.kind is MessageKind.APPLICATION and each.place is not None
    ]


def _epoch(sees: Conversation) -> tuple[int | None, int | None]:
    [group] = [each for each in sees.messenger.groups() if each.id == sees.group_id]
    return group.epoch, group.forked_at_epoch


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--script", is_flag=True, help="Play it without a terminal, and say what happens.")
def main(script: bool) -> None:
    """Talk as Alice and Bob on a private network of two nodes. Ctrl-C ends it.

    F2 lets the chain take a commit back, F3 lets a node replace a message. With --script it exits
    with 0 where both agree at the end.

    \b
    Example:
      python -m localnet.chat
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    try:
        with tempfile.TemporaryDirectory(prefix="chainkit-chat-") as folder:
            agree = asyncio.run(_run(Path(folder), script))
    except KeyboardInterrupt:
        click.echo("\nstopped", err=True)
        return
    if not agree:
        raise click.ClickException("Alice and Bob do not agree")


async def _run(folder: Path, script: bool) -> bool:
    async with stage(folder, lambda step: click.echo(step, err=True)) as played:
        if script:
            return await play(played, click.echo)
        await TwoPanes(played).run_async()
    return True


if __name__ == "__main__":
    main(prog_name="python -m localnet.chat")
