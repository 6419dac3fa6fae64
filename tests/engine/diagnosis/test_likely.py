"""Whether the diagnosis ranks first what a hypothesis would mend."""

from __future__ import annotations

from tests.support.campaigns import Campaign

from gpudebug.engine.campaign.load import load
from gpudebug.engine.diagnosis.case import case_of
from gpudebug.engine.diagnosis.from_catalogue import propose_from_catalogue
from gpudebug.engine.diagnosis.likely import ranked_first


def test_a_proposal_of_the_catalogues_names_its_cause(waiting: Campaign) -> None:
    first, second = case_of(load(waiting.folder)).diagnosis.causes[:2]
    for cause in (first, second):
        propose_from_catalogue(waiting.folder, cause.id)
    loaded = load(waiting.folder)
    assert ranked_first(loaded, 1)
    assert not ranked_first(loaded, 2)


def test_what_fits_no_cause_is_not_ranked(waiting: Campaign) -> None:
    waiting.propose("--env OMP_PROC_BIND=true", "Something else entirely")
    assert not ranked_first(load(waiting.folder), 1)


def test_a_catalogue_that_cannot_be_read_ranks_nothing(waiting: Campaign) -> None:
    waiting.propose("--env OMP_PROC_BIND=true", "Something else entirely")
    folder = waiting.folder / "hypotheses" / "catalogue"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text("id: [\n")
    assert not ranked_first(load(waiting.folder), 1)
