"""The contracts: addresses, answers, and whether they are this package's."""
