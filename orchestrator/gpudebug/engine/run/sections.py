"""The sections that a run's training timed of itself, from the reports in its folder."""

from __future__ import annotations

import re
from pathlib import Path

from gpudebug.core.errors import GpudebugError
from gpudebug.core.inside import sections
from gpudebug.core.records import SectionsEvidence
from gpudebug.edges import launcher, store

LARGEST = 16 << 20
"""Bytes of a report that are read: thousands of sections take one of them."""

_OF_RANK = re.compile(r"sections\.rank([0-9]{1,6})\.json")


def sections_of(folder: Path) -> SectionsEvidence | None:
    """Of the main process, else of the lowest rank; None if none reported any.

    A report that cannot be read is a note: it fails no run.
    """
    reports = _reports(folder)
    if not reports:
        return None
    first = reports[0]
    notes = (
        [f"{len(reports) - 1} more ranks reported: gpudebug analyze sections*.json"]
        if len(reports) > 1
        else []
    )
    try:
        report = _read(first)
    except GpudebugError as e:
        return sections.unreadable(f"{first.name} {e.message}")
    return sections.sections_evidence(report, notes)


def outline_of(folder: Path) -> list[dict[str, object]]:
    """Return `core.inside.sections.analysis.outline` of the reports; empty if nothing is readable."""
    reports = _reports(folder)
    try:
        found = [_read(path) for path in reports[:1]]
    except GpudebugError:
        return []  # The evidence says why.
    return sections.outline(found[0].tree) if found else []


def _read(path: Path) -> sections.Report:
    data = store.read_head(path, LARGEST + 1)
    if len(data) > LARGEST:
        raise GpudebugError(f"is larger than {LARGEST >> 20} MB", file=str(path))
    return sections.read_report(data, path.name)


def _reports(folder: Path) -> list[Path]:
    """Return the main process's, then those of the ranks in their order."""
    # A program that tidies the system's temporary folder may have taken it away.
    entries = list(folder.iterdir()) if folder.is_dir() else []
    ranks = sorted((int(m[1]), p) for p in entries if (m := _OF_RANK.fullmatch(p.name)))
    return [path for path in (folder / launcher.SECTIONS, *(path for _, path in ranks)) if path.is_file()]
