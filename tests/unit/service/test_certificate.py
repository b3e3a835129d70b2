from __future__ import annotations

import logging
from pathlib import Path

import pytest

from chainkit.errors import ConfigurationError
from chainkit.service.certificate import CertificateFiles, ServerCertificate
from support.network.certificates import Pair, make_pair, write_pair


@pytest.fixture
def files(tmp_path: Path) -> CertificateFiles:
    return CertificateFiles(tmp_path / "certificate.pem", tmp_path / "key.pem")


def write(files: CertificateFiles, pair: Pair) -> None:
    write_pair((files.certificate, files.key), pair)


def test_look__pair_was_replaced__is_taken_once(files: CertificateFiles) -> None:
    first, second = make_pair(), make_pair()
    write(files, first)
    certificate = ServerCertificate(files)
    assert not certificate.look()

    write(files, second)

    assert certificate.look() and not certificate.look()
    assert (certificate.pair.certificate, certificate.pair.key) == second


@pytest.mark.parametrize("damage", ["cut", "other key", "missing"])
def test_look__pair_cannot_be_used__keeps_the_one_before_and_says_so_once(
    files: CertificateFiles, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = make_pair(), make_pair()
    write(files, first)
    certificate = ServerCertificate(files)
    if damage == "cut":
        write(files, (second[0][:300], second[1]))
    elif damage == "other key":
        write(files, (second[0], first[1]))
    else:
        files.key.unlink()

    with caplog.at_level(logging.INFO, "chainkit"):
        assert not certificate.look() and not certificate.look()

    assert [each.event.name for each in caplog.records] == [  # type: ignore[attr-defined]
        "certificate_refused"
    ]
    assert (certificate.pair.certificate, certificate.pair.key) == first
    write(files, second)
    assert certificate.look()


def test_certificate__unusable_at_the_start__is_an_error(files: CertificateFiles) -> None:
    first, second = make_pair(), make_pair()
    write(files, (first[0], second[1]))

    with pytest.raises(ConfigurationError, match="--tls-certificate: expected a PEM certificate"):
        ServerCertificate(files)
