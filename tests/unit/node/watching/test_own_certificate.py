from __future__ import annotations

import logging
import time
from dataclasses import replace
from pathlib import Path

import pytest

from chainkit.service.certificate import CertificateFiles
from chainkit.types import BlockReference, Node
from chainkit_node.peers.directory import Listing
from chainkit_node.watching.own_certificate import OwnCertificate
from support.network.certificates import Pair, make_authority

OWN = Node(200, b"", "https://node.example:5051", True)
LISTING = Listing({200: OWN}, 200, BlockReference(1, bytes(32)))
DAY = 24 * 60 * 60.0
PEERS = make_authority()
GOOD = PEERS.issue("node.example")


@pytest.fixture
def files(tmp_path: Path) -> CertificateFiles:
    return CertificateFiles(tmp_path / "certificate.pem", tmp_path / "key.pem")


def write(files: CertificateFiles, pair: Pair) -> None:
    files.certificate.write_bytes(pair[0])
    files.key.write_bytes(pair[1])


def looked(files: CertificateFiles, pair: Pair, listing: Listing = LISTING) -> OwnCertificate:
    write(files, pair)
    certificate = OwnCertificate(files, lambda: listing)
    certificate.look()
    return certificate


def test_look__certificate_of_the_urls_host__is_well_until_its_end(files: CertificateFiles) -> None:
    certificate = looked(files, GOOD)

    assert certificate.wrong() is None
    assert 364 * DAY < certificate.seconds_left() <= 365 * DAY


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        (PEERS.issue("node.example", days=-1), "certificate has expired"),
        (PEERS.issue("node.example", age_days=-1), "certificate is not yet valid"),
        (PEERS.issue("other.example"), "Hostname mismatch"),
        ((GOOD[0], PEERS.issue("node.example")[1]), "its files cannot be used"),
        ((b"", b""), "its files cannot be used"),
    ],
)
def test_look__certificate_that_others_refuse__says_why_and_has_no_time_left(
    files: CertificateFiles, pair: Pair, words: str
) -> None:
    certificate = looked(files, pair)

    assert str(certificate.wrong()).startswith(f"others refuse it: {words}")
    assert certificate.seconds_left() == 0


@pytest.mark.parametrize(("days", "warns"), [(13.9, True), (14.1, False)])
def test_look__fourteen_days_before_its_end__warns(
    files: CertificateFiles, days: float, warns: bool
) -> None:
    certificate = looked(files, PEERS.issue("node.example", days=days))

    assert ("and was not renewed" in str(certificate.wrong())) is warns
    assert certificate.seconds_left() > 13 * DAY


@pytest.mark.parametrize("url", ["http://plain.example:5051", "no URL"])
def test_look__url_without_https_or_not_registered__leaves_the_name_out(
    files: CertificateFiles, url: str
) -> None:
    plain = replace(LISTING, nodes={200: replace(OWN, http_address=url)})

    assert looked(files, GOOD, plain).wrong() is None
    assert looked(files, GOOD, Listing({}, None, None)).wrong() is None


def test_look__changes__are_logged_once_each(
    files: CertificateFiles, caplog: pytest.LogCaptureFixture
) -> None:
    now = time.time()
    write(files, GOOD)
    certificate = OwnCertificate(files, lambda: LISTING, lambda: now)
    with caplog.at_level(logging.INFO, "chainkit"):
        certificate.look()
        now += 352 * DAY
        for _ in range(3):
            now += 60.0
            certificate.look()
        write(files, PEERS.issue("other.example"))
        for _ in range(3):
            certificate.look()
        write(files, PEERS.issue("node.example", days=800))
        certificate.look()

    assert [record.event.name for record in caplog.records] == [  # type: ignore[attr-defined]
        "certificate_ends_soon",
        "certificate_refused_by_others",
        "certificate_right",
    ]


def test_look__a_node_without_tls__has_nothing_to_say() -> None:
    certificate = OwnCertificate(None, lambda: LISTING)
    certificate.look()

    assert certificate.wrong() is None
