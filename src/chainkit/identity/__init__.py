"""Identity updates (XIP-46): which keys belong to an inbox, and who may change that.

An update is judged in four steps, each dearer than the one before: its bytes are read and its
signers named (``update``), the rules are applied as if each signature were good (``rules``), the
signatures are checked (``signed``), and contract wallets are asked for (``wallets``). ``judge``
takes all four. An update that breaks a rule costs nobody a question to an endpoint.

No network, no clock, no environment: the caller passes in what asks contract wallets.
"""
