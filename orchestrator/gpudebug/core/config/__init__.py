"""gpudebug.yaml: the settings of one campaign."""

from .defaults import config_text, print_defaults
from .parser import load
from .schema import Budget, Config, Criteria, Protocol, Workload, Worktree, expand, expand_text
from .values import DeviceChoice, Ratio

__all__ = [
    "Budget",
    "Config",
    "Criteria",
    "DeviceChoice",
    "Protocol",
    "Ratio",
    "Workload",
    "Worktree",
    "config_text",
    "expand",
    "expand_text",
    "load",
    "print_defaults",
]
