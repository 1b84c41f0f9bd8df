"""From active runtimes to a planned turn, and from a planned turn to its end."""

from kernel.schedule.cascade import Cascade, Drop, cascade
from kernel.schedule.gate import Run, Skip, Wait, gate
from kernel.schedule.graph import build
from kernel.schedule.hooks import subscribers
from kernel.schedule.nodes import Graph, Link, Node, StageBatch
from kernel.schedule.progress import Progress
from kernel.schedule.reasons import Diagnostic, Finding, SkipReason

__all__ = [
    "Cascade",
    "Diagnostic",
    "Drop",
    "Finding",
    "Graph",
    "Link",
    "Node",
    "Progress",
    "Run",
    "Skip",
    "SkipReason",
    "StageBatch",
    "Wait",
    "build",
    "cascade",
    "gate",
    "subscribers",
]
