"""Follows one topic: takes the answers of nodes, and returns envelopes in an applicable order.

Pure: the caller asks nodes, has the clock, and stores envelopes.
"""
