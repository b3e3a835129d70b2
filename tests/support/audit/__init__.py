"""Exports, bundles and rows, honest and wrong; oracles that compute an audit's answer another way."""
