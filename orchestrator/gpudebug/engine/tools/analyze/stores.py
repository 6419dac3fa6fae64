"""`gpudebug analyze` of experiment trackers' stores: system metrics as samples, losses as those of a log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from gpudebug.core.answers.log import LogAnswer, LoggedLoss, ProgressFigure
from gpudebug.core.errors import GpudebugError
from gpudebug.core.evidence.learning import chosen, restarts
from gpudebug.core.recordings.stores import (
    MLFLOW,
    TRACKIO,
    of_mlflow,
    of_trackio,
    read_wandb_run,
    stored_recording,
)
from gpudebug.core.statistics.units import LOSS, LOWER, REWARD
from gpudebug.core.trainlog.logger_files import WrittenScalars, read_events, read_swanlab, read_whole_wandb
from gpudebug.core.verdict.work import trend
from gpudebug.edges import charts, store
from gpudebug.edges.sqlite import Database
from gpudebug.engine.run.recordings import LARGEST_WANDB, RecordedFile, of_store
from gpudebug.engine.tools.analyze.kinds import AnalyzedFile
from gpudebug.engine.tools.analyze.logs import reward_of
from gpudebug.engine.tools.analyze.samples import of_recording

_NO_ROWS = "has no rows yet: its run has logged nothing, or was killed before it did"
_AGAIN = "look at it again once its run has gone on"
_MLFLOW = ("run_uuid", "key", "value", "timestamp", "step", "is_nan")


def wandb(path: Path) -> list[AnalyzedFile]:
    """Raises GpudebugError if the file holds neither GPUs nor a figure of learning."""
    history, system = read_whole_wandb(store.read_file(path, LARGEST_WANDB, follow=True))

    def read() -> RecordedFile:
        return of_store(read_wandb_run(system, str(path)), str(path))

    return _both(path, read, [("W&B", history)])


def events(path: Path) -> list[AnalyzedFile]:
    """A TensorBoard event file. Raises GpudebugError if it holds no scalar."""
    return _history(path, "TensorBoard", read_events)


def swanlab(path: Path) -> list[AnalyzedFile]:
    """A SwanLab run file. Raises GpudebugError if it holds no scalar."""
    return _history(path, "SwanLab", read_swanlab)


def _history(path: Path, framework: str, read: Callable[[bytes], WrittenScalars]) -> list[AnalyzedFile]:
    history = read(store.read_file(path, LARGEST_WANDB, follow=True))
    if not history.values:
        why = f"{history.note} and {_NO_ROWS}" if history.note else _NO_ROWS
        raise GpudebugError(why, file=str(path), next=_AGAIN)
    return [_learned(path, framework, history)]


def database(path: Path, number: int | None) -> list[AnalyzedFile] | None:
    """Return the runs of MLflow's or trackio's database; None if it is none of theirs."""
    with Database(path) as db:
        columns = db.tables().get("metrics", frozenset())
        if columns.issuperset(_MLFLOW):
            source, framework, runs = MLFLOW, "MLflow", of_mlflow(db.rows("metrics", _MLFLOW))
        elif columns.issuperset(("run_name", "step", "metrics")):
            system = "system_metrics" in db.tables()
            source, framework = TRACKIO, "trackio"
            runs = of_trackio(
                db.rows("metrics", ("run_name", "step", "metrics")),
                db.rows("system_metrics", ("run_name", "timestamp", "metrics")) if system else (),
            )
        else:
            return None
    if not runs:
        raise GpudebugError(f"is a database of {framework} that {_NO_ROWS}", file=str(path), next=_AGAIN)
    histories = [(framework, one.history) for one in runs.values()]
    readings = {name: one.readings for name, one in runs.items()}

    def read() -> RecordedFile:
        return of_store(stored_recording(readings, source, str(path)), str(path))

    return _both(path, read, histories, number)


def _both(
    path: Path,
    read: Callable[[], RecordedFile],
    histories: Sequence[tuple[str, WrittenScalars]],
    number: int | None = None,
) -> list[AnalyzedFile]:
    """Return the GPUs of a store and what it says of learning; GpudebugError if it holds neither."""
    learned = [_learned(path, framework, one) for framework, one in histories if one.values]
    try:
        return [*of_recording(path, read(), number), *(learned if number is None else ())]
    except GpudebugError:
        if not learned or number is not None:
            raise
        return learned


def _learned(path: Path, framework: str, history: WrittenScalars) -> AnalyzedFile:
    figures = chosen(history, framework)
    loss = next((one for one in figures if one.metric == LOSS), None)
    reward = next((one for one in figures if one.metric == REWARD), None)
    steps = max((step for values in history.values.values() for step, _ in values), default=None)
    answer = LogAnswer(
        file=str(path),
        framework=framework,
        loss=LoggedLoss(
            name=loss.name if loss else None,
            trend=trend(loss, LOWER).value,
            points=loss.points if loss else 0,
            first=loss.first if loss else None,
            last=loss.last if loss else None,
        ),
        progress=None if steps is None else ProgressFigure(unit="steps", done=steps, total=None, per_s=None),
        steps=steps,
        steps_per_s=None,
        data_s=None,
        update_s=None,
        work=None,
        reward=reward_of(reward),
        latency=None,
        failure=None,
        notes=_notes(history, framework, bool(figures)),
    )
    points = history.values.get(loss.name, []) if loss else []
    series = {"loss": [[s, v] for s, v in points], "step_times": [], "stepped": True}
    return AnalyzedFile(answer, charts.training_log, {"series": series})


def _notes(history: WrittenScalars, framework: str, learns: bool) -> tuple[str, ...]:
    """Return what the file breaks off with, and why nothing of it is read as a loss or a reward."""
    notes = [f"the file {history.note}: what is before that was read"] if history.note else []
    if not learns:
        names = ", ".join(sorted(history.values)[:6])
        other = f"no training loss or reward in its history; it holds {names}"
        notes.append(restarts(history, framework) or other)
    return tuple(notes)
