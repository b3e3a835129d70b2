"""Exports of any size, made at random from a seed: a chain's, and those of nodes that serve it.

Every byte is made here, by the form that XIP-49 and the contracts give it, and none by what the
audit decodes with: what it must find is known before it runs.
"""
