"""Nodes, as a client chooses and asks them."""
