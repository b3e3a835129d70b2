"""Checks of nodes by anybody: all nodes are asked for the same logs, which are compared.

``asking`` reads logs and measures times, ``comparison`` finds differences (pure), ``findings`` has
the faults for people and scripts.
"""
