"""The option of a command by which gpudebug may lengthen its runs."""

from __future__ import annotations

from pathlib import Path

from gpudebug.core.catalogue import frameworks
from gpudebug.core.change import intervention as interventions
from gpudebug.core.command.command_line import Option
from gpudebug.core.command.synonyms import folded
from gpudebug.core.config import Config
from gpudebug.engine.run import adapters


def length_option(config: Config) -> Option | None:
    """The option of the workload's command that says how long it trains; None without a whole number."""
    if config.workload.shell:
        return None
    return frameworks.length_option(config.workload.argv(), adapters.known())


def may_be_lengthened(
    root: Path, config: Config, change: interventions.Intervention | None = None
) -> Option | str | None:
    """The option that gpudebug may raise for trial and baseline of the campaign at `root`; why not, as text;
    None without one. A lock holds for it under its other names, too, as for a change of `propose`."""
    option = length_option(config)
    if option is None or option.value is None:
        return None
    raised = interventions.from_options(set=[f"{option.name}={option.value}"])
    synonyms = adapters.locks_of(root, config.workload, config.locked, raised.names)
    locked = raised.locked_by(config.locked, synonyms=synonyms)
    if locked:
        same = folded(option.name) in map(folded, locked)
        as_ = "" if same else f" as {locked[0]}"
        return f"{option.name} is locked{as_}, so gpudebug does not lengthen the runs"
    if change is not None and change.touches(option.name):
        return f"the hypothesis changes {option.name}, so gpudebug does not lengthen the runs"
    return option
