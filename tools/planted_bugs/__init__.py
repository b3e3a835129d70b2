"""Bugs that are planted in the node's rules, to see whether the simulated network finds them."""
