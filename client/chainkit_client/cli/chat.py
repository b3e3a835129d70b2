"""``client chat``: a group on the terminal, messages above and what you type below."""

from __future__ import annotations

import asyncio
from typing import ClassVar, Final

import click
from rich.text import Text
from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, RichLog, Static

from chainkit.errors import ChainkitError
from chainkit.terminal.command import CompleteCommand
from chainkit_client.cli.conversation import Conversation
from chainkit_client.cli.home import Home, home_options
from chainkit_client.cli.names import NAME, find_joined
from chainkit_client.cli.opened import brought_up_to_date, run
from chainkit_client.home import Client

_PAUSE_SECONDS: Final = 0.3


class Pane(Vertical):
    """One conversation: its transcript, its status, and a line to type into."""

    DEFAULT_CSS = """
    Pane { border: round $surface-lighten-2; height: 1fr; width: 1fr; }
    Pane:focus-within { border: round $accent; }
    Pane RichLog { height: 1fr; }
    Pane Static { height: auto; max-height: 6; color: $text-muted; }
    """

    def __init__(self, conversation: Conversation, title: str) -> None:
        """Take the conversation, and a title."""
        super().__init__()
        self.conversation = conversation
        self.border_title = title
        self._drawn: list[str] = []

    def compose(self) -> ComposeResult:
        """Place the parts below each other."""
        log = RichLog(wrap=True, markup=False, highlight=False, max_lines=1000, min_width=20)
        # Tab goes from one line of input to the next.
        log.can_focus = False
        yield log
        yield Static(markup=False)
        yield Input(placeholder="type a message, and Enter")

    def on_mount(self) -> None:
        """Begin to follow the group."""
        self.run_worker(self._follow(), exit_on_error=True)

    @on(Input.Submitted)
    async def send(self, event: Input.Submitted) -> None:
        """Queue the typed message."""
        text = event.value.strip()
        if not text:
            return
        try:
            await self.conversation.say(text)
        except ChainkitError as error:
            self.query_one(Static).update(str(error))
            return
        event.input.clear()
        self.draw()

    def draw(self) -> None:
        """Show the conversation as it is now."""
        lines, log = self.conversation.lines, self.query_one(RichLog)
        if lines[: len(self._drawn)] != self._drawn:
            log.clear()
            self._drawn = []
        for line in lines[len(self._drawn) :]:
            log.write(Text(line))
        self._drawn = list(lines)
        self.query_one(Static).update(self.conversation.status)

    async def _follow(self) -> None:
        while True:
            await self.conversation.follow()
            self.draw()
            await asyncio.sleep(_PAUSE_SECONDS)


class ChatApp(App[None]):
    """One pane, or several."""

    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "quit", "End", priority=True),
        Binding("ctrl+q", "quit", "End", priority=True, show=False),
    ]

    def __init__(self, pane: Pane) -> None:
        """Take the pane."""
        super().__init__()
        self._pane = pane

    def compose(self) -> ComposeResult:
        """Show the pane alone."""
        yield self._pane

    def on_mount(self) -> None:
        """Let typing go into the pane."""
        self._pane.query_one(Input).focus()


@click.command("chat", cls=CompleteCommand)
@click.argument("group_text", metavar="GROUP")
@home_options
def chat_command(group_text: str, home: Home) -> int:
    """Talk in a group: its messages, its status, and a line to type into.

    Ctrl-C ends it. The status tells the epoch, who is in the group, what waits, and what is wrong:
    forks, broken rules, nodes that do not answer. Messages that wait at the end go on with the next
    command.

    \b
    Example:
      chainkit client chat 3fa2 --home alice
    """

    async def do(client: Client) -> int:
        messenger = client.messenger
        await brought_up_to_date(messenger)
        found = find_joined(messenger.groups(), group_text)
        title = f"{messenger.inbox_id.hex()[:NAME]} (Ctrl-C ends)"
        await ChatApp(Pane(Conversation(messenger, found.id), title)).run_async()
        return 0

    return run(home, do)
