"""The audit trail: the council's acts, and acts without the council."""
