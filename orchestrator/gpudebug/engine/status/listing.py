"""What `status` lists of hypotheses beside their verdicts: which of many, what they cost, how they ran."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from gpudebug.core.answers.status import AcceptedWorth, FlagSweep, HypothesisRow, RunSpark, SweepValue
from gpudebug.core.config import Config
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.metrics import GPU_UTIL
from gpudebug.core.words import Status
from gpudebug.edges import store
from gpudebug.engine.campaign.campaign import Entries, Loaded, Records
from gpudebug.engine.campaign.files import stored_record
from gpudebug.engine.campaign.verdicts import Judged
from gpudebug.engine.status.recorded import age, moment

SHOWN = 30
"""How many hypotheses a text of `status` lists; a campaign of the usual budget has fewer."""
DRAWN = 120
"""Of how many runs the evidence is read for their utilisation."""
_SPARK = 40
# Above, a number in a run folder is not what we write.
_LARGEST = 1e9

Record = Mapping[str, Any]


class RunsSpent(NamedTuple):
    """The seconds that runs held a device, when the last of them ended, and how long ago that is."""

    cost_s: float | None
    ended: str | None
    age_s: int | None


def worth(loaded: Loaded) -> AcceptedWorth | None:
    """Return what the accepted changes are worth together; None while nothing is accepted."""
    verdict = (
        loaded.entries.trials[loaded.entries.recorded[0].number].verdict if loaded.entries.recorded else None
    )
    if verdict is None:
        return None
    from gpudebug.engine.trial.together import together

    found, scrub = together(loaded, verdict), loaded.setup.workspace.scrub
    return AcceptedWorth(
        text=found.text,
        throughput=found.throughput if loaded.setup.metric.points else None,
        why=scrub(found.why) if found.why else None,
        paired=found.paired,
        agrees=found.agrees,
        notes=list(map(scrub, found.notes)),
    )


def made(config: Config, records: Records) -> dict[int, list[Record]]:
    """Return the records of the runs that this campaign made for each hypothesis."""
    found: dict[int, list[Record]] = {}
    for record in records.values():
        number = record.get("hypothesis")
        if number is not None and record.get("campaign") == config.campaign:
            found.setdefault(number, []).append(record)
    return found


def spent(records: Sequence[Record | None]) -> RunsSpent:
    """Return what runs took of the device and since when they are over; unknown if a record is None."""
    known = [r for r in records if r is not None]
    held = [r["duration_s"] for r in known if r.get("devices") and r.get("duration_s") is not None]
    cost = sum(held)
    sure = len(known) == len(records)
    ended = max((at for r in known if (at := moment(r.get("end")))), default=None) if sure else None
    return RunsSpent(
        cost_s=round(cost, 1) if sure and held and 0 <= cost <= _LARGEST else None,
        ended=ended.isoformat() if ended else None,
        age_s=age(ended.isoformat()) if ended else None,
    )


def shown(hypotheses: Sequence[HypothesisRow], following: int | None) -> list[int]:
    """Return the numbers of at most `SHOWN` hypotheses, in the file's order.

    Of more, what happens now goes first: those that are TESTING and the one that is next. Then come those
    that a verdict on runs says to help, then what was tested last, then what waits, as the file has it.
    """

    def place(h: HypothesisRow) -> tuple[int, float]:
        if h.status == Status.TESTING or h.number == following:
            return (0, 0)
        if h.status == Status.UNTESTED:
            return (3, 0)
        helps = h.status == Status.VALIDATED and h.verified
        return (1 if helps else 2, math.inf if h.age_s is None else h.age_s)

    listed = sorted(hypotheses, key=place)[:SHOWN]
    numbers = {h.number for h in listed}
    return [h.number for h in hypotheses if h.number in numbers]


def sparks(
    workspace: store.Workspace, records: Records, hypotheses: Iterable[HypothesisRow]
) -> dict[int, list[RunSpark]]:
    """The utilisation of the runs of those that were tested last, by number, as far as `DRAWN` goes."""
    left, found = DRAWN, {}
    for h in sorted(hypotheses, key=lambda h: math.inf if h.age_s is None else h.age_s):
        role = f"h{h.number}"
        # Whose a run without a record is, nobody can tell.
        own = [n for n in h.runs if records.get(n, {"role": role}).get("role") == role]
        left -= len(own)
        if left < 0:
            break
        found[h.number] = [RunSpark(run=name, spark=_spark(workspace, records, name)) for name in own]
    return found


def _spark(workspace: store.Workspace, records: Records, name: str) -> list[float] | None:
    known = name in records
    return spark_of(stored_record(workspace.run(name), "evidence.json")) if known else None


def spark_of(evidence: Record) -> list[float] | None:
    """The utilisation that a run's evidence keeps for a small picture; None where it is not what we write."""
    found = evidence.get("spark")
    if not isinstance(found, list) or len(found) > _SPARK:
        return None
    sound = all(isinstance(v, (int, float)) and 0 <= v <= _LARGEST for v in found)
    return found if sound else None


def sweeps(config: Config, entries: Entries, hypotheses: Sequence[HypothesisRow]) -> list[FlagSweep]:
    """Hypotheses that set one flag or variable to different values."""
    changes = {h.number: change for h in entries.document.hypotheses if (change := entries.change_of(h))}
    if len(changes) < 2:
        return []
    from gpudebug.core.change import sweep

    workload, server = config.workload, config.server
    now = sweep.Standing(
        workload.argv(), workload.env, server.argv() if server else (), server.env if server else {}
    )
    rows_of = {h.number: h for h in hypotheses}
    return [
        FlagSweep(
            parameter=name,
            standing=now.value(changes[rows[0][1]].changes[0]),
            rows=[_sweep_value(value, rows_of[number], entries.trials[number]) for value, number in rows],
        )
        for name, rows in sweep.sweeps(changes.items())
    ]


def _sweep_value(value: str, row: HypothesisRow, trial: Judged) -> SweepValue:
    verdict = trial.verdict if trial.verified else None
    own = verdict is not None and verdict.get("metric", GPU_UTIL) != GPU_UTIL
    return SweepValue(
        value=value,
        hypothesis=row.number,
        status=row.status,
        verified=row.verified,
        delta_pp=row.delta_pp,
        delta_ci=row.delta_ci,
        improvement=row.improvement,
        improvement_ci=row.improvement_ci,
        throughput_ratio=row.throughput_ratio,
        measured=numbers.metric_change(verdict) if verdict is not None and own else None,
    )
