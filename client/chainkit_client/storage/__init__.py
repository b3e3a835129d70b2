"""The client's database: tables, transactions, and the seal over secret columns."""
