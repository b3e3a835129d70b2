"""Writes docs/commands.md from the ``--help`` of every command, or checks that it is current."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from chainkit.cli.main import SECTIONS, chainkit

REFERENCE: Final = Path(__file__).parent.parent / "docs" / "commands.md"
_WIDTH: Final = 96
_HEAD: Final = """# Commands

Generated from `--help` by `make generate`. Exit codes, for every command: 0 done; 1 the answer is
no (findings, a report not proved, a role that lacks something); 2 it could not be done.
"""


def reference() -> str:
    """Return the whole page."""
    root = click.Context(chainkit, info_name="chainkit", **chainkit.context_settings)
    parts = [_HEAD]
    for section, names in SECTIONS.items():
        parts.append(f"## {section}\n")
        for name in names:
            command = chainkit.get_command(root, name)
            assert command is not None
            parts += _pages(command, click.Context(command, info_name=name, parent=root))
    return "\n".join(parts)


def _pages(command: click.Command, context: click.Context) -> Iterator[str]:
    context.max_content_width = context.terminal_width = _WIDTH
    help_text = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
    yield f"### `{context.command_path}`\n\n```\n{help_text}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _pages(inner, click.Context(inner, info_name=name, parent=context))


def main() -> int:
    """Write the page; with ``--check``, exit 1 if it is not current."""
    page = reference()
    if "--check" not in sys.argv[1:]:
        REFERENCE.write_text(page)
        return 0
    if REFERENCE.exists() and REFERENCE.read_text() == page:
        return 0
    print("docs/commands.md: expected the current --help, got another: run `make generate`")
    return 1


if __name__ == "__main__":
    sys.exit(main())
