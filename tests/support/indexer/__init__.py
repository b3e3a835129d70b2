"""Nodes and databases of the operator, as tests drive them."""
