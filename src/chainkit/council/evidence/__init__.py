"""The security council's judgement of evidence, from an endpoint's answers or from proved data.

Either way one function judges: see chainkit.evidence.judgement for what is proved, and why; and
chainkit.misbehavior.evidence for what the envelopes of a report prove without the chain.
"""

from chainkit.council.evidence.bundle import (
    BundleVerdict,
    FindingVerdict,
    verify_bundle,
    verify_bundle_with_endpoint,
)
from chainkit.council.evidence.report import ReportVerdict, verify_report
from chainkit.council.evidence.safety import SafetyVerdict, verify_safety
from chainkit.evidence.verdict import EnvelopeVerdict, Step, Verdict

__all__ = [
    "BundleVerdict",
    "EnvelopeVerdict",
    "FindingVerdict",
    "ReportVerdict",
    "SafetyVerdict",
    "Step",
    "Verdict",
    "verify_bundle",
    "verify_bundle_with_endpoint",
    "verify_report",
    "verify_safety",
]
