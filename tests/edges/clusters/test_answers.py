"""The book of what a cluster last said."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

import pytest

from gpudebug.core.cluster.jobs import JobEnd, JobState, SeenJob
from gpudebug.core.cluster.slurm_requests import NodeGroup
from gpudebug.core.errors import ClusterError
from gpudebug.edges.clusters import answers
from gpudebug.edges.clusters.answers import AnswerBook


def test_what_is_entered_is_read_back(tmp_path: Path) -> None:
    job = SeenJob("1", JobState.ENDED, "TIMEOUT", "TimeLimit", ("n0",), JobEnd.TIMEOUT, 143, 2)
    nodes = (NodeGroup("gpu", True, True, None, 2, 64, "gpu:4"),)
    with answers.opened(tmp_path / "deep" / "er") as book:
        book.jobs["1"], book.missed["1"], book.nodes, book.elsewhere = job, 1, nodes, True
        book.unaccounted_at, book.nodes_at, book.answered = time.time(), time.time(), 5.0
        book.asked(10, 1)
    with answers.opened(tmp_path / "deep" / "er") as again:
        assert (again.jobs, again.missed, again.nodes, again.elsewhere) == ({"1": job}, {"1": 1}, nodes, True)
        assert (again.accounting, again.knows_nodes, again.answered) == (False, True, 5.0)
        assert not again.may_ask(10)


def test_what_is_asked_keeps_others_from_asking_but_not_for_ever() -> None:
    book = AnswerBook()
    book.asking(10)
    assert not book.may_ask(10)
    assert book.next_at - time.time() <= 30


def test_accounting_that_was_off_is_asked_again_some_day() -> None:
    assert AnswerBook().accounting
    assert not AnswerBook(unaccounted_at=time.time() - 3000).accounting
    assert AnswerBook(unaccounted_at=time.time() - 4000).accounting
    assert AnswerBook(unaccounted_at=time.time() + 4000).accounting, "a clock that was set back"


def test_a_clock_that_was_set_back_does_not_stop_the_questions() -> None:
    assert AnswerBook(time.time() + 3600).may_ask(10)
    assert not AnswerBook(time.time() + 5).may_ask(10)
    assert AnswerBook(time.time() - 1).may_ask(10)


def test_a_book_stays_small(tmp_path: Path) -> None:
    with answers.opened(tmp_path) as book:
        for number in range(answers.MOST_JOBS + 5):
            book.jobs[str(number)] = SeenJob(str(number), JobState.RUNNING)
    with answers.opened(tmp_path) as again:
        assert len(again.jobs) == answers.MOST_JOBS
        assert str(answers.MOST_JOBS + 4) in again.jobs


def test_a_look_that_changes_nothing_writes_nothing(tmp_path: Path) -> None:
    with answers.opened(tmp_path) as book:
        book.jobs["1"] = SeenJob("1", JobState.RUNNING)
    path = tmp_path / "states.json"
    os.utime(path, ns=(0, 0))
    with answers.opened(tmp_path) as book:
        assert book.jobs
    assert path.stat().st_mtime_ns == 0
    with answers.opened(tmp_path) as book:
        book.asked(10, 1)
    assert path.stat().st_mtime_ns > 0


def test_a_disk_that_is_full_is_a_line(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with pytest.raises(ClusterError, match="cannot keep what the cluster says") as caught:
        try:
            with answers.opened(tmp_path) as book:
                book.jobs["1"] = SeenJob("1", JobState.RUNNING)
                resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.next == "free some space, then run it again"
    with answers.opened(tmp_path) as again:
        assert again.jobs == {}


def test_a_link_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "states.json").symlink_to(tmp_path / "other")
    with pytest.raises(ClusterError, match="cannot keep what the cluster says"), answers.opened(tmp_path):
        pass
