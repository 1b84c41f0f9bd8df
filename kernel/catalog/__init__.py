"""Which packages are active, and what their runtimes ask of a turn."""

from kernel.catalog.activation import activate
from kernel.catalog.plans import BUILTIN_DATA_TOOLS, plan_input, tool_names

__all__ = ["BUILTIN_DATA_TOOLS", "activate", "plan_input", "tool_names"]
