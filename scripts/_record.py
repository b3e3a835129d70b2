"""The deployment record in the making: no address is lost, and no record is overwritten."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from chainkit.deployment import DeploymentRecord, parse_deployment_record
from chainkit.errors import ChainkitError, ConfigurationError
from scripts._connection import first_line

Entry = dict[str, Any]


class UnfinishedDeployment(ChainkitError):
    """Contracts were deployed, but not all of them, or not as they should be."""


class Draft:
    """A file beside the record that is to be: it holds every contract that was mined."""

    def __init__(self, record_path: Path, header: Mapping[str, Any]) -> None:
        """Create the file. Raises ConfigurationError where none can be written."""
        self._record_path = record_path
        self._content = {**header, "contracts": {}}
        self.path = record_path.with_name(f"{record_path.name}.{os.getpid()}.partial")
        try:
            self.path.touch(exist_ok=False)
        except OSError as error:
            subject, expected = f"deployment record {record_path}", "a file that can be written"
            raise ConfigurationError(subject, expected, error.strerror) from error

    @property
    def contracts(self) -> dict[str, Entry]:
        """What was mined so far, by contract name."""
        found: dict[str, Entry] = self._content["contracts"]
        return found

    def add(self, name: str, entry: Mapping[str, Any]) -> None:
        """Write what was mined for one contract, beside what is known of it."""
        self.contracts[name] = self.contracts.get(name, {}) | dict(entry)
        text = json.dumps(self._content, indent=2, sort_keys=True) + "\n"
        self.path.write_text(text, encoding="utf-8")

    def parsed(self) -> DeploymentRecord:
        """Return what was written as a record. Raises ConfigurationError if a part is missing."""
        return parse_deployment_record(self._content, f"deployment record {self.path}")

    def finish(self) -> None:
        """Make the file the record, in one step: readers see all of it or nothing."""
        os.replace(self.path, self._record_path)


@contextmanager
def drafted(record_path: Path, header: Mapping[str, Any]) -> Iterator[Draft]:
    """Yield a draft for the contracts that the caller deploys, adds and checks; then finish it.

    If the caller fails after something was mined, the draft stays, and UnfinishedDeployment names
    it. If nothing was mined, nothing is left.
    """
    draft = Draft(record_path, header)
    try:
        yield draft
        draft.finish()
    except (Exception, KeyboardInterrupt) as error:
        if not draft.contracts:
            draft.path.unlink()
            raise
        raise UnfinishedDeployment(
            f"deployment for {record_path}",
            "all contracts deployed and checked",
            first_line(error),
            f"what was deployed stands in {draft.path}",
        ) from error
