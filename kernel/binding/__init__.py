"""What a run reads of other runs, and what a story's prose is made of."""

from kernel.binding.inputs import Bound, bind
from kernel.binding.projection import project
from kernel.binding.segments import split, story_text

__all__ = ["Bound", "bind", "project", "split", "story_text"]
