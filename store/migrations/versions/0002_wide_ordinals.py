"""Ordinals of the ledger have 53 bits: a function's are made from what its call asks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":  # SQLite's integers are wide enough
        op.alter_column("calls", "ordinal", type_=sa.BigInteger(), existing_nullable=False)
