"""Clients of one group on a chain with reorgs, under one seed."""
