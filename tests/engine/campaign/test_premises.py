from __future__ import annotations

import pytest
from tests.support.campaigns import Campaign

from gpudebug.core.errors import UsageError
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.premises import changed, entry_of, why_of
from gpudebug.engine.hypotheses.accept import accept


def test_what_changed_since_a_trial_is_named(judged: Campaign) -> None:
    loaded = load(judged.folder)
    assert [changed(loaded.history, h) for h in loaded.entries.document.hypotheses] == [()] * 4
    accept(judged.folder, 1)
    loaded = load(judged.folder)
    assert changed(loaded.history, entry_of(loaded.setup.progress_path, loaded.entries.document, 3)) == (
        "the workload's command",
    )
    accept(judged.folder, 2)
    judged.config.write_text(judged.config.read_text() + "log: {x: 'x=(?P<value>1)'}\n")
    loaded = load(judged.folder)
    assert changed(loaded.history, entry_of(loaded.setup.progress_path, loaded.entries.document, 3)) == (
        "the workload's command",
        "the code",
        "how its log and samples are read",
    )


def test_without_runs_nothing_is_known_to_have_changed(judged: Campaign) -> None:
    judged.add("\n### Hypothesis 7: By hand\n- **Status**: REJECTED\n- **Result**:\n  - Improvement: +1pp\n")
    loaded = load(judged.folder)
    assert changed(loaded.history, entry_of(loaded.setup.progress_path, loaded.entries.document, 7)) == ()
    assert (
        why_of(loaded.entries.trials, entry_of(loaded.setup.progress_path, loaded.entries.document, 7))
        == "UNVERIFIED +1pp"
    )
    assert why_of(
        loaded.entries.trials, entry_of(loaded.setup.progress_path, loaded.entries.document, 3)
    ).startswith("delta: ")


def test_a_hypothesis_that_is_not_there(judged: Campaign) -> None:
    with pytest.raises(UsageError, match="there is no hypothesis 9: there are 1, 2, 3, 4"):
        loaded = load(judged.folder)
        entry_of(loaded.setup.progress_path, loaded.entries.document, 9)
