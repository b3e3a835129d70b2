"""Whole clients on a network of simulated nodes, one of which may lie, under one seed."""
