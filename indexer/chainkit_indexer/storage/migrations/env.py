"""Runs migrations inside the transaction that ``migrate`` opened: all of them, or none."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
