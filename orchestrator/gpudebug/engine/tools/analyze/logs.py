"""`gpudebug analyze` of a training log: loss, steps, times and why it failed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpudebug.core.answers.log import (
    FailureLines,
    LogAnswer,
    LoggedCount,
    LoggedLoss,
    ProgressFigure,
    RewardFigure,
)
from gpudebug.core.errors import GpudebugError
from gpudebug.core.inside.sections import printed
from gpudebug.core.lazy import regex
from gpudebug.core.recordings.cells import moment
from gpudebug.core.recordings.formats import encoding_of, is_text, text_of
from gpudebug.core.recordings.monitors import readings_within
from gpudebug.core.recordings.others import other_output
from gpudebug.core.redaction.redact import Redactor
from gpudebug.core.statistics.numbers import finite
from gpudebug.core.trainlog.losses import NAME as UNNAMED
from gpudebug.core.trainlog.reader import LogProgress, LogReader, LogSummary
from gpudebug.core.trainlog.tables import find_header
from gpudebug.core.trainlog.written_tables import as_lines, records_in
from gpudebug.core.words import WorkName
from gpudebug.edges import store
from gpudebug.engine.run.readings import read_log, samples_beside
from gpudebug.engine.tools.analyze.kinds import HEAD, KNOWN, AnalyzedFile, is_document, is_records

if TYPE_CHECKING:
    from gpudebug.core.answers.log import LatencyFigures
    from gpudebug.core.records import LearningSeries
    from gpudebug.core.trainlog.series import Point
    from gpudebug.core.trainlog.work import LoggedWork

_LARGEST, _LOG_END = 8 << 20, 256 << 10
_AGAIN = "look at it again once its run has gone on"
_LOGS = (".txt", ".log", ".out", ".jsonl", ".csv")
_NUMBERS = regex(r"\s*[-+]?\d[\d.eE+-]*(?:(?:\s*[,;\t]\s*|\s+)[-+]?\d[\d.eE+-]*)*\s*")
_CELL_ENDS, _COUNTED = regex(r"[,;\t]"), regex(r"(?i)step|epoch|iter|loss")
_ROWS = 6
_LOOKED_AT = 5
"""Files beside one that was refused."""


def log(path: Path) -> AnalyzedFile:
    """Raises GpudebugError if the file is one JSON value without training data."""
    records, broken = _records(path)
    if records:
        found = _of_records(records)
    else:
        found = read_log(
            path, samples_beside(path), {}, exit_status=None, signal=None, redactor=_redactor(path)
        )
    silent = not (found.points or found.durations or found.steps or found.failure or found.latencies.count)
    head = store.read_head(path, HEAD, follow=True)
    if silent and is_document(head):
        raise GpudebugError(
            "is JSON, but no trace, no section report and no log", file=str(path), next=f"give {KNOWN}"
        )
    text = text_of(head)
    if silent:
        refuse_other(path, text)
    if found.loss_name == UNNAMED or (silent and not (found.progress or found.work.rewards)):
        _refuse_table(path, text, bare=silent)
    end = store.read_tail(path, _LOG_END, follow=True).decode("utf-8", "replace")
    source = readings_within(text, end)
    if silent and source is not None:
        raise GpudebugError(
            f"holds readings of {source} among lines of another kind, and no training",
            file=str(path),
            next="save the readings in a file of their own, and give that",
        )
    if silent and encoding_of(head) is None and not is_text(head):
        raise GpudebugError(
            "is damaged: binary content, and no line of a training that can be read",
            file=str(path),
            next=f"give {KNOWN}",
        )
    if silent and _only_names(path):
        raise GpudebugError("has the names of its columns and no rows yet", file=str(path), next=_AGAIN)
    failure = found.failure
    reward = _reward(found)
    elsewhere = found.progress is not None and found.progress.unit == WorkName.ENVIRONMENT_STEPS
    answer = LogAnswer(
        file=str(path),
        framework=found.framework,
        loss=LoggedLoss(
            name=found.loss_name,
            trend=found.trend.value,
            points=found.points,
            first=finite(found.first),
            last=finite(found.last),
            of=found.loss_is,
        ),
        progress=_progress(found.progress),
        steps=None if elsewhere else found.steps,
        steps_per_s=None if elsewhere else finite(found.steps_per_s),
        data_s=finite(found.data_s),
        update_s=finite(found.update_s),
        work=_work(found.work),
        reward=reward_of(reward),
        latency=_latency(found),
        failure=FailureLines(class_=failure.kind, lines=failure.lines) if failure else None,
        notes=(*_doubts(found.work), *_notes(head, found, broken, source)),
        sections=printed(end, _redactor(path).redact),
    )
    series = {
        "loss": _series(found.loss),
        "step_times": _series(found.durations),
        "reward": reward.curve if reward is not None else (),
        "stepped": all(p.step is not None for p in (*found.loss, *found.durations)),
    }
    return AnalyzedFile(answer, _picture, {"series": series})


def _picture(*shown: Any) -> bytes:
    from gpudebug.edges import charts

    return charts.training_log(*shown)


def refuse_other(path: Path, text: str) -> None:
    """GpudebugError if a file that begins so is output of another program, without a GPU over time."""
    other = other_output(text)
    if other is not None:
        raise GpudebugError(f"is output of {other.name}: {other.why}", file=str(path), next=other.next)


def _refuse_table(path: Path, text: str, *, bare: bool) -> None:
    """GpudebugError for a table whose columns are named and none a training's; `bare`: or not named."""
    rows = [_CELL_ENDS.split(line.strip()) for line in text.split("\n", 30)[:30] if line.strip()][:_ROWS]
    widths = {len(row) for row in rows}
    if len(rows) < 2 or len(widths) > 1 or _COUNTED.search(text.split("\n", 1)[0]):
        return
    figures = [any(map(_NUMBERS.fullmatch, row)) for row in rows]
    if widths != {1} and not figures[0] and any(figures) and not moment(rows[0][0]):
        problem, then = (
            f"names no loss, step or figure of a GPU: {', '.join(map(str.strip, rows[0][:6]))}",
            f"give {KNOWN}",
        )
    elif bare and all(figures) and all(moment(row[0]) or _NUMBERS.fullmatch(row[0]) for row in rows):
        problem = "does not name its columns: which is a loss, a step or a utilisation is unknown"
        then = "put their names on its first line"
    else:
        return
    raise GpudebugError(f"is a table that {problem}", file=str(path), next=then)


def _only_names(path: Path) -> bool:
    lines = store.read_head(path, HEAD, follow=True).decode("utf-8", "replace").split("\n")
    return not any(lines[1:]) and find_header(lines[0].strip()) is not None


def beside(path: Path) -> Path | None:
    """Return the newest log in a file's folder that begins with steps or losses; None without one."""
    try:
        found = [
            one for one in path.parent.iterdir() if one.suffix in _LOGS and one.is_file() and one != path
        ]
        newest = sorted(found, key=lambda one: one.stat().st_mtime, reverse=True)[:_LOOKED_AT]
        return next(filter(_shows_training, newest), None)
    except OSError:
        return None


def _shows_training(path: Path) -> bool:
    head = store.read_head(path, HEAD, follow=True)
    if not is_text(head):
        return False
    reader = LogReader()
    reader.feed(head)
    found = reader.summary()
    return bool(found.points or found.steps or found.progress)


def _records(path: Path) -> tuple[list[Mapping[str, object]], str | None]:
    """The records of a JSON document, and where it breaks off; none of any other file."""
    if not is_records(store.read_head(path, HEAD, follow=True).decode("utf-8", "replace")):
        return [], None
    return records_in(store.read_head(path, _LARGEST, follow=True).decode("utf-8", "replace"))


def _of_records(records: Sequence[Mapping[str, object]]) -> LogSummary:
    reader = LogReader()
    for line, time in as_lines(records):
        reader.feed(line, time)
    return reader.summary()


def _notes(head: bytes, found: LogSummary, broken: str | None, source: str | None) -> Iterator[str]:
    """What of the file was guessed, or not read."""
    if broken:
        yield f"the file {broken}: what is before that was read"
    if found.loss_name == UNNAMED:
        yield "no names are printed: the first number is taken for the step, the second for the loss"
    if encoding_of(head) is None and not is_text(head):
        yield "binary content in the file was left out"
    if found.disordered:
        yield "its lines are out of order: their steps or epochs fall often, so the loss has no trend"
    if found.clock_back:
        yield "its clock goes back within the log: no rate is taken from its time stamps"
    if found.summed:
        yield "its losses are sums since the row before: the trend is that of the loss of a step"
    if found.followed:
        yield f"two logs seem to follow each other in the file: the loss is that of {found.points} values"
    if found.runs > 1:
        yield f"{found.runs} runs follow each other in the file, each from its beginning: the last was read"
    if found.pages:
        yield "an HTML page in the file was left out"
    if source is not None:
        yield f"readings of {source} are in the file too: save them in a file of their own to analyze them"


def _progress(found: LogProgress | None) -> ProgressFigure | None:
    if found is None:
        return None
    return ProgressFigure(
        unit=found.unit,
        done=found.done,
        total=found.total,
        per_s=finite(found.per_s),
        epoch_s=finite(found.epoch_s),
        between_s=finite(found.between_s),
    )


# What reads the work, rewards and latencies of a run takes longer to load than a page of a log to read.


def _latency(found: LogSummary) -> LatencyFigures | None:
    if not (found.latencies.count or found.latencies.summary):
        return None
    from gpudebug.core.evidence.speed import latency_evidence
    from gpudebug.engine.run.devices import latency_in

    return latency_in(latency_evidence(found.latencies))


def _doubts(found: LoggedWork) -> tuple[str, ...]:
    if not (found.counters or found.rewards):
        return ()
    from gpudebug.core.evidence.work import doubts

    return doubts(found)


def _reward(found: LogSummary) -> LearningSeries | None:
    if not found.work.rewards:
        return None
    from gpudebug.core.evidence.learning import series
    from gpudebug.core.statistics.units import REWARD

    return next((one for one in series(found) if one.metric == REWARD), None)


def _work(found: LoggedWork) -> LoggedCount | None:
    """Return the first counter that counts through the log; one that begins again shows no work."""
    if not found.counters:
        return None
    from gpudebug.core.evidence.work import MIN_SEEN

    counted = (one for one in found.counters if one.seen >= MIN_SEEN and one.began_again is None)
    first = next(counted, None)
    return LoggedCount(unit=first.unit, name=first.name, last=first.last) if first else None


def reward_of(series: LearningSeries | None) -> RewardFigure | None:
    """Return a reward for an answer."""
    if series is None:
        return None
    from gpudebug.core.statistics.units import HIGHER
    from gpudebug.core.verdict.work import trend

    return RewardFigure(
        name=series.name,
        trend=trend(series, HIGHER).value,
        points=series.points,
        first=series.first,
        last=series.last,
        over=series.over if series.curve else None,
    )


def _redactor(path: Path) -> Redactor:
    """What knows the secrets of the campaign that the log is of; of this process alone if it is of none."""
    folder = path.resolve().parent
    if store.find_root(folder) is None:
        return Redactor(os.environ)
    # What reads a campaign's settings takes longer to load than a page of a log to read.
    from gpudebug.engine.campaign.files import find, read_config, redactor_of

    try:
        return redactor_of(read_config(find(folder)))
    except GpudebugError:
        return Redactor(os.environ)


def _series(points: Sequence[Point]) -> list[list[float | None]]:
    """[step, value] each; where not all have a step, numbered as printed. None for what is not finite."""
    numbered = any(p.step is None for p in points)
    return [[i if numbered else p.step, finite(p.value)] for i, p in enumerate(points)]
