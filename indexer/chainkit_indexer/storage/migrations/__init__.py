"""The history of the tables, for Alembic; ``migrate`` runs it."""
