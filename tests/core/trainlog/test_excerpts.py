"""Excerpts in the formats of public programs, which the reader knows none of."""

from __future__ import annotations

import pytest
from tests.bench.trainlog_score import judge_excerpt
from tests.support.excerpts import Excerpt, excerpts
from tests.support.places import DATA

ALL = [one for file in sorted((DATA / "excerpts").glob("*.yaml")) for one in excerpts(file)]


@pytest.mark.parametrize("excerpt", ALL, ids=[one.name for one in ALL])
def test_reads_what_a_person_reads(excerpt: Excerpt) -> None:
    missed = {field: verdict[1:] for field, verdict in judge_excerpt(excerpt).items() if not verdict[0]}
    assert missed == {}


def test_each_names_where_its_format_is_from() -> None:
    assert all(one.source.startswith("https://") for one in ALL)
    assert len({one.name for one in ALL}) == len(ALL)
