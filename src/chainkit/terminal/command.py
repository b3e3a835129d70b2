"""Commands that name what is missing: all options in one error, or the packages of an extra."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

import click


def require_packages(*names: str) -> None:
    """Raise ModuleNotFoundError now for packages that a group's commands import when they run.

    The root command, which imports the group's module, then names the extra that brings them.
    """
    for name in names:
        if importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


class CompleteCommand(click.Command):
    """Like click's command, but names everything that is missing, and where it may come from."""

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


class CompleteGroup(click.Group):
    """A group whose commands are CompleteCommands."""

    command_class = CompleteCommand


def _is_missing(parameter: click.Parameter, ctx: click.Context, options: Mapping[str, Any]) -> bool:
    value, _ = parameter.consume_value(ctx, options)
    return parameter.value_is_missing(value)


def _name(parameter: click.Parameter, ctx: click.Context) -> str:
    name = parameter.make_metavar() if isinstance(parameter, click.Argument) else parameter.opts[0]
    return f"{name} (or {parameter.envvar})" if parameter.envvar else name
