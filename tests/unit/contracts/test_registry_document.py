"""docs/registry.md names every command, and its file of nodes can be read."""

import re
from pathlib import Path

import click

from chainkit.cli.registry.group import registry
from chainkit.council.registry_plan import read_desired_nodes
from support.council.fake_registry import node_key
from support.project import DOCS

PAGE = (DOCS / "registry.md").read_text()
KEY = node_key(1).public_key


def test_document__table_of_commands__names_each_once() -> None:
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    named = [word.split()[0] for row in rows for word in re.findall("`([^`]+)`", row)]

    assert sorted(named) == registry.list_commands(click.Context(registry))


def test_document__file_of_nodes__is_one_that_can_be_read(tmp_path: Path) -> None:
    (example,) = re.findall("```yaml\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "nodes.yaml"
    path.write_text(re.sub("0x04[0-9a-f]+…", f"0x{KEY.hex()}", example))

    (node,) = read_desired_nodes(path)

    assert (node.key, node.is_enabled) == (KEY, True)
