"""Grants of one upload: what a gateway writes, a storage service of the same key reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainkit.errors import ConfigurationError, InvalidSignature, MalformedData
from chainkit.service.upload_grant import (
    Grant,
    read_base_url,
    read_grant,
    read_key,
    upload_url,
    write_grant,
)

KEY = bytes(range(32))
GRANT = Grant(bytes(range(16)), 1_800_000_000)
TEXT = write_grant(KEY, GRANT)


def test_read_grant__before_its_end__returns_what_was_written() -> None:
    assert read_grant(KEY, TEXT, GRANT.expires_at - 1) == GRANT


def test_read_grant__at_its_end__is_refused() -> None:
    with pytest.raises(MalformedData, match="expired 0 s ago"):
        read_grant(KEY, TEXT, GRANT.expires_at)


def test_read_grant__by_another_key__is_refused() -> None:
    with pytest.raises(InvalidSignature):
        read_grant(bytes(32), TEXT, 0)


@pytest.mark.parametrize("place", range(75))
def test_read_grant__with_another_character__is_refused(place: int) -> None:
    # The last character has two bits that no byte takes.
    other = "A" if TEXT[place] != "A" else "Q"

    with pytest.raises(MalformedData):
        read_grant(KEY, TEXT[:place] + other + TEXT[place + 1 :], 0)


@pytest.mark.parametrize("text", ["", TEXT[:-1], TEXT + "A", "=" * 75, "é" * 75, TEXT + "\n"])
def test_read_grant__another_text__is_refused(text: str) -> None:
    with pytest.raises(MalformedData):
        read_grant(KEY, text, 0)


def test_read_key__file_of_hex_digits__is_the_key(tmp_path: Path) -> None:
    path = tmp_path / "grant.key"
    path.write_text(KEY.hex() + "\n")

    assert read_key(path) == KEY


@pytest.mark.parametrize("content", ["", "ab", "x" * 64, KEY.hex() + "00"])
def test_read_key__other_content__is_refused_without_it(tmp_path: Path, content: str) -> None:
    path = tmp_path / "grant.key"
    path.write_text(content)

    with pytest.raises(ConfigurationError) as refused:
        read_key(path)

    assert not content or content not in str(refused.value).removeprefix(f"grant key {path}")


def test_upload_url__of_a_base__holds_the_grant() -> None:
    base = read_base_url("https://backups.example/history/", "--url")

    assert upload_url(base, KEY, GRANT) == f"https://backups.example/history/backups?grant={TEXT}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "backups.example",
        "ftp://h",
        "https://",
        "https://h?a",
        "https://h#a",
        "https://u:p@h",
        "http://[h",
    ],
)
def test_read_base_url__no_base_of_urls__is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--url: expected http://HOST or https://HOST"):
        read_base_url(text, "--url")
