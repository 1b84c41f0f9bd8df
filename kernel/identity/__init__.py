"""Canonical JSON and the keys made from it."""

from kernel.identity.keys import arguments_digest, journal_key, journal_ordinal

__all__ = ["arguments_digest", "journal_key", "journal_ordinal"]
