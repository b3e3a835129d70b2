"""The contracts: their addresses, their answers, and whether they run this package's code."""
