"""Commands that name all that is missing, and groups that import a command when it is called."""

from __future__ import annotations

import gc
import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

import click
from click.utils import make_default_short_help

_COLUMN_SPACING: Final = 6
"""Characters that click keeps free of a line of commands."""


def require_packages(*names: str) -> None:
    """Raise ModuleNotFoundError now for packages that a group's commands import when they run.

    The root command, which imports the group's module, then names the extra that brings them.
    """
    for name in names:
        if importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def load_command(module: str, attribute: str) -> click.Command:
    """Import a command. Raises ImportError where a package that it needs is missing.

    The garbage collector pauses meanwhile. Imported objects stay until the process ends: a search
    for garbage among these objects, repeated while their number grows, is a seventh of the import.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        command = getattr(importlib.import_module(module), attribute)
    finally:
        if was_enabled:
            gc.enable()
    assert isinstance(command, click.Command)
    return command


class CompleteCommand(click.Command):
    """Like click's command, but names all missing options, and where each may come from."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does. Raises UsageError with all missing options and arguments."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter as error:
            options, _, _ = self.make_parser(ctx).parse_args(given)
            missing = [
                _name(parameter, ctx)
                for parameter in self.get_params(ctx)
                if parameter.required and _is_missing(parameter, ctx, options)
            ]
            raise click.UsageError(f"missing {', '.join(missing)}", ctx) from error


class SuggestingGroup(click.Group):
    """A group that names the commands which a mistyped one may have been meant for.

    click does so for options only.
    """

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command as click does. Raises UsageError that names those of a similar name."""
        name = args[0]
        known = self.list_commands(ctx)
        # A word that begins with another character is an option: click reports it.
        if name not in known and name[:1].isalnum() and not ctx.resilient_parsing:
            ctx.fail(_no_such_command(name, get_close_matches(name, known)))
        return super().resolve_command(ctx, args)


class CompleteGroup(SuggestingGroup):
    """A group whose commands are CompleteCommands."""

    command_class = CompleteCommand


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """A command of a group, before its module is imported."""

    module: str
    attribute: str
    sentence: str
    """The command's line in the group's help."""

    def load(self) -> click.Command:
        """Import the command. Raises ImportError where a package that it needs is missing."""
        return load_command(self.module, self.attribute)


class LazyGroup(SuggestingGroup):
    """Imports a command's module only when the command is called, and not for the group's help.

    So each command's module imports at its top what the command needs, and no other command waits
    for these packages, or needs them to be installed.
    """

    def __init__(
        self, *arguments: Any, lazy_commands: Mapping[str, LazyCommand], **options: Any
    ) -> None:
        """Take the commands by their names, beside what click's group takes."""
        super().__init__(*arguments, **options)
        self.lazy_commands = lazy_commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands, sorted as click does."""
        return sorted(self.lazy_commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None where there is none of the name."""
        command = self.lazy_commands.get(cmd_name)
        return None if command is None else command.load()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands as click does, each with its sentence."""
        names = self.list_commands(ctx)
        limit = formatter.width - _COLUMN_SPACING - max(map(len, names))
        rows = [
            (name, make_default_short_help(self.lazy_commands[name].sentence, limit))
            for name in names
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _no_such_command(name: str, similar: Sequence[str]) -> str:
    """Write the error in click's words for an option."""
    sentence = f"No such command {name!r}."
    if not similar:
        return sentence
    if len(similar) == 1:
        return f"{sentence} Did you mean {similar[0]!r}?"
    return f"{sentence} (Possible commands: {', '.join(sorted(similar))})"


def _is_missing(parameter: click.Parameter, ctx: click.Context, options: Mapping[str, Any]) -> bool:
    value, _ = parameter.consume_value(ctx, options)
    return parameter.value_is_missing(value)


def _name(parameter: click.Parameter, ctx: click.Context) -> str:
    name = parameter.make_metavar() if isinstance(parameter, click.Argument) else parameter.opts[0]
    return f"{name} (or {parameter.envvar})" if parameter.envvar else name
