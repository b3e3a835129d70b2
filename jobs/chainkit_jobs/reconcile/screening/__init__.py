"""Screening: rows that equal the expected bytes need no second comparison.

Most rows of an audit are right. Screening compares each row in its place, checks its signature, and
needs no shuffle. Only rows that are not right go on to the comparison
(``reconcile/node_comparison.py``), with all rows that nodes serve under the same sequences.

A table's own columns only guide rows to their neighbours, and decide nothing: a row is right if its
bytes are those that follow from the chain's log of that sequence.
"""
