"""gpudebug.yaml: the settings of one campaign."""

from gpudebug.core.config.defaults import config_text, print_defaults
from gpudebug.core.config.parser import cluster_defaults, load
from gpudebug.core.config.schema import (
    Config,
    RunnerSettings,
    ServerSettings,
    SlurmSettings,
    Workload,
    expand,
    expand_text,
)
