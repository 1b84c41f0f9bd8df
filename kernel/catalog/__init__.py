"""Which packages are active, and what their runtimes ask of a turn."""

from kernel.catalog.activation import activate
from kernel.catalog.builtin_tools import BUILTIN_DATA_TOOLS, builtin_spec
from kernel.catalog.plans import plan_input, tool_names

__all__ = ["BUILTIN_DATA_TOOLS", "activate", "builtin_spec", "plan_input", "tool_names"]
