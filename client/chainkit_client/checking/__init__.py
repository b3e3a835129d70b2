"""Checks of nodes by anybody: the same logs asked of all of them, and compared.

``asking`` reads logs and takes times, ``comparison`` finds what differs (pure), ``findings`` has it
for people and scripts.
"""
