"""Checks of nodes by anybody: all nodes are asked for the same logs, which are compared.

``node_asker`` reads logs and measures times, ``check`` goes through all nodes, ``comparison`` finds
differences (pure), ``findings`` has the faults for people and scripts.
"""
