"""The contracts: where they stand, what they say, and whether they are what this package holds."""
