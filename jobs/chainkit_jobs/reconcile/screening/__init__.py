"""Screening: what a node serves byte for byte as the chain demands needs no second look.

Most of an audit is rows that are right. Here each is compared, and checked for its signature, where
it lies, beside its neighbours, without a shuffle; only the others, with all that is served under
the same sequences, are carried on to the comparison (``reconcile.py``), which judges them.

The tables' own columns only guide rows to their neighbours, and are believed in nothing: a row is
right if its bytes are those that the chain's log of that sequence demands.
"""
