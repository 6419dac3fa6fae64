from __future__ import annotations

import pytest
from tests.support.diagnoses import stacks

from gpudebug.core.diagnosis.ofstacks import evaluates, reduces, signals, together
from gpudebug.core.records import StacksEvidence

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
        "starved_share": None,
        "hot_waiting_share": None,
        "hot_share": 0.5,
        "hot_python_share": 0.5,
        "hot_in_forward_share": 0.5,
        "worker_running_share": 0.25,
        "worker_starved_share": None,
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


def test_how_long_a_thread_waited_for_a_core_is_a_share_of_its_time() -> None:
    starved = TRAINING.model_copy(update={"starved_s": 4.0})
    assert signals(StacksEvidence(training=starved))["starved_share"] == 0.4
    assert signals(together([StacksEvidence(training=starved).model_dump()] * 2))["starved_share"] == 0.4


def test_without_a_loader_a_function_that_waits_for_time_or_files_is_told() -> None:
    alone = stacks(
        ("other", "t.py:main t.py:pull (kernel):sleep", 3, 6.0, 0.0),
        ("other", "t.py:main jax.py:wait", 4, 4.0, 0.0),
        code={"t.py:pull:3": "time.sleep(1)", "t.py:main:4": "wait(x)"},
    )
    assert signals(StacksEvidence(training=alone))["hot_waiting_share"] == 0.6


@pytest.mark.parametrize(
    ("frames", "source", "share"),
    [
        ("t.py:main (kernel):sleep", "time.sleep(0.1)", 0.0),
        ("t.py:<module> (kernel):sleep", "sleep(pause)", 0.0),
        ("t.py:Trainer.train_target (kernel):sleep", "time.sleep(0.1)", 0.0),
        ("t.py:main t.py:throttle (kernel):sleep", "time.sleep(0.1)", 0.0),
        ("t.py:main t.py:Store.fetch_next t.py:Store._wait (kernel):sleep", "time.sleep(0.1)", 0.6),
        ("t.py:main t.py:_readImage (kernel):sleep", "time.sleep(0.1)", 0.6),
        ("t.py:main t.py:step (kernel):sleep", "x = client.result()", 0.6),
        ("t.py:main (kernel):disk", "time.sleep(0.1); x = f.read()", 0.6),
    ],
)
def test_a_line_that_sleeps_is_no_read(frames: str, source: str, share: float) -> None:
    *_, own, _kernel = frames.split(" ")
    alone = stacks(
        ("other", frames, 3, 6.0, 0.0),
        ("other", "t.py:main jax.py:wait", 4, 4.0, 0.0),
        code={f"{own}:3": source, "t.py:main:4": "wait(x)"},
    )
    assert signals(StacksEvidence(training=alone))["hot_waiting_share"] == share


NEW = {"starved_s": 0.0}
NAMED = ("other", "t.py:main t.py:evaluate", 2, 3.0, 3.0)
STEP = ("backward", "t.py:main torch/_tensor.py:backward", 1, 7.0, 7.0)
EVALUATED = ("eval", "t.py:main t.py:rollout net.py:f", 2, 3.0, 3.0)


@pytest.mark.parametrize(
    ("rows", "new", "kind", "counted", "share"),
    [
        ((STEP, EVALUATED), True, "vision", 0, 0.3),
        ((STEP, EVALUATED), True, "rl", 0, 0.0),
        ((STEP, NAMED), True, "vision", 9, 0.0),
        # A run that was watched before phases told it.
        ((STEP, NAMED), False, "vision", 0, 0.3),
        # Without PyTorch: the log has to tell of evaluations as well.
        ((("other", "t.py:main", 1, 7.0, 7.0), NAMED), True, "other", 0, None),
        ((("other", "t.py:main", 1, 7.0, 7.0), NAMED), True, "other", 3, 0.3),
        ((EVALUATED,), True, "inference", 0, None),
    ],
)
def test_what_shows_an_evaluation(
    rows: tuple[tuple[str, str, int, float, float], ...],
    new: bool,
    kind: str,
    counted: int,
    share: float | None,
) -> None:
    training = stacks(*rows).model_copy(update=NEW if new else {})
    occasions = [{"occasions": {"evaluation": counted}}]
    found = evaluates(StacksEvidence(training=training), kind, occasions, {})
    assert found == (share if share is None else pytest.approx(share))
    assert evaluates(None, kind, [], {}) is None


@pytest.mark.parametrize(
    ("settings", "share"),
    [
        ({"training.eval_frequency": "20"}, 0.3),
        ({"eval_every": 20.0}, 0.3),
        ({"eval_every": "-1"}, None),
        ({"log_every": "20", "evaluate": True}, None),
    ],
)
def test_a_program_without_pytorch_may_say_how_often_it_evaluates(
    settings: dict[str, object], share: float | None
) -> None:
    rows = (("other", "t.py:main", 1, 7.0, 7.0), NAMED)
    training = stacks(*rows).model_copy(update=NEW)
    found = evaluates(StacksEvidence(training=training), "other", [], settings)
    assert found == (share if share is None else pytest.approx(share))


def test_who_sleeps_through_the_backward_pass_of_a_gpu_waits_for_no_rank() -> None:
    seen = StacksEvidence(
        training=stacks(("backward", "t.py:main", 1, 3.0, 1.0), ("other", "t.py:f", 1, 1.0, 0.0))
    )
    assert reduces(seen, on_cpu=True) == {"backward_wait_share": 0.5}
    assert reduces(seen, on_cpu=False) == reduces(None, on_cpu=True) == {}
