"""An export of what a node answers over its public API, as an auditor asks for it.

The node is a stranger. Its answers are kept as they came, so that the audit judges it, and only an
answer that cannot be one of the node's log (too many bytes, no message, no progress) is an error.
"""
