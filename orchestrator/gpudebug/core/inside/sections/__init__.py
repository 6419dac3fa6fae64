"""Section timings: reports read and merged, scored, compared, and as a run's evidence keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpudebug.core.inside.sections.others import printed
from gpudebug.core.lazy import loader

if TYPE_CHECKING:
    from gpudebug.core.answers.sections import Section, SectionNode
    from gpudebug.core.inside.sections.analysis import (
        beside,
        merge,
        outline,
        sections_evidence,
        summed_up,
        unreadable,
    )
    from gpudebug.core.inside.sections.cost import Report
    from gpudebug.core.inside.sections.parser import read_report

# A log may have a printed tree; reports are their own files.
__getattr__ = loader(
    __name__,
    {
        "gpudebug.core.answers.sections": "Section SectionNode",
        "analysis": "beside merge outline sections_evidence summed_up unreadable",
        "cost": "Report",
        "parser": "read_report",
    },
)
