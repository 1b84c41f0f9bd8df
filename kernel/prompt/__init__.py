"""What a model reads: assembly of the first request, and the corrections between steps."""

from kernel.prompt.assemble import PromptParts, assemble
from kernel.prompt.nudges import nudge_text
from kernel.prompt.templates import interpolate, unknown_places

__all__ = ["PromptParts", "assemble", "interpolate", "nudge_text", "unknown_places"]
