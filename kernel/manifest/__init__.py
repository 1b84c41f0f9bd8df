"""Package manifests: bytes in, a judged package or every problem out.

load_package     read `PLUGIN.md`, the runtimes, and every file they name
unsupported      what the package asks for and this version does not do
parse_yaml       the YAML profile, for other files
WELL_KNOWN       the contracts whose shape the host ships
"""

from kernel.manifest.agent import (
    BUILTIN_TOOLS,
    Agent,
    AgentTools,
    Completion,
    Corrections,
    DatasetImport,
    Finalizer,
    ForcedTool,
    History,
    Loop,
    LoopLimits,
    ServiceImport,
    ToolWhitelist,
)
from kernel.manifest.contributes import ContributedTool, Contributes, Dataset, EventDeclaration
from kernel.manifest.data import DataNamespace
from kernel.manifest.diagnostics import Diagnostic, FieldPath, Lines
from kernel.manifest.features import SUPPORTED_BUILTIN_TOOLS, unanswerable, unsupported
from kernel.manifest.fields import ContractReference, ManifestModel, RuntimeReference, is_contract_id
from kernel.manifest.frontmatter import Frontmatter, split_frontmatter
from kernel.manifest.load import load_package
from kernel.manifest.loaded import Loaded, Origin, Package, Runtime
from kernel.manifest.package import PluginManifest
from kernel.manifest.runtime import (
    Effects,
    Function,
    HttpPermission,
    InputBinding,
    Io,
    KernelReference,
    Output,
    Permissions,
    RuntimeManifest,
    SelfData,
)
from kernel.manifest.schedule import (
    STAGES,
    ContractNeed,
    DetachedLimits,
    DetachedOptions,
    RuntimeNeed,
    Schedule,
    Stage,
    Trigger,
)
from kernel.manifest.schemas import Schema, check_schema, read_schema
from kernel.manifest.settings import Setting
from kernel.manifest.versions import DIALECT_VERSION, PRODUCT_VERSION, in_range
from kernel.manifest.well_known import TURN_POLICY_INPUT, WELL_KNOWN
from kernel.manifest.yaml_core import YamlDocument, parse_yaml

__all__ = [
    "BUILTIN_TOOLS",
    "DIALECT_VERSION",
    "PRODUCT_VERSION",
    "STAGES",
    "SUPPORTED_BUILTIN_TOOLS",
    "TURN_POLICY_INPUT",
    "WELL_KNOWN",
    "Agent",
    "AgentTools",
    "Completion",
    "ContractNeed",
    "ContractReference",
    "ContributedTool",
    "Contributes",
    "Corrections",
    "DataNamespace",
    "Dataset",
    "DatasetImport",
    "DetachedLimits",
    "DetachedOptions",
    "Diagnostic",
    "Effects",
    "EventDeclaration",
    "FieldPath",
    "Finalizer",
    "ForcedTool",
    "Frontmatter",
    "Function",
    "History",
    "HttpPermission",
    "InputBinding",
    "Io",
    "KernelReference",
    "Lines",
    "Loaded",
    "Loop",
    "LoopLimits",
    "ManifestModel",
    "Origin",
    "Output",
    "Package",
    "Permissions",
    "PluginManifest",
    "Runtime",
    "RuntimeManifest",
    "RuntimeNeed",
    "RuntimeReference",
    "Schedule",
    "Schema",
    "SelfData",
    "ServiceImport",
    "Setting",
    "Stage",
    "ToolWhitelist",
    "Trigger",
    "YamlDocument",
    "check_schema",
    "in_range",
    "is_contract_id",
    "load_package",
    "parse_yaml",
    "read_schema",
    "split_frontmatter",
    "unanswerable",
    "unsupported",
]
