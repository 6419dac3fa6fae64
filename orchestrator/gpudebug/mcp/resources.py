"""What a client gets beside tools: resources to read, and prompts that a user asks for with one word.

Resources are the progress file, the report, and a run's evidence.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mcp_types import GetPromptResult, Prompt, PromptMessage, Resource, ResourceTemplate, TextContent

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


_FIND_OUT_WHY = """\
Find out why this training leaves its device idle. Change nothing.

1. Call `diagnose`. If it asks for a baseline, call `next`, then `wait` while `action` is `running`, until \
one is recorded; then call `diagnose` again.
2. Read the line of code that the first cause names.
3. Answer in one paragraph: the cause, its share of the time, what its fix can gain at most, the line \
of code, and what was not measured. Use only figures of these answers; what they do not know is unknown.

Do not run the training yourself and propose nothing: I decide what is tested."""
_NEXT_HYPOTHESIS = """\
Test one hypothesis of this campaign, up to its verdict.

1. Call `next` and do what its answer says. While `action` is `running`, call `wait`. On `propose` or \
`implement` work from the page in `brief`.
2. Stop when `action` is `stop`, whatever the verdict.
3. Then tell me in one paragraph: the cause, the verdict, the gain with its interval as the answer has it, \
the change, and what is left for me to decide.

Only gpudebug runs the training, measures and judges: write no figure and no verdict of your own."""
_PROMPTS = {
    "find-out-why": ("Find out why", "Why the device is idle; changes nothing.", _FIND_OUT_WHY),
    "next-hypothesis": ("Next hypothesis", "One hypothesis up to its verdict.", _NEXT_HYPOTHESIS),
}


def prompts() -> list[Prompt]:
    """Return the prompts, without their texts."""
    return [Prompt(name=name, title=title, description=about) for name, (title, about, _) in _PROMPTS.items()]


def prompt(name: str) -> GetPromptResult | None:
    """One prompt as the user's message; None if no prompt has this name."""
    if name not in _PROMPTS:
        return None
    _, about, text = _PROMPTS[name]
    message = PromptMessage(role="user", content=TextContent(type="text", text=text))
    return GetPromptResult(description=about, messages=[message])
