"""The deployment record in the making: nothing sent is lost, and no record is overwritten."""

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from chainkit.contracts.deployment import DeploymentRecord, parse_deployment_record
from chainkit.documents.fields import read_json
from chainkit.documents.files import moved_into_place
from chainkit.errors import ChainkitError, ConfigurationError
from scripts._connection import first_line

Entry = dict[str, Any]

FIRST_NONCE = "first_nonce"
"""The deployer's nonce of the first transaction: all addresses follow from it."""

EARLIER = "earlier"
"""Hashes that were sent for a contract before its newest one: any of these may still be mined."""


class UnfinishedDeployment(ChainkitError):
    """Contracts were deployed, but not all, or not correctly."""


class NonceSpent(ChainkitError):
    """A nonce that a contract's address depends on was used for nothing, or for something else."""


class Draft:
    """A file beside the future record, written before each transaction is sent."""

    def __init__(self, path: Path, content: Mapping[str, Any]) -> None:
        """Take what the file holds, or will hold."""
        self.path = path
        self._content = dict(content)

    @property
    def first_nonce(self) -> int:
        """The deployer's nonce of the first transaction."""
        return int(self._content[FIRST_NONCE])

    @property
    def was_begun(self) -> bool:
        """Whether a transaction was sent, or was about to be."""
        return bool(self._content["contracts"])

    def entry(self, *place: str) -> Entry:
        """Return the known data of one contract; ``place`` as in the record's contracts."""
        found: Entry = self._content["contracts"]
        for name in place:
            found = found.get(name, {})
        return found

    def settle(self, place: tuple[str, ...], transaction: str, block: int) -> None:
        """Record which of a contract's transactions was mined, and where; forget the others."""
        self.entry(*place).pop(EARLIER, None)
        self.add(place, {"transaction": transaction, "block": block})

    def add(self, place: tuple[str, ...], entry: Mapping[str, Any]) -> None:
        """Add data of one contract to its known data."""
        found: Entry = self._content["contracts"]
        for name in place:
            found = found.setdefault(name, {})
        found.update(entry)
        self.write()

    def write(self) -> None:
        """Write the file in one step: whoever is killed here leaves the old one or the new one."""
        text = json.dumps(self._content, indent=2, sort_keys=True) + "\n"
        with moved_into_place(self.path) as partial:
            partial.write_text(text, encoding="utf-8")

    def parsed(self) -> DeploymentRecord:
        """Return what was written as a record. Raises ConfigurationError if a part is missing."""
        return parse_deployment_record(self._content, f"deployment record {self.path}")


@contextmanager
def drafted(record_path: Path, header: Mapping[str, Any], nonce: int) -> Iterator[Draft]:
    """Yield the draft of an unfinished deployment, or a new one; then make it the record.

    ``nonce`` is the first nonce of a new deployment. If the caller fails after a transaction was
    sent, the draft stays, and UnfinishedDeployment names its file. If nothing was sent, no file is
    left. Raises ConfigurationError where no record can be written, where another run writes it, and
    where the unfinished deployment has another ``header``.
    """
    with _folder_locked(record_path):
        if record_path.exists():
            subject, expected = f"deployment record {record_path}", "no record yet"
            raise ConfigurationError(subject, expected, "one that another run has just written")
        draft = _opened(record_path, header, nonce)
        try:
            yield draft
            os.replace(draft.path, record_path)
        except (Exception, KeyboardInterrupt) as error:
            if not draft.was_begun:
                draft.path.unlink()
                raise
            spent = isinstance(error, NonceSpent)
            hint = "move it away to begin another" if spent else "the same command goes on"
            raise UnfinishedDeployment(
                f"deployment for {record_path}",
                "all contracts deployed and checked",
                first_line(error),
                f"what was sent stands in {draft.path}; {hint}",
            ) from error


@contextmanager
def _folder_locked(record_path: Path) -> Iterator[None]:
    # The folder is locked, because the files in it are replaced meanwhile.
    subject = f"deployment record {record_path}"
    try:
        folder = os.open(record_path.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise ConfigurationError(subject, "a file that can be written", error.strerror) from error
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        expected = f"no other deployment into {record_path.parent}"
        raise ConfigurationError(subject, expected, "one that runs") from error
    finally:
        os.close(folder)


def _opened(record_path: Path, header: Mapping[str, Any], nonce: int) -> Draft:
    path = record_path.with_name(f"{record_path.name}.partial")
    if path.exists():
        draft = _resumed(path, header)
        if draft.was_begun:
            return draft
    draft = Draft(path, {**header, FIRST_NONCE: nonce, "contracts": {}})
    try:
        draft.write()
    except OSError as error:
        subject, expected = f"deployment record {record_path}", "a file that can be written"
        raise ConfigurationError(subject, expected, error.strerror) from error
    return draft


def _resumed(path: Path, header: Mapping[str, Any]) -> Draft:
    subject = f"unfinished deployment {path}"
    content = read_json(path, subject)
    if not isinstance(content, dict) or not isinstance(content.get("contracts"), dict):
        raise ConfigurationError(subject, "an object with contracts", repr(content)[:80])
    nonce = content.get(FIRST_NONCE)
    if not isinstance(nonce, int) or isinstance(nonce, bool) or nonce < 0:
        raise ConfigurationError(subject, "an integer from 0", repr(nonce), FIRST_NONCE)
    for name, entry in content["contracts"].items():
        _check_entry(subject, f"contracts.{name}", entry)
    for field, expected in header.items():
        if content.get(field) != expected:
            place = f"{field}; move the file away to begin another deployment"
            found = json.dumps(content.get(field), sort_keys=True)
            raise ConfigurationError(subject, json.dumps(expected, sort_keys=True), found, place)
    return Draft(path, content)


def _check_entry(subject: str, place: str, entry: Any) -> None:
    if not isinstance(entry, dict):
        raise ConfigurationError(subject, "an object", repr(entry)[:80], place)
    hashes = [*entry.get(EARLIER, []), *([entry["transaction"]] if "transaction" in entry else [])]
    for value in hashes:
        if not isinstance(value, str) or not re.fullmatch("0x[0-9a-f]{64}", value):
            raise ConfigurationError(subject, "a transaction hash", repr(value)[:80], place)
    if "implementation" in entry:
        _check_entry(subject, f"{place}.implementation", entry["implementation"])
