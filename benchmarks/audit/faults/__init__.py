"""Kinds of fault: what a node may serve otherwise than it must, and what an audit must say of it.

Envelopes are written by hand, field by field, so that they may also be what no library writes.
"""
