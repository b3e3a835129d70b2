"""The history of the tables, for Alembic, which ``migrate`` runs."""
