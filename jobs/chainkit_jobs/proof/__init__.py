"""The proof of a chain export: all of it follows from one block hash that the auditor trusts.

Hashes of headers and the links between them, the transactions and receipts under the roots of their
headers, and all columns that follow from these, are recomputed. Other columns are listed.
"""

from chainkit_jobs.proof.job import check_trusted_hash, prove_chain
from chainkit_jobs.proof.result import ChainProof, Problem, ProblemCode, Unproved

__all__ = [
    "ChainProof",
    "Problem",
    "ProblemCode",
    "Unproved",
    "check_trusted_hash",
    "prove_chain",
]
