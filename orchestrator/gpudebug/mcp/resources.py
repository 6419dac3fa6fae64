"""What a client may read beside the answers of tools: the progress file, the report, a run's evidence."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mcp_types import Resource, ResourceTemplate

from gpudebug.core.answers.answer import Answer
from gpudebug.core.errors import GpudebugError, UsageError

PROGRESS = "gpudebug://progress"
REPORT = "gpudebug://report"
EVIDENCE = "gpudebug://runs/{run}/evidence"
LISTED = 20
"""The newest runs are listed; every other one is read by its name."""
_RUN = re.compile(r"gpudebug://runs/(?P<run>[0-9]{4,}-[A-Za-z0-9._-]{1,190})/evidence")
_MARKDOWN = "text/markdown"
_JSON = "application/json"


@dataclass(frozen=True, kw_only=True)
class ResourceAnswer(Answer):
    """The text of one resource."""

    uri: str
    mime_type: str
    text: str


def listed(folder: Path) -> list[Resource]:
    """Progress file and report, then the evidence of the newest runs; nothing without a campaign."""
    from gpudebug.engine.campaign.files import find

    try:
        runs = find(folder).runs
    except GpudebugError:
        return []
    newest = sorted((path.parent.name for path in runs.glob("*/evidence.json")), reverse=True)
    return [
        Resource(
            name="progress",
            uri=PROGRESS,
            mime_type=_MARKDOWN,
            description="The progress file: baselines, hypotheses and their results.",
        ),
        Resource(
            name="report",
            uri=REPORT,
            mime_type=_MARKDOWN,
            description="The campaign in short, as the description of a pull request.",
        ),
        *(
            Resource(
                name=f"evidence of {run}",
                uri=EVIDENCE.format(run=run),
                mime_type=_JSON,
                description="All figures of this run, unrounded.",
            )
            for run in newest[:LISTED]
        ),
    ]


TEMPLATES = (
    ResourceTemplate(
        name="evidence",
        uri_template=EVIDENCE,
        mime_type=_JSON,
        description="All figures of a run of runs/ by its name, unrounded.",
    ),
)


def reader_of(uri: str, folder: Path) -> Callable[[], ResourceAnswer]:
    """Return what reads a resource; UsageError if there is none of this name."""
    match = _RUN.fullmatch(uri)
    if match:
        return lambda: ResourceAnswer(uri=uri, mime_type=_JSON, text=_evidence(folder, match["run"]))
    read = {PROGRESS: _progress, REPORT: _report}.get(uri)
    if read is None:
        raise UsageError(
            f"no resource {uri[:80]!r}", next=f"resources are {PROGRESS}, {REPORT} and {EVIDENCE}"
        )
    return lambda: ResourceAnswer(uri=uri, mime_type=_MARKDOWN, text=read(folder))


def _progress(folder: Path) -> str:
    from gpudebug.engine.status.texts import progress_text

    return progress_text(folder)


def _evidence(folder: Path, run: str) -> str:
    from gpudebug.engine.status.texts import evidence_text

    return evidence_text(folder, run)


def _report(folder: Path) -> str:
    from gpudebug.engine.report import report

    return report(folder, markdown=True).markdown or ""
