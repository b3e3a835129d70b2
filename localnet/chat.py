"""`make chat`: Alice and Bob in two panes, a chain that reorganises, and a node that lies."""

from __future__ import annotations

import asyncio
import signal
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import ClassVar, Final

import click
from rich.text import Text
from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, RichLog, Static

from chainkit.errors import ChainkitError
from chainkit_client.cli.chat import Pane
from chainkit_client.cli.conversation import Conversation
from chainkit_client.groups.transcript import Message
from chainkit_client.storage.schema import MessageKind
from localnet.chat_stage import NAMES, Stage, stage
from localnet.process import interrupt

_SECONDS: Final = 120.0
_PAUSE_SECONDS: Final = 0.2


class TwoPanes(App[None]):
    """Alice at the left, Bob at the right, and keys for events of the network."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Horizontal { height: 1fr; }
    #told { height: auto; padding: 0 1; }
    PhonePane { border: round $surface-lighten-2; height: 1fr; width: 1fr; }
    PinScreen { align: center middle; }
    PinScreen Vertical { border: round $accent; width: 60; height: auto; padding: 1 2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "app.focus_next", "the other one types", priority=True),
        Binding("f2", "reorganise", "chain takes a commit back"),
        Binding("f3", "lie", "node replaces a message"),
        Binding("f4", "ask", "Alice's phone asks for the past"),
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

    def action_ask(self) -> None:
        """Let Alice's phone ask, and Alice type its PIN at her first device."""
        self.run_worker(self._do(self._ask), exclusive=True)

    async def _ask(self) -> str:
        pin = await self._stage.phone.ask()
        typed = await self.push_screen_wait(PinScreen(pin))
        sent = await self._stage.phone.approve(typed)
        told, lines = await self._stage.phone.read(self._stage.people[0].group_id)
        await self.query(PhonePane).remove()
        await self.query_one(Horizontal).mount(PhonePane(lines))
        return f"Alice's first device sent {sent} messages; {told}"

    async def _do(self, happen: Callable[[], Awaitable[str]]) -> None:
        status = self.query_one("#told", Static)
        status.update("…")
        try:
            status.update(await happen())
        except ChainkitError as error:
            status.update(str(error))


class PinScreen(ModalScreen[str]):
    """Alice's first device, which asks for the PIN that her phone shows."""

    def __init__(self, pin: str) -> None:
        """Take the PIN on the phone."""
        super().__init__()
        self._pin = pin

    def compose(self) -> ComposeResult:
        """Show both devices."""
        with Vertical():
            yield Static(f"Alice's phone shows the PIN {self._pin}", markup=False)
            yield Static("Her first device asks: another device of yours wants what was said.")
            yield Input(placeholder="PIN on the other device, and Enter")

    @on(Input.Submitted)
    def approve(self, event: Input.Submitted) -> None:
        """Hand on what was typed."""
        event.stop()
        self.dismiss(event.value.strip())


class PhonePane(RichLog):
    """The group on Alice's phone: each line has what the network knows of it."""

    can_focus = False

    def __init__(self, lines: Sequence[str]) -> None:
        """Take the lines."""
        super().__init__(wrap=True, markup=False, highlight=False, min_width=20)
        self.border_title = "Alice's phone"
        self._past = lines

    def on_mount(self) -> None:
        """Show the lines."""
        for line in self._past:
            self.write(Text(line))


async def play(played: Stage, tell: Callable[[str], None]) -> bool:
    """Play what a person may do with the keys; return whether both agree at the end.

    Raises TimeoutError where something does not come.
    """
    alice, bob = played.people
    async with asyncio.timeout(_SECONDS):
        await _say(played, alice, "hello, Bob")
        tell(await played.reorganise())
        await _say(played, bob, "after the reorg")
        is_past_there = await _bring_past(played, tell)
        await _say(played, alice, "a message that a node will replace")
        tell(await played.lie())
        await _until(played, lambda: all(each.messenger.breaches() for each in played.people))
        await _say(played, bob, "after the lie")
    for name, sees in zip(NAMES, played.people, strict=True):
        tell(f"{name}: {sees.status}")
        for line in sees.lines:
            tell(f"  {line}")
    return is_past_there and _texts(alice) == _texts(bob) and _epoch(alice) == _epoch(bob)


async def _bring_past(played: Stage, tell: Callable[[str], None]) -> bool:
    """Bring the past to Alice's phone; return whether the phone has what was said."""
    alice, phone = played.people[0], played.phone
    pin = await phone.ask()
    tell(f"Alice's phone asks for the past, and shows PIN {pin}")
    tell(f"Alice types it at her first device, which sends {await phone.approve(pin)} messages")
    told, lines = await phone.read(alice.group_id)
    tell(told)
    for line in lines:
        tell(f"phone: {line}")
    return _said(phone.messages(alice.group_id)) == _texts(alice)


async def _say(played: Stage, speaker: Conversation, text: str) -> None:
    await speaker.say(text)
    await _until(played, lambda: all(text in _texts(each) for each in played.people))


async def _until(played: Stage, is_so: Callable[[], bool]) -> None:
    while not is_so():
        for each in played.people:
            await each.follow()
        await asyncio.sleep(_PAUSE_SECONDS)


def _texts(sees: Conversation) -> list[str]:
    return _said(sees.messenger.messages(sees.group_id))


def _said(messages: Iterable[Message]) -> list[str]:
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

    F2 lets the chain take a commit back, F3 lets a node replace a message, and F4 lets Alice's
    phone ask for the past. With --script it exits with 0 where both agree at the end.

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
