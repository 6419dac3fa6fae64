"""A zoo program's progress file taken apart and put together again: baselines, and entries by number."""

from __future__ import annotations

import re
from collections.abc import Mapping

_HEADING = re.compile(r"^### Hypothesis (\d+):", re.MULTILINE)
_BASELINES = re.compile(r"^## Baselines$.*?(?=^## Hypotheses$)", re.MULTILINE | re.DOTALL)


def entries(text: str) -> dict[int, str]:
    """Each hypothesis's block, from its heading to the next."""
    found = list(_HEADING.finditer(text))
    ends = [*(m.start() for m in found[1:]), len(text)]
    return {int(m[1]): text[m.start() : end].rstrip() for m, end in zip(found, ends, strict=True)}


def baselines(text: str) -> str:
    found = _BASELINES.search(text)
    if found is None:
        raise ValueError("the progress file has no section of baselines before that of hypotheses")
    return found[0].rstrip()


def composed(campaign: str, section: str, blocks: Mapping[int, str]) -> str:
    """A progress file with these baselines and entries."""
    parts = [f"# GPU utilization debugging: {campaign}", section, "## Hypotheses"]
    return "\n\n".join([*parts, *(blocks[number] for number in sorted(blocks))]) + "\n"
