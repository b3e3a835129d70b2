from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from chainkit.errors import ConfigurationError
from chainkit.nodes.trust import peer_ca_option, trusted_roots
from support.network.certificates import make_authority


@click.command()
@peer_ca_option
def command() -> None:
    pass


def called(*arguments: str) -> bytes | None:
    CliRunner().invoke(command, arguments, catch_exceptions=False)
    return trusted_roots()


def test_peer_ca__given__is_trusted_beside_the_public_ones_by_that_command_alone(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ca.pem"
    path.write_bytes(own := make_authority().certificate + make_authority().certificate)

    roots = called("--peer-ca", str(path))

    assert roots is not None and roots.endswith(own)
    assert roots.count(b"BEGIN CERTIFICATE") > 50
    assert called() is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "another content"),
        (b"-----BEGIN CERTIFICATE-----\n", "another content"),
        (None, "No such file"),
    ],
)
def test_peer_ca__file_without_certificates__is_refused(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(ConfigurationError, match=f"--peer-ca: expected certificates.*{words}"):
        called("--peer-ca", str(path))
