"""The security council's judgement of evidence, from an endpoint's answers or from proved data.

Either way one function judges: see chainkit.evidence.judgement for what is proved, and why.
"""

from chainkit.council.evidence.bundle import (
    BundleVerdict,
    FindingVerdict,
    verify_bundle,
    verify_bundle_with_endpoint,
)
from chainkit.council.evidence.report import ReportVerdict, verify_report
from chainkit.evidence.verdict import EnvelopeVerdict, Step, Verdict

__all__ = [
    "BundleVerdict",
    "EnvelopeVerdict",
    "FindingVerdict",
    "ReportVerdict",
    "Step",
    "Verdict",
    "verify_bundle",
    "verify_bundle_with_endpoint",
    "verify_report",
]
