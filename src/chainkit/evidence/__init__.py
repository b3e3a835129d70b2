"""Evidence: the proof that a node served data that the chain never contained, and its files.

A bundle carries an audit's findings about one node, with the part of the chain that proves them,
from one block hash. Auditor and council decide by the same function.
"""
