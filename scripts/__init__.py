"""Ape scripts: deploy the contracts, publish traffic, drill a reorg."""
