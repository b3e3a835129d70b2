"""Follows the chain: one step at a time, from an endpoint's answer to signed envelopes."""
