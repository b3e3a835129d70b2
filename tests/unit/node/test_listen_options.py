from __future__ import annotations

from pathlib import Path

import pytest

from chainkit.errors import ConfigurationError
from chainkit.service.certificate import CertificateFiles
from chainkit_node.cli.options import ListenOptions

CERTIFICATE, KEY = Path("certificate.pem"), Path("key.pem")
EVERYWHERE = "0.0.0.0:5051"


@pytest.mark.parametrize("address", ["127.0.0.1:0", "[::1]:5051", "localhost:5051"])
def test_plain_text__on_this_machine_alone__needs_no_option(address: str) -> None:
    assert ListenOptions(address, None, None, False).certificate_files() is None


@pytest.mark.parametrize("address", [EVERYWHERE, "[::]:5051", "node.example:5051"])
def test_plain_text__where_strangers_connect__must_be_asked_for(address: str) -> None:
    with pytest.raises(ConfigurationError, match="--grpc: expected --tls-certificate"):
        ListenOptions(address, None, None, False).certificate_files()

    assert ListenOptions(address, None, None, True).certificate_files() is None


def test_certificate__with_its_key__is_served() -> None:
    files = ListenOptions(EVERYWHERE, CERTIFICATE, KEY, False).certificate_files()

    assert files == CertificateFiles(CERTIFICATE, KEY)


@pytest.mark.parametrize(
    ("certificate", "key", "is_plain_text", "words"),
    [
        (CERTIFICATE, None, False, "--tls-key: expected certificate and key together"),
        (None, KEY, True, "--tls-certificate: expected certificate and key together"),
        (CERTIFICATE, KEY, True, "--plain-text: expected either a certificate or plain text"),
    ],
)
def test_certificate__half_or_beside_plain_text__is_refused(
    certificate: Path | None, key: Path | None, is_plain_text: bool, words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        ListenOptions(EVERYWHERE, certificate, key, is_plain_text).certificate_files()


@pytest.mark.parametrize("address", ["127.0.0.1", "5051", ":5051", "127.0.0.1:grpc", ""])
def test_files__address_without_host_or_port__says_what_is_missing(address: str) -> None:
    with pytest.raises(ConfigurationError, match="--grpc: expected HOST:PORT"):
        ListenOptions(address, None, None, True).certificate_files()
