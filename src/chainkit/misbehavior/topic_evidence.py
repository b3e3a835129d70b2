"""Topic heads as evidence: two heads that no log has, or a head that leaves an envelope out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError

from chainkit.errors import MalformedData
from chainkit.protocol.proto import node_api_pb2
from chainkit.protocol.received_envelope import ReceivedEnvelope
from chainkit.protocol.topic_heads import (
    MOST_ENTRIES,
    Chain,
    Entry,
    TopicHead,
    read_entry,
    read_topic_head,
    written_entry,
)

_SUBJECT: Final = "topic evidence"


@dataclass(frozen=True, slots=True)
class TopicEvidence:
    """One or two heads of a node, and the entries between them."""

    heads: tuple[bytes, ...]
    """SignedTopicHeads, the earlier one first."""
    entries: tuple[Entry, ...] = ()
    """All that the last head has beyond the one before, where an envelope was left out."""

    def written(self) -> bytes:
        """Write a serialized TopicEvidence."""
        written = node_api_pb2.TopicEvidence()
        for head in self.heads:
            written.heads.add().ParseFromString(head)
        written.entries.extend(map(written_entry, self.entries))
        return written.SerializeToString()


def parse_topic_evidence(data: bytes) -> TopicEvidence:
    """Decode a serialized TopicEvidence; no signature is checked here.

    Raises MalformedData where the bytes do not parse, or have more than a report may.
    """
    try:
        parsed = node_api_pb2.TopicEvidence.FromString(data)
    except DecodeError as error:
        raise MalformedData(_SUBJECT, "a TopicEvidence", error) from error
    if not 0 < len(parsed.heads) <= 2 or len(parsed.entries) > MOST_ENTRIES:
        got = f"{len(parsed.heads)} and {len(parsed.entries)}"
        raise MalformedData(_SUBJECT, f"1 or 2 heads, and up to {MOST_ENTRIES} entries", got)
    heads = tuple(each.SerializeToString() for each in parsed.heads)
    return TopicEvidence(heads, tuple(map(read_entry, parsed.entries)))


def contradiction(earlier: TopicHead, later: TopicHead) -> str | None:
    """Return in a few words why no log has both heads; None where a log may have them.

    Both are of one node and topic, and ``later`` is of the higher id, or of the same.
    """
    before, after = earlier.chain, later.chain
    if earlier.through_id == later.through_id:
        if before != after:
            return f"two different heads up to {later.through_id}"
    elif after.count == before.count:
        if before != after:
            return f"no envelope came after {earlier.through_id}, and the head is another one"
    elif after.count < before.count:
        return f"{before.count} envelopes up to {earlier.through_id}, and {after.count} later"
    elif after.last_id <= earlier.through_id:
        return f"more envelopes up to {earlier.through_id} than before"
    return None


def omitted(
    earlier: TopicHead | None,
    later: TopicHead,
    entries: Sequence[Entry],
    envelope: ReceivedEnvelope,
) -> str | None:
    """Return in a few words that a head lacks an envelope of its signer and topic.

    The head leaves the envelope out, or has another one under its id. None where this is not shown.
    ``entries`` are those after ``earlier``.
    """
    chain = Chain() if earlier is None else earlier.chain
    through = 0 if earlier is None else earlier.through_id
    number = envelope.sequence_id
    if not through < number <= later.through_id:
        return None
    if chain.extended(entries) != later.chain:
        return None
    digest = next((each.digest for each in entries if each.sequence_id == number), None)
    if digest == envelope.digest:
        return None
    what = f"leaves {number} out" if digest is None else f"has another envelope {number}"
    return f"the head up to {later.through_id} {what}"


def judged_heads(
    evidence: TopicEvidence, node_id: int, key: bytes, envelopes: Sequence[ReceivedEnvelope]
) -> tuple[str, bytes] | None:
    """Return what the evidence proves against a node, and its subject; None for nothing.

    ``key`` is the node's, 65 bytes. Raises MalformedData for heads of another signer, and for
    entries whose ids do not rise.
    """
    heads = [read_topic_head(each, key) for each in evidence.heads]
    topic = heads[0].topic
    for each in heads:
        if each.originator_id != node_id or each.topic != topic:
            raise MalformedData(_SUBJECT, f"heads of node {node_id} on one topic", "others")
    later, earlier = heads[-1], heads[0] if len(heads) > 1 else None
    if earlier is not None:
        if earlier.through_id > later.through_id:
            raise MalformedData(_SUBJECT, "the earlier head first", "the later one")
        if (reason := contradiction(earlier, later)) is not None:
            return reason, b"".join(sorted(each.chain.hash for each in heads)) + topic
    for envelope in envelopes:
        is_theirs = envelope.originator_id == node_id and envelope.topic == topic
        reason = omitted(earlier, later, evidence.entries, envelope) if is_theirs else None
        if reason is not None:
            return reason, envelope.digest
    return None
