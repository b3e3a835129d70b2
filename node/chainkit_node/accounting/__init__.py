"""Payer reports: made of a node's own envelopes, compared with others' reports, and attested."""
