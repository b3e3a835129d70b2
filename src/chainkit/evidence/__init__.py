"""Evidence: what proves that a node served what the chain never held, and how it travels.

A bundle carries an audit's findings about one node, with the part of the chain that they rest on,
proved from one block hash. Auditor and council judge by the same function.
"""
