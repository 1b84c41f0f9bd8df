"""Fixtures that more than one room's tests use."""
