from __future__ import annotations

import pytest
from click.testing import CliRunner

from chainkit.errors import ConfigurationError
from chainkit_indexer.cli import index


@pytest.mark.parametrize("source", ["option", "environment"])
def test_run__database_url_as_hosters_write_it__says_what_to_write_without_secrets(
    source: str,
) -> None:
    url = "postgres://op:S3CRET@db.example/node"
    arguments = ["status", *(["--database", url] if source == "option" else [])]

    result = CliRunner().invoke(index, arguments, env={"CHAINKIT_DATABASE": url})

    assert isinstance(result.exception, ConfigurationError)
    assert str(result.exception) == (
        "database: expected postgresql+psycopg://…, got postgres://… (the rest of the URL stays)"
    )
