"""`gpudebug analyze` of a W&B run file: its system metrics as samples, its losses as those of a log."""

from __future__ import annotations

from pathlib import Path

from gpudebug.core.answers.analyze import LogAnswer, LoggedLoss, ProgressFigure
from gpudebug.core.errors import GpudebugError
from gpudebug.core.evidence.learning import chosen
from gpudebug.core.records import LearningSeries
from gpudebug.core.statistics.units import LOSS, LOWER, REWARD
from gpudebug.core.trainlog.logger_files import WrittenScalars, read_wandb
from gpudebug.core.verdict.work import trend
from gpudebug.edges import charts, store
from gpudebug.engine.run.recordings import LARGEST_WANDB, recording
from gpudebug.engine.tools.analyze.kinds import AnalyzedFile
from gpudebug.engine.tools.analyze.logs import reward_of
from gpudebug.engine.tools.analyze.samples import of_recording

FRAMEWORK = "W&B"


def wandb(path: Path) -> list[AnalyzedFile]:
    """Raises GpudebugError if the file holds neither GPUs nor a figure of learning."""
    history = read_wandb(store.read_file(path, LARGEST_WANDB, follow=True))
    figures = chosen(history, FRAMEWORK)
    learned = [_learned(path, history, figures)] if history.values else []
    try:
        return [*of_recording(path, recording(path)), *learned]
    except GpudebugError:
        if not learned:
            raise
        return learned


def _learned(path: Path, history: WrittenScalars, figures: list[LearningSeries]) -> AnalyzedFile:
    loss = next((one for one in figures if one.metric == LOSS), None)
    reward = next((one for one in figures if one.metric == REWARD), None)
    steps = max((step for values in history.values.values() for step, _ in values), default=None)
    answer = LogAnswer(
        file=str(path),
        framework=FRAMEWORK,
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
        notes=_notes(history, loss, reward),
    )
    points = history.values.get(loss.name, []) if loss else []
    series = {"loss": [[s, v] for s, v in points], "step_times": [], "stepped": True}
    return AnalyzedFile(answer, charts.training_log, {"series": series})


def _notes(
    history: WrittenScalars, loss: LearningSeries | None, reward: LearningSeries | None
) -> tuple[str, ...]:
    """Return what the file breaks off with, and what it holds if nothing of it is a loss or a reward."""
    notes = [f"the file {history.note}: what is before that was read"] if history.note else []
    if loss is None and reward is None:
        names = ", ".join(sorted(history.values)[:6])
        notes.append(f"no training loss or reward in its history; it holds {names}")
    return tuple(notes)
