"""Each program of the zoo with several ranks: who holds the others up, and why."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support import zoo
from tests.support.rank_jobs import look, named, names


@pytest.mark.heavy
@pytest.mark.parametrize("name", names())
def test_the_straggler_is_named_and_none_of_a_healthy_job(tmp_path: Path, name: str) -> None:
    pytest.importorskip("torch")
    truth = zoo.truth(name)
    assert named(look(tmp_path, name, 400)) == (truth.rank, truth.straggler)
