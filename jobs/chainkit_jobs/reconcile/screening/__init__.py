"""Screening: what a node serves byte for byte as the chain demands needs no second look.

Most rows of an audit are right. Screening compares each row where it lies, checks its signature,
and needs no shuffle. It passes on to the judge (``reconcile/judge.py``) only the rows that are not
right, and all rows that nodes serve under the same sequences.

A table's own columns only guide rows to their neighbours, and decide nothing: a row is right if its
bytes are those that the chain's log of that sequence demands.
"""
