"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

# By code point on both databases.
KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
# SQLite has no other.
WIDE = sa.Integer().with_variant(sa.BigInteger(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "sessions",
        sa.Column("session_id", KEY, primary_key=True, nullable=False),
        sa.Column("incarnation", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("completed_player_turns", sa.Integer(), nullable=False),
        sa.Column("packages", sa.Text(), nullable=True),
        sa.Column("active", sa.Text(), nullable=True),
        sa.Column("bindings", sa.Text(), nullable=True),
        sa.Column("locale", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
    )
    op.create_table(
        "actions",
        sa.Column("turn_id", KEY, primary_key=True, nullable=False),
        sa.Column("session_id", KEY, nullable=False),
        sa.Column("action_id", KEY, nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=True),
        sa.Column("runtime_id", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.UniqueConstraint("session_id", "action_id", name="actions_once"),
    )
    op.create_table(
        "turns",
        sa.Column("turn_id", KEY, primary_key=True, nullable=False),
        sa.Column("session_id", KEY, nullable=False),
        sa.Column("action_id", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("logical_turn", sa.Integer(), nullable=False),
        sa.Column("generation", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("receipt", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("ended_at", sa.Double(), nullable=True),
    )
    op.create_index("turns_of_session", "turns", ["session_id", "created_at"])
    op.create_table(
        "runs",
        sa.Column("owner_id", KEY, primary_key=True, nullable=False),
        sa.Column("runtime_id", KEY, primary_key=True, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("output", sa.Text(), nullable=True),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("updated_at", sa.Double(), nullable=False),
    )
    op.create_table(
        "transcripts",
        sa.Column("owner_id", KEY, primary_key=True, nullable=False),
        sa.Column("runtime_id", KEY, primary_key=True, nullable=False),
        sa.Column("ordinal", sa.Integer(), primary_key=True, nullable=False, autoincrement=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=True),
    )
    op.create_table(
        "staged",
        sa.Column("owner_id", KEY, primary_key=True, nullable=False),
        sa.Column("runtime_id", KEY, primary_key=True, nullable=False),
        sa.Column("step", sa.Integer(), primary_key=True, nullable=False, autoincrement=False),
        sa.Column("idx", sa.Integer(), primary_key=True, nullable=False, autoincrement=False),
        sa.Column("ordinal", sa.Integer(), primary_key=True, nullable=False, autoincrement=False),
        sa.Column("proposal", sa.Text(), nullable=True),
    )
    op.create_table(
        "tool_results",
        sa.Column("owner_id", KEY, primary_key=True, nullable=False),
        sa.Column("runtime_id", KEY, primary_key=True, nullable=False),
        sa.Column("step", sa.Integer(), primary_key=True, nullable=False, autoincrement=False),
        sa.Column("idx", sa.Integer(), primary_key=True, nullable=False, autoincrement=False),
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("ok", sa.Boolean(), nullable=False),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
    )
    op.create_table(
        "calls",
        sa.Column("owner_id", KEY, primary_key=True, nullable=False),
        sa.Column("runtime_id", KEY, primary_key=True, nullable=False),
        sa.Column("ordinal", WIDE, primary_key=True, nullable=False, autoincrement=False),
        sa.Column("attempt", sa.Integer(), primary_key=True, nullable=False, autoincrement=False),
        sa.Column("session_id", KEY, nullable=False),
        sa.Column("turn_id", KEY, nullable=False),
        sa.Column("slot", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("input_tokens", sa.Integer(), nullable=False),
        sa.Column("output_tokens", sa.Integer(), nullable=False),
        sa.Column("cost_usd", sa.Double(), nullable=False),
        sa.Column("priced", sa.Boolean(), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("ended_at", sa.Double(), nullable=True),
    )
    op.create_index("calls_of_session", "calls", ["session_id"])
    op.create_index("calls_of_turn", "calls", ["turn_id"])
    op.create_table(
        "journal",
        sa.Column("owner_id", KEY, primary_key=True, nullable=False),
        sa.Column("runtime_id", KEY, primary_key=True, nullable=False),
        sa.Column("content_key", KEY, primary_key=True, nullable=False),
        sa.Column("repeat", sa.Integer(), primary_key=True, nullable=False, autoincrement=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
    )
    op.create_table(
        "messages",
        sa.Column("session_id", KEY, primary_key=True, nullable=False),
        sa.Column("position", sa.Integer(), primary_key=True, nullable=False, autoincrement=False),
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("runtime_id", sa.Text(), nullable=True),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("segments", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
    )
    op.create_table(
        "data",
        sa.Column("session_id", KEY, primary_key=True, nullable=False),
        sa.Column("package_id", KEY, primary_key=True, nullable=False),
        sa.Column("namespace", KEY, primary_key=True, nullable=False),
        sa.Column("key", KEY, primary_key=True, nullable=False),
        sa.Column("value", sa.Text(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
    )
    op.create_table(
        "state",
        sa.Column("session_id", KEY, primary_key=True, nullable=False),
        sa.Column("path", KEY, primary_key=True, nullable=False),
        sa.Column("value", sa.Text(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
    )
    op.create_table(
        "exports",
        sa.Column("session_id", KEY, primary_key=True, nullable=False),
        sa.Column("runtime_id", KEY, primary_key=True, nullable=False),
        sa.Column("name", KEY, primary_key=True, nullable=False),
        sa.Column("number", sa.Integer(), primary_key=True, nullable=False, autoincrement=False),
        sa.Column("value", sa.Text(), nullable=True),
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("session_id", KEY, primary_key=True, nullable=False),
        sa.Column("position", sa.Integer(), primary_key=True, nullable=False, autoincrement=False),
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("runtime_id", sa.Text(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
    )
    op.create_table(
        "jobs",
        sa.Column("job_id", KEY, primary_key=True, nullable=False),
        sa.Column("session_id", KEY, nullable=False),
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("runtime_id", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("settle", sa.Boolean(), nullable=False),
        sa.Column("options", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("usage", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("ended_at", sa.Double(), nullable=True),
    )
    op.create_index("jobs_of_session", "jobs", ["session_id", "created_at"])
    op.create_table(
        "approvals",
        sa.Column("ref", KEY, primary_key=True, nullable=False),
        sa.Column("session_id", KEY, nullable=False),
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("runtime_id", sa.Text(), nullable=False),
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("arguments", sa.Text(), nullable=True),
        sa.Column("status", KEY, nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("opened_at", sa.Double(), nullable=False),
        sa.Column("deadline", sa.Double(), nullable=False),
        sa.Column("closed_at", sa.Double(), nullable=True),
    )
    op.create_index("approvals_inbox", "approvals", ["status", "session_id", "opened_at"])
    op.create_table(
        "interjections",
        sa.Column("session_id", KEY, primary_key=True, nullable=False),
        sa.Column("interjection_id", KEY, primary_key=True, nullable=False),
        sa.Column("turn_id", sa.Text(), nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
    )
    op.create_table(
        "stream",
        sa.Column("owner_id", KEY, primary_key=True, nullable=False),
        sa.Column("runtime_id", KEY, primary_key=True, nullable=False),
        sa.Column("attempt", sa.Integer(), primary_key=True, nullable=False, autoincrement=False),
        sa.Column("sequence", sa.Integer(), primary_key=True, nullable=False, autoincrement=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
    )
    op.create_table(
        "packages",
        sa.Column("digest", KEY, primary_key=True, nullable=False),
        sa.Column("package_id", KEY, nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("archive", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
    )
    op.create_index("packages_by_id", "packages", ["package_id", "created_at"])
