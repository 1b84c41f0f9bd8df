"""Which packages are active, and what their runtimes ask of a turn."""

from kernel.catalog.activation import Activation, activate
from kernel.catalog.builtin_tools import BUILTIN_DATA_TOOLS, builtin_spec
from kernel.catalog.plans import plan_input, tool_names
from kernel.catalog.problems import Problem
from kernel.catalog.providers import in_force

__all__ = [
    "BUILTIN_DATA_TOOLS",
    "Activation",
    "Problem",
    "activate",
    "builtin_spec",
    "in_force",
    "plan_input",
    "tool_names",
]
