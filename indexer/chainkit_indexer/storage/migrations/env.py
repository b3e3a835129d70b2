"""Runs migrations inside the transaction that ``migrate`` opened: all of them, or none."""

from __future__ import annotations

from alembic import context

from chainkit_indexer.storage import schema

context.configure(
    connection=context.config.attributes["connection"], target_metadata=schema.metadata
)
context.run_migrations()
