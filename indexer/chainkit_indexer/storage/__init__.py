"""What is kept, and how: tables, transactions, the two databases, and their upgrades."""
