"""The figures of a baseline's entry: what its trend is of."""

from __future__ import annotations

from pathlib import Path

from tests.core.verdict.test_run_plan import of_backward
from tests.support.trials import run

from gpudebug.core.config.parser import load
from gpudebug.core.records import LossEvidence, RunRecord
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.words import Trend
from gpudebug.edges import store
from gpudebug.engine.run.job import MeasuredRun
from gpudebug.engine.trial.baseline_entry import entry_fields, learning_of

HEAD = "campaign: a\nworkload: {command: python train.py}\n"
FEW = LossEvidence(name="loss", trend=Trend.UNKNOWN, points=2, advice="log more often")


def loss_of(settings: str) -> object:
    """What an entry says of two runs whose log has two losses, and whose backward() got many."""
    record = RunRecord.model_construct(command="python train.py")
    folder = store.RunFolder(Path("/x/0001-x"), str)
    runs = [MeasuredRun(folder, record, run(loss=FEW, **of_backward(0.5))) for _ in range(2)]
    learning = learning_of(load(HEAD + settings, "gpudebug.yaml"), runs)
    return entry_fields("workload", runs, Metric("gpu_util"), learning=learning)["loss"]


def test_the_trend_is_of_what_learning_is_judged_by() -> None:
    assert loss_of("") == "CONVERGING, judged by training loss, from backward(), lower is better"
    assert loss_of("criteria: {loss: any}\n") == "UNKNOWN"
