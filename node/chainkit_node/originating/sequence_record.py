"""The highest sequence id that this node has signed, in a file outside of its database.

Theory of operation. A database that is restored from an older copy lacks envelopes that were signed
and given away, and the sequencer would sign their ids again (XIP-49 §3.3.4). So after each commit,
and before anybody is answered, the file's one line is written over and flushed. The record is never
ahead of the database that was committed to; a database behind the record is an older copy. A crash
between commit and flush leaves the record behind, and the next look at the database corrects it.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from pathlib import Path
from typing import Final

from chainkit.errors import StoreError, StoreInUse, StoreUnavailable
from chainkit.misbehavior.received_batch import MOST_IDS_AHEAD
from chainkit.service.refusals import NotReady

PATIENCE_SECONDS: Final = 3.0
"""A process that is killed may give the database's lock back some time before this file's."""

_POLL_SECONDS: Final = 0.02
_LINE: Final = re.compile(rb"node +([0-9]{1,10}) last +([0-9]{1,20})\n")
_MOST_BYTES: Final = 64


class DatabaseOlder(NotReady):
    """The database lacks envelopes that this node has signed: their ids are not given again."""


class ResumedTooFar(NotReady):
    """The operator gives up more envelopes than others believe: no id is signed behind them."""


def database_older(node_id: int, signed_id: int, stored_id: int, knows: str) -> DatabaseOlder:
    """Return the refusal to sign behind a stored id; ``knows`` names what has the higher one."""
    expected = f"envelopes up to sequence id {signed_id}, which it has signed"
    place = f"the database is older than {knows}: see the node's guide"
    return DatabaseOlder(f"node {node_id}", expected, f"up to {stored_id}", place)


class SequenceRecord:
    """The record of one node; its file is locked until ``close`` or the end of the process."""

    def __init__(self, path: Path, resume_after: int = 0) -> None:
        """Open the file, or make it. ``resume_after`` is an id up to which envelopes are given up.

        Raises StoreInUse where another process has the file, and StoreError where it is no record
        or cannot be written.
        """
        self._subject = f"sequence record {path}"
        self._resume_after = resume_after
        try:
            self._descriptor = _open_durably(path)
        except OSError as error:
            raise StoreError(self._subject, "a file to write", error.strerror) from error
        try:
            self._lock()
            self._node_id, self._last_id = self._read()
        except BaseException:
            os.close(self._descriptor)
            raise

    def close(self) -> None:
        """Let another process have the file."""
        os.close(self._descriptor)

    def last_id(self, node_id: int, stored_id: int) -> int:
        """Return the id after which the node goes on, given the last one in its database.

        Raises DatabaseOlder where the recorded id is higher, unless the operator resumes after it;
        ResumedTooFar; StoreError where the record is another node's; and StoreUnavailable.
        """
        resumed_id = self.check(node_id, stored_id)
        if stored_id > self._last_id:
            self.advance(node_id, stored_id)
        return resumed_id

    def check(self, node_id: int, stored_id: int) -> int:
        """Return as ``last_id`` does, with its errors, and write nothing; from any thread."""
        if self._node_id not in (None, node_id):
            raise StoreError(self._subject, f"node {node_id}", f"node {self._node_id}")
        if max(stored_id, self._resume_after) < self._last_id:
            raise database_older(node_id, self._last_id, stored_id, "the sequence record")
        most = max(stored_id, self._last_id) + MOST_IDS_AHEAD
        if self._resume_after > most:
            # A digit too many: nobody can take back what is signed under such an id.
            expected = f"at most {most}, a million beyond the last known id"
            raise ResumedTooFar("--resume-after", expected, self._resume_after)
        return max(stored_id, self._resume_after)

    def knows(self, node_id: int, stored_id: int) -> bool:
        """Return whether the record, or the operator, says after which id a node goes on.

        The operator's id says nothing where the database holds envelopes beyond it.
        """
        return self._node_id == node_id or self._resume_after > stored_id

    def left_over(self, stored_id: int) -> int | None:
        """Return what the operator gave up where the database is beyond it, else None."""
        return self._resume_after if 0 < self._resume_after <= stored_id else None

    def advance(self, node_id: int, sequence_id: int) -> None:
        """Write the id of a committed envelope to the disk. Raises StoreUnavailable."""
        # The line's length is fixed: it is overwritten in one piece, and the file's size stays.
        line = f"node {node_id:>10} last {sequence_id:>20}\n".encode()
        try:
            os.pwrite(self._descriptor, line, 0)
            os.fdatasync(self._descriptor)
        except OSError as error:
            expected = "a file that can be written"
            raise StoreUnavailable(self._subject, expected, error.strerror) from error
        self._node_id, self._last_id = node_id, sequence_id

    def _lock(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._try_lock():
            if time.monotonic() >= deadline:
                raise StoreInUse(self._subject, "no other node", "one")
            time.sleep(_POLL_SECONDS)

    def _try_lock(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _read(self) -> tuple[int | None, int]:
        content = os.pread(self._descriptor, _MOST_BYTES, 0)
        if not content:
            return None, 0
        found = _LINE.fullmatch(content)
        if found is None:
            raise StoreError(self._subject, "a line `node ID last SEQUENCE_ID`", "another content")
        return int(found[1]), int(found[2])


def _open_durably(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        # The file's name, too, survives a power cut.
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
