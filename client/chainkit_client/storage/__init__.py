"""The client's database: tables, transactions, and the seal over what is secret in them."""
