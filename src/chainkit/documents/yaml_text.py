"""A YAML file that people write, read as text only.

YAML itself would take ``0x04…`` for an integer and ``on`` for a truth value. The file may come from
a stranger, so no part of the file makes objects or refers to text in another place.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from chainkit.documents.files import read_regular
from chainkit.errors import ConfigurationError
from chainkit.text.printable import printable

LARGEST_FILE_BYTES: Final = 2**20
"""Room for some thousand entries; a file of more is none that a person wrote."""
_SHOWN: Final = 200
"""Characters that an error repeats: a name in the file may be as long as the file."""


def read_yaml(path: Path, subject: str) -> Any:
    """Return the texts, lists and mappings of a file.

    Raises ConfigurationError about ``subject`` where the file cannot be read, is no YAML, has a
    field twice, or an alias: by aliases a short file becomes an endless one.
    """
    text = _text(path, subject)
    try:
        # The loader derives from BaseLoader, which makes nothing but texts, lists and mappings.
        return yaml.load(text, Loader=_TextLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        got = printable((error.problem or "none")[:_SHOWN])
        raise ConfigurationError(subject, "YAML", got, f"line {line}") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise ConfigurationError(subject, "YAML", printable(str(error)[:_SHOWN])) from error
    except RecursionError:
        raise ConfigurationError(subject, "YAML", "lists within lists, too deep") from None


class _TextLoader(yaml.BaseLoader):
    """Makes texts, lists and mappings only."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            problem = "an alias, which no such file needs"
            raise yaml.composer.ComposerError(None, None, problem, self.get_mark())
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            name = self.construct_object(key, deep=True)
            if not isinstance(name, str):
                raise _refused("a field whose name is no text", key)
            if name in seen:
                raise _refused(f"field {name} twice", key)
            seen.add(name)
        return super().construct_mapping(node, deep=deep)


def _text(path: Path, subject: str) -> str:
    content = read_regular(path, subject, LARGEST_FILE_BYTES)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigurationError(subject, "UTF-8", f"byte {error.start} that is none") from error


def _refused(problem: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
