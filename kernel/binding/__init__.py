"""What a run reads of other runs, and what a story's prose is made of."""

from kernel.binding.inputs import Bound, bind
from kernel.binding.pointer import MISSING, select
from kernel.binding.projection import project
from kernel.binding.segments import split, story_text

__all__ = ["MISSING", "Bound", "bind", "project", "select", "split", "story_text"]
