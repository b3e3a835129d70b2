"""Bundles that are hostile by their form: one clean error, safe to print."""

from __future__ import annotations

import os
from typing import Any

import pytest

from chainkit.documents import untrusted as safe_files
from chainkit.errors import ConfigurationError, MalformedData
from support.audit.bundles import (
    BundleScene,
    proved,
    refused,
    reseal,
    rewrite_line,
)
from support.command_line import run

pytest_plugins = ["support.audit.bundle_fixtures"]

FILES = ("bundle.json", "headers.rlp", "transactions.jsonl", "findings.jsonl")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"[" * 100_000,
        b"{}",
        b'{"format": 1}',
        b"\xff\xfe",
        b"1" * 5000,
        b'{"format": NaN}',
        b'"\\u001b[2J"',
    ],
)
@pytest.mark.parametrize("name", ["bundle.json", "transactions.jsonl", "findings.jsonl"])
def test_verify__hostile_json__is_one_clean_error(
    scene: BundleScene, name: str, data: bytes
) -> None:
    path = scene.bundle / name
    path.write_bytes(data + b"\n" if name != "bundle.json" else data)
    if name != "bundle.json":
        reseal(scene.bundle)

    trust = ("--trust", scene.trusted_hash.hex(), "--deployment", scene.record_path)
    outcome = run("council", "verify", scene.bundle, *trust)

    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("error: ") and outcome.err.count("\n") == 1
    assert len(outcome.err) < 400 + len(str(scene.bundle))
    assert outcome.err.rstrip("\n").isprintable()


@pytest.mark.parametrize(
    "changes",
    [
        {"code": "\x1b[2JPROVED"},
        {"code": "A" * 10_000},
        {"detail": "\u202egnp.exe"},
        {"finding_id": "../../../etc/passwd"},
        {"sequence_id": "9" * 5000},
        {"sequence_id": 3},
        {"envelope": "0x0"},
        {"envelope": "0xZZ"},
        {"block_number": True},
        {"log_index": 10**400},
        {"unsigned_report_sha256": "00"},
        {"another": 1},
    ],
)
def test_verify_bundle__hostile_field_of_a_finding__is_refused_and_safe_to_print(
    scene: BundleScene, changes: dict[str, Any]
) -> None:
    rewrite_line(scene.bundle / "findings.jsonl", 1, **changes)
    reseal(scene.bundle)

    with pytest.raises(MalformedData) as caught:
        proved(scene)

    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


def test_verify_bundle__line_longer_than_any__is_refused(
    scene: BundleScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(safe_files, "LONGEST_LINE", 300)

    refused(scene, "lines of up to 300 bytes")


def test_verify_bundle__line_without_an_end__is_refused(scene: BundleScene) -> None:
    path = scene.bundle / "findings.jsonl"
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    reseal(scene.bundle)

    refused(scene, "the one form of its JSON")


def test_verify_bundle__finding_told_twice__is_refused(scene: BundleScene) -> None:
    path = scene.bundle / "findings.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[1:], lines[4]]))
    reseal(scene.bundle, proving_themselves=0)

    refused(scene, "one line")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "nothing"])
def test_verify_bundle__no_regular_file__is_refused_at_once(
    scene: BundleScene, name: str, kind: str
) -> None:
    path = scene.bundle / name
    data = path.read_bytes()
    path.unlink()
    if kind == "link":
        (scene.root / "elsewhere").write_bytes(data)
        path.symlink_to(scene.root / "elsewhere")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()

    with pytest.raises(ConfigurationError, match="evidence file"):
        proved(scene)
