"""Exports, bundles and rows, honest and wrong; oracles compute an audit's answer another way."""
