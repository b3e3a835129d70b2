"""An export of a node's answers over its public API, as any auditor may request them.

The node is a stranger. Its answers are kept as they came, so that the audit checks them, and only
an answer that cannot be of the node's log (too many bytes, no message, no progress) is an error.
"""
