"""Section timings: reports read and merged, scored, compared, and as a run's evidence keeps them."""

from __future__ import annotations

from gpudebug.core.answers.sections import Section, SectionNode
from gpudebug.core.inside.sections.analysis import (
    analysis,
    beside,
    merge,
    outline,
    sections_evidence,
    unreadable,
)
from gpudebug.core.inside.sections.cost import Report
from gpudebug.core.inside.sections.others import printed
from gpudebug.core.inside.sections.parser import read_report
