"""Section timings: reports read and merged, scored, compared, and as a run's evidence keeps them."""

from __future__ import annotations

from gpudebug.core.answers.sections import Section, SectionNode
from gpudebug.core.inside.sections.analysis import analysis
from gpudebug.core.inside.sections.evidence import beside, outline, sections_evidence, unreadable
from gpudebug.core.inside.sections.many_reports import merge
from gpudebug.core.inside.sections.parser import read_report
from gpudebug.core.inside.sections.report import Report

__all__ = [
    "Report",
    "Section",
    "SectionNode",
    "analysis",
    "beside",
    "merge",
    "outline",
    "read_report",
    "sections_evidence",
    "unreadable",
]
