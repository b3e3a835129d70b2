"""The folder that reports are gathered into, as ``chainkit council triage`` reads it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from chainkit.council.gathering.node_answers import HostedReport, Share
from chainkit.council.triage.checks import LARGEST_REPORT
from chainkit.council.triage.files import GATHER_PAGE, MOST_FILES
from chainkit.documents.files import check_replaceable, moved_into_place
from chainkit.documents.untrusted import read_small
from chainkit.errors import ConfigurationError, MalformedData
from chainkit.misbehavior.signed import parse_signed

MOST_BYTES: Final = 2**30
"""Bytes that one gathering may write, beside a last answer of each node."""

_MOST_REPORTS_OF_NODE: Final = 5_000
"""Honest nodes batch their reports; nobody reads more of one."""
_MOST_BYTES_OF_NODE: Final = 2**28


class ReportFolder:
    """A folder, new or with what was gathered before."""

    def __init__(self, path: Path) -> None:
        """Make the folder where there is none.

        Raises ConfigurationError where there is something else, or its parent folder is missing.
        """
        self.path = path
        self._subject = f"folder {path}"
        try:
            path.mkdir(exist_ok=True)
            self._entries = len(os.listdir(path))
        except OSError as error:
            expected, got = "a folder for reports", os.strerror(error.errno or 0)
            raise ConfigurationError(self._subject, expected, got) from error

    def share(self, nodes: int, seconds: float) -> Share:
        """Divide the room that is left among nodes, so that none can take another's.

        Raises ConfigurationError where triage would read no more files than there are.
        """
        reports = (MOST_FILES - self._entries - 1) // max(nodes, 1)
        if reports < 1:
            got = f"{self._entries}: gather into a new folder"
            raise ConfigurationError(self._subject, f"fewer than {MOST_FILES} files", got)
        return Share(
            min(reports, _MOST_REPORTS_OF_NODE),
            min(MOST_BYTES // max(nodes, 1), _MOST_BYTES_OF_NODE),
            seconds,
        )

    def keep(self, report: HostedReport) -> bool:
        """Write a report, and return whether it is new.

        Raises ConfigurationError where something else has the report's name, or the disk is full.
        """
        path = self.path / report.name
        if os.path.lexists(path):
            self._check_same(path, report)
            return False
        try:
            with moved_into_place(path) as partial:
                partial.write_bytes(report.data)
        except OSError as error:
            got = os.strerror(error.errno or 0)
            raise ConfigurationError(f"report {path}", "a writable file", got) from error
        return True

    def write_page(self, content: Mapping[str, Any]) -> None:
        """Write the page of a gathering, over that of an earlier one."""
        path = self.path / GATHER_PAGE
        if os.path.lexists(path):
            check_replaceable(path, f"page {path}")
        with moved_into_place(path) as partial:
            partial.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")

    def _check_same(self, path: Path, report: HostedReport) -> None:
        """Check that a file holds the report that the node signed, under any valid signature."""
        subject = f"report {path}"
        try:
            found = parse_signed(read_small(path, LARGEST_REPORT))
        except MalformedData as error:
            raise ConfigurationError(subject, "what it was named after", "other bytes") from error
        expected = (report.signed.digest, report.signed.reporter)
        if (found.digest, found.reporter) != expected:
            raise ConfigurationError(subject, "what it was named after", "another report")
