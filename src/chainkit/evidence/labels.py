"""The labels of a finding: the codes that follow from the proofs, whatever an auditor wrote.

An id is a digest that anybody can compute again. So a finding's sequence must be its envelope's,
and its code is shown as the finding's only where the envelope and the chain's log show this code.
"""

from __future__ import annotations

from typing import Final

from chainkit.errors import MalformedData
from chainkit.evidence.emission import EmittingContracts
from chainkit.evidence.findings import BundledFinding
from chainkit.evidence.verdict import EnvelopeVerdict
from chainkit.protocol.envelope import breaks_the_xip, quarantine_reason
from chainkit.types import PayloadEvent

ALTERED: Final = "ENVELOPE_ALTERED"
INVENTED: Final = "ENVELOPE_INVENTED"
UNREADABLE: Final = "ENVELOPE_UNREADABLE"
SIGNATURE_INVALID: Final = "SIGNATURE_INVALID"
QUARANTINED_SERVED: Final = "QUARANTINED_SERVED"


def check_labels(
    finding: BundledFinding, judged: EnvelopeVerdict | None, log: PayloadEvent | None
) -> None:
    """Raise MalformedData where a finding names another sequence or digest than its evidence shows.

    ``judged`` is the verdict on the finding's envelope, None where nothing was served; ``log`` is
    the chain's log that the finding names, None unless it is proved.
    """
    own = finding.originator_id, finding.sequence_id
    served = None if judged is None else judged.served
    if served is not None and own != (served.originator_id, served.sequence_id):
        raise _other_sequence(finding, served.originator_id, served.sequence_id, "its envelope has")
    if log is not None and own != (log.originator_id, log.sequence_id):
        raise _other_sequence(finding, log.originator_id, log.sequence_id, "the log it names has")
    if judged is not None and finding.served_digest != judged.signed_digest:
        raise MalformedData(finding.name, "the digest of its envelope", "another")


def _other_sequence(
    finding: BundledFinding, originator_id: int, sequence_id: int, why: str
) -> MalformedData:
    expected = f"sequence {sequence_id} of originator {originator_id}, as {why}"
    got = f"sequence {finding.sequence_id} of originator {finding.originator_id}"
    return MalformedData(finding.name, expected, got)


def codes_that_follow(
    judged: EnvelopeVerdict,
    log: PayloadEvent | None,
    expected_digest: bytes | None,
    contracts: EmittingContracts,
) -> tuple[str, ...]:
    """Return the codes that a served envelope and the chain's log show, the gravest first.

    ``log`` is None unless it is proved that the chain emitted it; then ``expected_digest`` is the
    digest that an honest node's envelope of this log signs.
    """
    served = judged.served
    if served is None:
        return (UNREADABLE,)
    codes = []
    if contracts.why_no_place(served.originator_id, served.sequence_id) is not None:
        codes.append(INVENTED)
    elif log is not None and judged.signed_digest != expected_digest:
        codes.append(ALTERED)
    elif (
        log is not None
        and (reason := quarantine_reason(log)) is not None
        and breaks_the_xip(reason)
    ):
        codes.append(QUARANTINED_SERVED)
    if judged.is_signed is False:
        codes.append(SIGNATURE_INVALID)
    return tuple(codes)
