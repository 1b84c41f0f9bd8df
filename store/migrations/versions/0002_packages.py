"""Who may run, what a session chose, what players set."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

# By code point on both databases.
KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("sessions", sa.Column("excluded", sa.Text(), nullable=True, server_default="[]"))
    op.add_column("sessions", sa.Column("choices", sa.Text(), nullable=True, server_default="{}"))
    op.add_column("sessions", sa.Column("settings", sa.Text(), nullable=True, server_default="{}"))
    op.add_column("sessions", sa.Column("inactive", sa.Text(), nullable=True, server_default="[]"))
    op.create_table(
        "grants",
        sa.Column("subject", KEY, primary_key=True, nullable=False),
        sa.Column("session_id", KEY, primary_key=True, nullable=False),
        sa.Column("package_id", KEY, nullable=False),
        sa.Column("granted_by", sa.Text(), nullable=False),
        sa.Column("granted_at", sa.Double(), nullable=False),
        sa.Column("revoked_at", sa.Double(), nullable=True),
    )
    op.create_index("grants_of_package", "grants", ["package_id"])
    op.create_table(
        "switches",
        sa.Column("package_id", KEY, primary_key=True, nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("changed_at", sa.Double(), nullable=False),
    )
