"""What is seen of a job."""

from __future__ import annotations

import pytest

from gpudebug.core.cluster.jobs import JobEnd, JobState, SeenJob


@pytest.mark.parametrize("end", JobEnd)
def test_only_the_programs_own_ends_say_something_of_it(end: JobEnd) -> None:
    job = SeenJob("1", JobState.ENDED, end=end)
    assert job.over
    assert job.infrastructure == (end not in (JobEnd.COMPLETED, JobEnd.FAILED))


@pytest.mark.parametrize("state", [JobState.WAITING, JobState.RUNNING, JobState.UNKNOWN])
def test_what_has_not_ended_is_no_end(state: JobState) -> None:
    assert not SeenJob("1", state).over
    assert not SeenJob("1", state).infrastructure


@pytest.mark.parametrize(
    ("word", "reason", "how"),
    [
        ("TIMEOUT", "TimeLimit", "TIMEOUT (TimeLimit)"),
        ("NODE_FAIL", "", "NODE_FAIL"),
        ("", "it knows no such job", "it knows no such job"),
        ("", "", "OTHER"),
    ],
)
def test_how_it_ended_is_the_clusters_word(word: str, reason: str, how: str) -> None:
    assert SeenJob("1", JobState.ENDED, word, reason, end=JobEnd.OTHER).how == how
