"""Brings an export of a node's answers up to its newest answers: part by part, each published.

A part is some pages of answers, in a file named by the cursors before and after it. The manifest is
true at every moment, so a killed export continues after its last part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from chainkit.errors import InconsistentAnswer, StoreError
from chainkit.exports import ExportFolder, Manifest
from chainkit.exports.tables import ANSWERED_ENVELOPES
from chainkit.text.hexadecimal import hex0x
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID, BlockReference
from chainkit_jobs.node_export.answer_page import Row, keys_of, read_page
from chainkit_jobs.node_export.api import NodeApi
from chainkit_jobs.node_export.pinning import Chain, Pin

SOURCE: Final = "answers of the node's public API"

PART_ROWS: Final = 20_000
PART_BYTES: Final = 32 << 20
"""Envelopes of a part, and their bytes: the most that a killed export loses, and that memory
holds."""

_SAMPLED: Final = 32
"""Envelopes of a page whose signatures are checked here. The audit checks all signatures."""

_SAME_FOREVER: Final = ("chain_id", "genesis_hash", "contracts", "from_block", "source")

Progress = Callable[[int, int | None], None]
"""Takes the cursor and the originator's counter, None where no contract has one."""


@dataclass(frozen=True, slots=True)
class Exported:
    """A folder's content now, and its new part."""

    manifest: Manifest
    new_envelopes: int


def export_node(
    api: NodeApi,
    chain: Chain,
    directory: Path,
    progress: Progress = lambda cursor, counter: None,
) -> Exported:
    """Ask a node for the chain's envelopes that a folder does not hold yet.

    An originator ends with an answer that reaches its counter, or is empty. Raises the errors of
    NodeApi and of an Endpoint, with all whole parts published; InconsistentAnswer where an answer
    makes no progress; StoreError where the folder holds anything but answers of the same node and
    chain, a reorg took back the block of earlier answers, or the folder cannot be written.
    """
    with ExportFolder(directory, "node", ["envelopes"]) as folder:
        about = {
            "kind": "node",
            "source": SOURCE,
            **chain.record.about_network,
            "from_block": chain.record.first_block,
        }
        if folder.manifest is not None:
            _check_continues(directory, folder.manifest, about)
            folder.check(folder.manifest.files, digests=False)
        run = _Run(api, chain, folder, directory, about)
        return run.finish(progress)


def _check_continues(directory: Path, before: Manifest, about: Mapping[str, Any]) -> None:
    subject = f"export {directory}"
    if not before.is_of_answers:
        raise StoreError(subject, "an export of a node's answers", "one that its operator wrote")
    for name in _SAME_FOREVER:
        if (got := getattr(before, name)) != about[name]:
            raise StoreError(subject, f"{name} {about[name]}", got)


class _Run:
    """One run: what was answered and is not published yet, and what the manifest lists."""

    def __init__(
        self,
        api: NodeApi,
        chain: Chain,
        folder: ExportFolder,
        directory: Path,
        about: Mapping[str, Any],
    ) -> None:
        self._api, self._chain = api, chain
        self._folder, self._directory, self._about = folder, directory, about
        self._before = folder.manifest
        self._files: dict[str, Mapping[str, Any]] = {}
        self._published = dict.fromkeys(chain.record.originator_ids, 0)
        self._key: str | None = None
        if self._before is not None:
            self._files = dict(self._before.files)
            self._published |= self._before.answers
            self._key = self._before.node_public_key
        self._begin_at(chain.record.originator_ids[0])
        self._rows: list[Row] = []
        self._bytes = 0
        self._new = 0
        self._signers: Counter[bytes] = Counter()

    def finish(self, progress: Progress) -> Exported:
        """Ask until nothing more comes, and publish the rest."""
        self._pin = self._chain.pin()
        self._beside = _end_of(self._before) if self._before else self._pin.block
        self._follow(self._pin.block)
        for originator_id in self._chain.record.originator_ids:
            self._begin_at(originator_id)
            self._read_on(progress)
        if self._new == 0:
            self._publish()
        assert self._folder.manifest is not None
        return Exported(self._folder.manifest, self._new)

    def _begin_at(self, originator_id: int) -> None:
        self._originator_id = originator_id
        self._cursor = self._published[originator_id]

    @property
    def _counter(self) -> int | None:
        """Return the requested originator's counter; None where no contract has one."""
        return self._pin.counters.get(self._originator_id)

    def _read_on(self, progress: Progress) -> None:
        """Ask for an originator's envelopes until no more come, and publish them."""
        has_more = True
        while has_more:
            has_more = self._ask()
            progress(self._cursor, self._counter)
            if len(self._rows) >= PART_ROWS or self._bytes >= PART_BYTES:
                self._publish()
                if self._counter is not None and self._cursor > self._counter:
                    # The node invents envelopes, maybe without end: one part is evidence enough.
                    break
        if self._rows:
            self._publish()

    def _ask(self) -> bool:
        """Ask for a page; return whether there may be another behind it."""
        asked = self._api.page_rows
        envelopes = self._api.page(self._cursor, self._originator_id)
        self._follow(self._chain.head())
        if not envelopes:
            return False
        page = read_page(envelopes, self._cursor, self._originator_id)
        if page.cursor == self._cursor:
            expected = f"envelopes behind sequence {self._cursor}"
            got = f"{len(envelopes)} at or below it"
            raise InconsistentAnswer(f"node {self._api.name}", expected, got)
        self._signers.update(keys_of(envelopes[:_SAMPLED]))
        self._check_signer()
        self._rows += page.rows
        self._bytes += sum(map(len, envelopes))
        self._cursor = page.cursor
        # A short page that reaches the counter: what comes now was posted since, and never ends.
        is_short = len(envelopes) < min(asked, self._api.page_rows)
        return not (is_short and self._counter is not None and self._cursor >= self._counter)

    def _follow(self, block: BlockReference) -> None:
        """Move to a newer block, if the last one is still on the chain.

        All answers in between belong to one branch, but for the newest blocks.
        """
        self._chain.check_on_chain(self._beside, self._directory)
        self._beside = block

    def _check_signer(self) -> None:
        """Refuse another node's answers. Altered envelopes recover to a key each, never to one."""
        for key, count in self._signers.most_common(1):
            if count > 1 and self._key not in (None, hex0x(key)):
                expected = f"answers signed by its key {self._key}"
                raise StoreError(f"export {self._directory}", expected, hex0x(key))

    def _signing_key(self) -> str | None:
        """Return the key of more than half of the sampled envelopes; None where no key has so many.

        One envelope that somebody altered on its way must not hide the signer of all others.
        """
        if self._key is not None:
            return self._key
        for key, count in self._signers.most_common(1):
            if 2 * count > self._signers.total():
                return hex0x(key)
        return None

    def _publish(self) -> None:
        self._pin = self._chain.pin({self._originator_id: self._cursor})
        self._follow(self._pin.block)
        if self._rows or not self._files:
            name, file = self._folder.write(
                self._name(self._published[self._originator_id]),
                ANSWERED_ENVELOPES,
                [self._rows] if self._rows else [],
                is_finished=True,
            )
            self._files[name] = file
        self._published[self._originator_id] = self._cursor
        self._folder.publish(self._manifest(self._pin))
        self._new += len(self._rows)
        self._rows, self._bytes = [], 0

    def _name(self, before: int) -> str:
        """Name a part by its cursors before and after, and by the originator if not our own."""
        of = f"{self._originator_id:010}" if self._chain.record.is_listed else ""
        return f"envelopes/{of}{before:020}-{of}{self._cursor:020}"

    def _manifest(self, pin: Pin) -> Manifest:
        answered: dict[str, Any] = {"answered_to": self._published.get(BLOCKCHAIN_ORIGINATOR_ID)}
        if self._chain.record.is_listed:
            answered = {"answered": {str(each): last for each, last in self._published.items()}}
        return Manifest(
            files=dict(self._files),
            to_block=pin.block.number,
            to_block_hash=hex0x(pin.block.hash),
            node_public_key=self._signing_key(),
            **answered,
            **self._about,
        )


def _end_of(manifest: Manifest) -> BlockReference:
    return BlockReference(manifest.to_block, bytes.fromhex(manifest.to_block_hash[2:]))
