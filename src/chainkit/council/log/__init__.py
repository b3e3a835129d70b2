"""The audit trail: what the council did, and what was done without it."""
