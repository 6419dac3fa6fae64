"""What part of the program a section belongs to, by the prefix of its name."""

from __future__ import annotations

import math

from gpudebug.core.answers.sections import CategoryShare, Section
from gpudebug.core.inside.sections.report import Report

DEFAULTS = {
    "env_": "Environment",
    "env_rgb_": "Rendering",
    "convlstm_": "Model",
    "recurrent_policy_": "Policy",
    "training_": "Training",
    "simulated_": "Training",
}
NONE = "(no category)"


def category_of(section: Section, report: Report) -> str | None:
    """Its own, else that of the longest prefix of its name; `DEFAULTS` where the report names none."""
    if section.category:
        return section.category
    prefixes = report.categories or DEFAULTS
    known = [p for p in prefixes if section.name.startswith(p)]
    return prefixes[max(known, key=len)] if known else None


def category_shares(report: Report) -> list[CategoryShare]:
    """Of own time, the largest first; none if no section has a category."""
    times: dict[str, list[float]] = {}
    for section in report.sections:
        times.setdefault(category_of(section, report) or NONE, []).append(section.self_s)
    if set(times) <= {NONE}:
        return []
    sums = {name: math.fsum(values) for name, values in times.items()}
    total = math.fsum(sums.values())
    return [
        CategoryShare(name, seconds, seconds / total if total > 0 else 0.0)
        for name, seconds in sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    ]
