"""Answers of nodes, verified before anything is done with them (XIP-49 §3.3.4).

Pure: bytes, keys, clock and what is held are handed in. A node that answers what nobody signed
cannot be accused of it, and its answer is refused; what somebody signed against a rule is a breach.
"""
