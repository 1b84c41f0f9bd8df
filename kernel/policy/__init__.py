"""Decisions on what may be done, and how far it is kept apart."""

from kernel.policy.isolation import LAYERS, LEVELS, Layer, Level, level_of, suffices

__all__ = ["LAYERS", "LEVELS", "Layer", "Level", "level_of", "suffices"]
