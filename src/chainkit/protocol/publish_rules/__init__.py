"""Rules of a publish (XIP-49 §3.3.4): what an originator must check before it signs.

``parse_client_envelope`` checks what the bytes alone show, and ``read_publish`` the payer's
signature with it. ``judge_publish`` checks what depends on the node: its id, its cursor, the chain
and the time, which are handed in. Each rule has a reason of its own, which a refusal names.
"""
