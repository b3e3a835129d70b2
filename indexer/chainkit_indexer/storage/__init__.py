"""Storage: tables, transactions, the two databases, and their upgrades."""
