from __future__ import annotations

import pytest
from tests.support.diagnoses import stacks

from gpudebug.core.diagnosis.ofstacks import signals, together
from gpudebug.core.models import StacksEvidence

TRAINING = stacks(
    ("data", "t.py:main torch/utils/data/dataloader.py:next", 1, 4.0, 0.0),
    ("other", "t.py:main t.py:save", 9, 1.0, 0.0),
    ("forward", "t.py:main net.py:table", 5, 5.0, 5.0),
    code={
        "t.py:save:9": "f.write(data)",
        "net.py:table:5": "rows += [i]",
        "t.py:main:1": "for batch in loader:",
    },
)


def test_shares_of_the_watched_time() -> None:
    workers = stacks(("other", "d.py:get", 1, 2.0, 0.5))
    assert signals(StacksEvidence(training=TRAINING, workers=workers)) == {
        "stacks_s": 10.0,
        "waiting_share": 0.5,
        "waiting_outside_data_share": pytest.approx(0.1),
        "hot_share": 0.5,
        "hot_python_share": 0.5,
        "hot_in_forward_share": 0.5,
        "worker_running_share": 0.25,
    }


def test_nothing_watched_tells_nothing() -> None:
    assert signals(None) == {}
    assert signals(StacksEvidence()) == {}
    assert together([None, {}]) is None


def test_runs_are_taken_together_as_their_evidence_has_them() -> None:
    one = StacksEvidence(training=TRAINING, notes=("a",)).model_dump(mode="json")
    found = together([one, None, one])
    assert found is not None
    assert found.training is not None
    assert found.training.seconds == 20.0
    assert found.notes == ("a",)
    assert signals(found)["hot_share"] == 0.5
