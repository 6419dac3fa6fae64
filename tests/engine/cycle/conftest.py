"""A cluster that stands in for one, for tests of what is asked of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.batch import Batch


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Batch]:
    found = Batch(tmp_path / "cluster")
    yield found
    found.close()
