"""What layer tests change in a command, and what their ratios say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gpudebug.core.catalogue.frameworks import find
from gpudebug.core.catalogue.offers import KnownCommand
from gpudebug.core.catalogue.program import look
from gpudebug.core.catalogue.signals import SIGNALS
from gpudebug.core.change.permits import Allowed
from gpudebug.core.diagnosis.layer_flags import doubled, quiet
from gpudebug.core.diagnosis.layers import (
    LAYERS,
    LayerError,
    asked,
    feeds_training,
    judge,
    layer_named,
    signals,
)
from gpudebug.core.errors import UsageError
from gpudebug.core.records import Conditions, Evidence, ProbeEvidence
from gpudebug.core.words import Outcome
from gpudebug.engine.run.adapters import known

NEVER = "1000000000"
PROGRAM = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--eval-every", type=int, default=10)
parser.add_argument("--save_interval_steps", type=int, default=0)
parser.add_argument("--log_every", type=int, default=1)
parser.add_argument("--eval_steps", type=int, default=5)
parser.add_argument("--wandb", action="store_true")
parser.add_argument("--batch-size", type=int, default=8)
parser.add_argument("--eval_batch_size", type=int, default=8)
"""
TWO_BATCHES = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=64)
parser.add_argument("--micro_batch_size", type=int, default=8)
"""


def command(words: str, source: str = "", **more: Any) -> KnownCommand:
    argv = words.split()
    program = look("train.py", [source]) if source else None
    return KnownCommand(argv, more.pop("env", {}), find(argv, known(), program), program=program, **more)


@pytest.mark.parametrize(
    ("words", "source", "changed"),
    [
        (
            "python train.py",
            PROGRAM,
            f"--eval-every={NEVER} --save_interval_steps={NEVER} --log_every={NEVER}",
        ),
        (
            "python train.py --log_every=5 --wandb",
            PROGRAM,
            f"--eval-every={NEVER} --save_interval_steps={NEVER} --log_every={NEVER} --wandb",
        ),
        ("python train.py --checkpoint_freq 100", "", f"--checkpoint_freq={NEVER}"),
        ("python train.py trainer.val_every_n_epochs=1", "", f"trainer.val_every_n_epochs={NEVER}"),
        (
            "lerobot-train --policy.type=act --save_freq=100 --wandb.enable=false",
            "",
            f"save_checkpoint=false log_freq={NEVER} --save_freq={NEVER}",
        ),
        (
            "python run.py --per_device_train_batch_size=8 --save_steps=10 --eval_strategy=no",
            "",
            "save_strategy=no logging_strategy=no report_to=none",
        ),
    ],
)
def test_a_quiet_command_neither_evaluates_nor_saves_nor_logs(words: str, source: str, changed: str) -> None:
    change = quiet(command(words, source), told=True)
    assert [c.words[1] for c in change.changes] == changed.split()
    assert change.compound == (len(change.changes) > 1)
    change.apply(words.split(), {}, Allowed(frozenset(change.names)))


def test_without_the_probe_the_log_must_tell_of_steps() -> None:
    change = quiet(command("python train.py --wandb", PROGRAM), told=False)
    assert change.names == ("--eval-every", "--save_interval_steps")
    framed = quiet(command("lerobot-train --policy.type=act"), told=False)
    assert framed.names == ("save_checkpoint",)


def test_variables_are_turned_as_flags_are() -> None:
    change = quiet(command("python train.py", "import os\nn = os.environ.get('EVAL_EVERY', '10')"), told=True)
    assert change.text == f"--env EVAL_EVERY={NEVER}"


@pytest.mark.parametrize("words", ["python train.py", "python train.py --eval_steps=10 --lr=1"])
def test_what_no_flag_silences_is_said(words: str) -> None:
    with pytest.raises(LayerError, match="no known flag"):
        quiet(command(words), told=True)


@pytest.mark.parametrize(
    ("words", "source", "changed"),
    [
        ("python train.py --batch_size=8", "", "--set --batch_size=16"),
        ("python train.py --data.batch_size 12", "", "--set --data.batch_size=24"),
        ("python train.py -c x.yaml data.batch_size=3", "", "--set data.batch_size=6"),
        ("python train.py", PROGRAM, "--set --batch-size=16"),
        ("python train.py --batch_size=4", TWO_BATCHES, "--set --batch_size=8"),
        ("python train.py", "import os\nn = os.environ.get('BATCH_SIZE', '10')", "--env BATCH_SIZE=20"),
        ("lerobot-train --policy.type=act", "", "--set batch_size=16"),
        ("lerobot-train --batch_size=4", "", "--set --batch_size=8"),
        ("python run.py --do_train --bf16", "", "--set per_device_train_batch_size=16"),
    ],
)
def test_twice_the_batch(words: str, source: str, changed: str) -> None:
    change = doubled(command(words, source))
    assert change.text == changed
    change.apply(words.split(), {}, Allowed(frozenset(change.names)))


@pytest.mark.parametrize(
    ("words", "source", "said"),
    [
        ("python train.py --eval_batch_size=8", "", "no flag of this command sets"),
        ("python train.py --batch_size=auto", "", "no flag of this command sets"),
        ("python train.py", TWO_BATCHES, "several flags set the batch size: --batch_size, --micro"),
    ],
)
def test_a_batch_that_nobody_can_double(words: str, source: str, said: str) -> None:
    with pytest.raises(LayerError, match=said):
        doubled(command(words, source))


@pytest.mark.parametrize("make", [doubled, lambda c: quiet(c, told=True)], ids=["doubled", "quiet"])
def test_flags_in_a_shell_are_out_of_reach(make: Callable[[KnownCommand], object]) -> None:
    with pytest.raises(LayerError, match="the flags of a shell command"):
        make(KnownCommand(["/bin/sh", "-c", "python train.py --batch_size=8 --eval_every=5"]))


def evidence(run: str, steps: float | None, samples: float | None = None, **facts: object) -> Evidence:
    """A run as the probe told it; where its rate of steps is None, nobody told."""
    told = ProbeEvidence(pid=1, steps=10, steps_per_s=steps, samples_per_s=samples, facts=facts)
    return Evidence(run=run, role="x", outcome=Outcome.COMPLETED, probe=told if steps is not None else None)


REPLAYED = {"replay": {"layer": "cached_batch", "batches": 40}}


@pytest.mark.parametrize(
    ("layer", "before", "after", "ratio", "said"),
    [
        ("cached_batch", 10.0, 24.0, 2.4, "a step is 2.4 times as fast: 58% of the time is data wait"),
        ("cached_batch", 10.0, 10.2, 1.02, "a step is no faster (1.02 times): loading delays nothing"),
        ("cached_batch", 10.0, 300.0, 30.0, "a step is 30 times as fast: 97% of the time"),
        ("quiet", 10.0, 10.5, 1.05, "a step is 1.05 times as fast: 5% of the time goes into these"),
        ("double_batch", 10.0, 9.5, 1.9, "takes 1.05 times as long: it is flat, so the host bounds"),
        ("double_batch", 10.0, 5.2, 1.04, "takes 1.92 times as long: the work on each sample bounds it"),
        ("double_batch", 10.0, 8.0, 1.6, "takes 1.25 times as long: 75% of it does not depend on the batch"),
        ("double_batch", 10.0, None, None, "the step time is unknown"),
        ("quiet", 10.0, None, None, "the step rate is unknown"),
    ],
)
def test_a_ratio_says_what_it_means(
    layer: str, before: float, after: float | None, ratio: float | None, said: str
) -> None:
    runs = [evidence("0001", before, 8 * before), evidence("0002", before, 8 * before)]
    made = evidence("0003", after, 16 * after if after else None, **REPLAYED)
    found = judge(layer, runs, [made], "--set --x=1")
    assert said in found.means
    assert found.ratio == (None if ratio is None else pytest.approx(ratio))
    assert signals({layer: found}) == ({f"layer_{layer}_ratio": found.ratio} if ratio else {})
    assert (ratio is None) == bool(found.notes)


def test_the_signals_are_those_of_the_registry() -> None:
    made = judge("quiet", [evidence("0001", 1.0)], [evidence("0002", 2.0)], "")
    assert {name for layer in LAYERS for name in signals({layer: made})} <= SIGNALS.keys()


def test_several_runs_of_a_test_are_one() -> None:
    after = [evidence("0003", 20.0, **REPLAYED), evidence("0004", 30.0, **REPLAYED)]
    found = judge("cached_batch", [evidence("0001", 10.0)], after, "")
    assert (found.ratio, found.run, found.runs) == (pytest.approx(2.5), "0004", ("0003", "0004"))


def test_a_run_that_replayed_nothing_says_nothing() -> None:
    found = judge("cached_batch", [evidence("0001", 10.0)], [evidence("0002", 30.0)], "")
    assert found.ratio is None
    assert "no batch was replayed" in found.notes[0]


def test_a_run_that_is_over_soon_is_timed_by_its_replayed_batches() -> None:
    before, told = evidence("0001", 10.0), {"batches": 100, "steps": 99, "seconds": 0.33}
    after = evidence("0002", None).model_copy(
        update={"probe": ProbeEvidence(pid=1, steps=100, facts={"replay": told})}
    )
    assert judge("cached_batch", [before], [after], "").ratio == pytest.approx(30)
    few = after.model_copy(
        update={"probe": ProbeEvidence(pid=1, steps=4, facts={"replay": {**told, "steps": 3}})}
    )
    found = judge("cached_batch", [before], [few], "")
    assert (found.ratio, found.notes[0]) == (
        None,
        "the step rate is unknown on one side: train for longer",
    )


def test_runs_that_were_not_alone_are_named() -> None:
    busy = evidence("0002", 20.0).model_copy(update={"conditions": Conditions(foreign_cpu=80.0)})
    shared = evidence("0003", 20.0).model_copy(update={"conditions": Conditions(foreign_procs=1)})
    rough = judge("quiet", [evidence("0001", 10.0)], [busy], "")
    assert rough.ratio == pytest.approx(2)
    assert rough.notes == ("other processes used the run's cores (80% in 0002): the ratio is rough",)
    assert "another process computed on the device in 0003" in judge("quiet", [busy], [shared], "").notes[0]


def test_one_source_tells_of_both_sides() -> None:
    """Steps by the log on one side and by the probe on the other are no ratio of anything."""
    before = evidence("0001", 10.0).model_copy(update={"steps_per_s": 9.0})
    after = evidence("0002", None).model_copy(update={"steps_per_s": 18.0})
    assert judge("quiet", [before], [after], "").ratio == pytest.approx(2.0)


@pytest.mark.parametrize("text", ["cached-batch", "cached_batch", " Cached-Batch"])
def test_layers_are_named_as_people_write(text: str) -> None:
    assert layer_named(text) == "cached_batch"
    with pytest.raises(UsageError, match="there is no layer test"):
        layer_named(f"{text}es")


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"epochs": [40, 5]}, "cached_batch:40,5"),
        ({"epochs": [40, 5], "epochs_ended": [True, False]}, "cached_batch:40,5+"),
        ({"epochs": [40, 5], "epochs_ended": [False]}, "cached_batch:40,5"),
        ({}, "cached_batch"),
        ({"epochs": "x"}, "cached_batch"),
    ],
)
def test_the_probe_is_told_how_long_epochs_are(facts: dict[str, Any], told: str) -> None:
    assert asked("cached_batch", [evidence("0001", 1.0), evidence("0002", 1.0, **facts)]) == told


@pytest.mark.parametrize(
    ("loaders", "feeds"),
    [([], False), (None, False), ([{"training": False}], False), ([{"training": True}], True), ([{}], True)],
)
def test_whether_a_loader_feeds_the_training(loaders: Sequence[object] | None, feeds: bool) -> None:
    assert feeds_training(evidence("0001", 1.0, loaders=loaders)) is feeds


@pytest.mark.parametrize(
    ("figures", "notes"),
    [
        ({"data_wait_share": 0.48}, ()),
        ({"data_wait_share": 0.34}, ("the probe calls 34% of the time data wait: the other 16% are ",)),
        ({"data_wait_share": 0.7}, ("the probe calls 70% of the time data wait, 20% more: ",)),
        ({}, ()),
    ],
)
def test_what_a_cached_batch_took_away_beyond_data_wait_is_said(
    figures: dict[str, float], notes: tuple[str, ...]
) -> None:
    probe = ProbeEvidence(pid=1, steps=10, steps_per_s=10.0, **figures)  # type: ignore[arg-type]
    before = evidence("0001", 10.0).model_copy(update={"probe": probe})
    found = judge("cached_batch", [before], [evidence("0002", 20.0, **REPLAYED)], "").notes
    assert len(found) == len(notes) and all(map(str.startswith, found, notes))


def test_the_logs_data_time_is_held_against_it_too() -> None:
    before = evidence("0001", 10.0).model_copy(update={"data_s": 0.1, "update_s": 0.3})
    (note,) = judge("cached_batch", [before], [evidence("0002", 20.0, **REPLAYED)], "").notes
    assert note.startswith("the log calls 25% of the time data wait: the other 25% are ")
