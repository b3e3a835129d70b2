"""Rules of a publish (XIP-49 §3.3.4): the checks of an originator before it signs.

``parse_client_envelope`` checks what the bytes alone show, and ``read_publish`` also the payer's
signature. ``judge_publish`` checks what depends on the node: its id, its cursor, the chain and the
time, which the caller passes in. Each rule has a reason of its own, which a refusal names.
"""
