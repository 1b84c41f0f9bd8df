"""Runs migrations in the transaction that `store.migrate` opened and locked."""

from __future__ import annotations

from alembic import context

from store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=True
)
with context.begin_transaction():
    context.run_migrations()
