"""What a campaign's workload does otherwise than its reference. Costs no run."""

from __future__ import annotations

from gpudebug.core.answers.answer import plain, with_texts
from gpudebug.core.answers.diagnosis import FromReference
from gpudebug.core.diagnosis.model import DiagnosisFacts
from gpudebug.core.diagnosis.reference import difference
from gpudebug.core.redaction.records import scrubbed
from gpudebug.engine.campaign.campaign import Setup
from gpudebug.engine.campaign.files import workload_of


def from_reference(setup: Setup, facts: DiagnosisFacts) -> FromReference | None:
    """Return the difference of both commands and of their valid baselines, without secrets; None if the
    campaign has no reference."""
    reference = workload_of(setup.config, "reference")
    if reference is None:
        return None
    found = difference(setup.config.workload.argv(), reference.argv(), facts, facts.reference)
    without_secrets: FromReference = with_texts(found, scrubbed(plain(found), setup.workspace.scrub))
    return without_secrets
