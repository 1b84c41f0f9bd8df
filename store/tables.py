"""Every table. Times are Unix seconds; `owner_id` is the turn or the job that a run belongs to.

There are no foreign keys: a commit holds its session's row FOR UPDATE, and the key checks of ledger and
stream writes would wait for it.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

from store.columns import Json, Key, Prose, Wide

metadata = MetaData()


def _key(name: str, *, pk: bool = True) -> Column[Any]:
    return Column(name, Key, primary_key=pk, nullable=False)


def _number(name: str, *, pk: bool = False) -> Column[Any]:
    return Column(name, Integer, primary_key=pk, nullable=False, autoincrement=False)


def _text(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, Text, nullable=nullable)


def _prose(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, Prose, nullable=nullable)


def _json(name: str) -> Column[Any]:
    return Column(name, Json)


def _time(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, Double, nullable=nullable)


sessions = Table(
    "sessions",
    metadata,
    _key("session_id"),
    _text("incarnation"),
    _text("status"),
    _text("phase"),
    _number("completed_player_turns"),
    _json("packages"),
    _json("active"),
    _json("bindings"),
    _text("locale"),
    _number("revision"),
    _json("excluded"),
    _json("choices"),
    _json("settings"),
    _json("inactive"),
    _time("created_at"),
    _time("updated_at"),
)

actions = Table(
    "actions",
    metadata,
    _key("turn_id"),
    _key("session_id", pk=False),
    _key("action_id", pk=False),
    _text("origin"),
    _prose("text"),
    _json("payload"),
    _text("runtime_id", nullable=True),
    _time("created_at"),
    UniqueConstraint("session_id", "action_id", name="actions_once"),
)

turns = Table(
    "turns",
    metadata,
    _key("turn_id"),
    _key("session_id", pk=False),
    _text("action_id"),
    _text("origin"),
    _number("logical_turn"),
    _json("generation"),
    _text("status"),
    _json("receipt"),
    _time("created_at"),
    _time("ended_at", nullable=True),
    Index("turns_of_session", "session_id", "created_at"),
)

runs = Table(
    "runs",
    metadata,
    _key("owner_id"),
    _key("runtime_id"),
    _text("status"),
    _text("reason"),
    _prose("message"),
    _json("output"),
    _prose("text", nullable=True),
    _time("updated_at"),
)

transcripts = Table(
    "transcripts",
    metadata,
    _key("owner_id"),
    _key("runtime_id"),
    _number("ordinal", pk=True),
    _number("step"),
    _text("role"),
    _json("message"),
)

staged = Table(
    "staged",
    metadata,
    _key("owner_id"),
    _key("runtime_id"),
    _number("step", pk=True),
    _number("idx", pk=True),
    _number("ordinal", pk=True),
    _json("proposal"),
)

tool_results = Table(
    "tool_results",
    metadata,
    _key("owner_id"),
    _key("runtime_id"),
    _number("step", pk=True),
    _number("idx", pk=True),
    _text("call_id"),
    Column("ok", Boolean, nullable=False),
    _text("code", nullable=True),
    _prose("message"),
    _json("result"),
    _time("created_at"),
)

calls = Table(
    "calls",
    metadata,
    _key("owner_id"),
    _key("runtime_id"),
    Column("ordinal", Wide, primary_key=True, nullable=False, autoincrement=False),
    _number("attempt", pk=True),
    _key("session_id", pk=False),
    _key("turn_id", pk=False),
    _text("slot"),
    _text("model"),
    _text("status"),
    _text("code", nullable=True),
    _number("input_tokens"),
    _number("output_tokens"),
    Column("cost_usd", Double, nullable=False),
    Column("priced", Boolean, nullable=False),
    _text("idempotency_key"),
    _time("started_at"),
    _time("ended_at", nullable=True),
    Index("calls_of_session", "session_id"),
    Index("calls_of_turn", "turn_id"),
)

journal = Table(
    "journal",
    metadata,
    _key("owner_id"),
    _key("runtime_id"),
    _key("content_key"),
    _number("repeat", pk=True),
    _text("kind"),
    _text("status"),
    _json("result"),
    _number("attempts"),
)

messages = Table(
    "messages",
    metadata,
    _key("session_id"),
    _number("position", pk=True),
    _text("turn_id"),
    _text("runtime_id", nullable=True),
    _text("role"),
    _prose("text"),
    _json("segments"),
    _time("created_at"),
)

data = Table(
    "data",
    metadata,
    _key("session_id"),
    _key("package_id"),
    _key("namespace"),
    _key("key"),
    _json("value"),
    _number("version"),
    _text("turn_id"),
    _time("created_at"),
    _time("updated_at"),
)

state = Table(
    "state",
    metadata,
    _key("session_id"),
    _key("path"),
    _json("value"),
    _number("version"),
    _text("turn_id"),
    _time("updated_at"),
)

exports = Table(
    "exports",
    metadata,
    _key("session_id"),
    _key("runtime_id"),
    _key("name"),
    _number("number", pk=True),
    _json("value"),
    _text("turn_id"),
    _time("created_at"),
)

events = Table(
    "events",
    metadata,
    _key("session_id"),
    _number("position", pk=True),
    _text("turn_id"),
    _text("runtime_id"),
    _text("topic"),
    _json("payload"),
    _time("created_at"),
)

jobs = Table(
    "jobs",
    metadata,
    _key("job_id"),
    _key("session_id", pk=False),
    _text("turn_id"),
    _text("runtime_id"),
    _text("status"),
    Column("settle", Boolean, nullable=False),
    _json("options"),
    _text("reason"),
    _prose("message"),
    _json("usage"),
    _time("created_at"),
    _time("ended_at", nullable=True),
    Index("jobs_of_session", "session_id", "created_at"),
)

approvals = Table(
    "approvals",
    metadata,
    _key("ref"),
    _key("session_id", pk=False),
    _text("turn_id"),
    _text("runtime_id"),
    _text("call_id"),
    _text("tool"),
    _text("workflow_id"),
    _json("arguments"),
    _key("status", pk=False),
    _prose("note"),
    _prose("actor"),
    _time("opened_at"),
    _time("deadline"),
    _time("closed_at", nullable=True),
    Index("approvals_inbox", "status", "session_id", "opened_at"),
)

interjections = Table(
    "interjections",
    metadata,
    _key("session_id"),
    _key("interjection_id"),
    _text("turn_id", nullable=True),
    _prose("text"),
    _time("created_at"),
)

stream = Table(
    "stream",
    metadata,
    _key("owner_id"),
    _key("runtime_id"),
    _number("attempt", pk=True),
    _number("sequence", pk=True),
    _text("kind"),
    _prose("text"),
    _time("created_at"),
)

packages = Table(
    "packages",
    metadata,
    _key("digest"),
    _key("package_id", pk=False),
    _text("version"),
    _number("size"),
    Column("archive", LargeBinary, nullable=False),
    _time("created_at"),
    Index("packages_by_id", "package_id", "created_at"),
)

grants = Table(
    "grants",
    metadata,
    _key("subject"),
    _key("session_id"),
    _key("package_id", pk=False),
    _text("granted_by"),
    _time("granted_at"),
    _time("revoked_at", nullable=True),
    Index("grants_of_package", "package_id"),
)

switches = Table(
    "switches",
    metadata,
    _key("package_id"),
    Column("enabled", Boolean, nullable=False),
    _time("changed_at"),
)
