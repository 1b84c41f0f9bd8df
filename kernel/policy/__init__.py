"""Decisions on what may be done, and how far it is kept apart."""

from kernel.policy.admission import admits, not_admitted
from kernel.policy.isolation import LAYERS, LEVELS, Layer, Level, level_of, suffices

__all__ = ["LAYERS", "LEVELS", "Layer", "Level", "admits", "level_of", "not_admitted", "suffices"]
