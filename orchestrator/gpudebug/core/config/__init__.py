"""gpudebug.yaml: the settings of one campaign."""

from gpudebug.core.config.defaults import config_text, print_defaults
from gpudebug.core.config.parser import cluster_defaults, load
from gpudebug.core.config.schema import (
    Budget,
    Config,
    CriteriaSettings,
    Protocol,
    RunnerSettings,
    ServerSettings,
    SlurmSettings,
    Workload,
    WorktreeSettings,
    expand,
    expand_text,
)
from gpudebug.core.config.values import DeviceChoice, Ratio
