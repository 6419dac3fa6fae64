"""gpudebug.yaml: the settings of one campaign."""

from .defaults import config_text, print_defaults
from .parser import load
from .schema import (
    Budget,
    Config,
    CriteriaSettings,
    Protocol,
    ServerSettings,
    Workload,
    WorktreeSettings,
    expand,
    expand_text,
)
from .values import DeviceChoice, Ratio

__all__ = [
    "Budget",
    "Config",
    "CriteriaSettings",
    "DeviceChoice",
    "Protocol",
    "Ratio",
    "ServerSettings",
    "Workload",
    "WorktreeSettings",
    "config_text",
    "expand",
    "expand_text",
    "load",
    "print_defaults",
]
