"""What a job could write to, compared with what was counted of it; and the job's records, taken over."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpudebug.core.inside.probe import spans
from gpudebug.core.inside.torch_profile import read_profiles
from gpudebug.core.records import Counted
from gpudebug.core.words import Outcome
from gpudebug.edges import launcher, store
from gpudebug.edges.store import jobfiles
from gpudebug.engine.run.evidence import LONGEST_RECORD
from gpudebug.engine.run.files import SERVER_LOG, Files
from gpudebug.engine.run.readings import read_run_samples

SAMPLES = "samples.csv"
LOG = "train.log"
RUN = "run.json"
PATCH = "change.patch"
# To these is added for as long as the job runs; the others are whole before or after.
GROWING = frozenset({LOG, launcher.PROBE})
_SECTIONS = re.compile(r"sections(\.rank[0-9]{1,6})?\.json")
_MOST_SECTIONS = 64
_LONGEST_SECTIONS = 16 << 20
_LONGEST_TRACE = 4 << 30
_EMPTIED = " (does the program empty its output, as `> /dev/stderr` does? write `>&2` or `>>`)"
# The user's wish and a lost device matter more than what a job did to its files.
_KEPT = frozenset({Outcome.INTERRUPTED, Outcome.DEVICE_LOST})
# What counts by its readings; how another run failed is known without one.
_READ = frozenset({Outcome.COMPLETED, Outcome.ENDED_BY_PLAN})


@dataclass(frozen=True)
class FileCounts:
    """What was counted of each file that is kept as it is, and how those that are something else by now were
    `altered`. Files of other nodes that are `short` of what was counted there are no one's doing: a file
    system of several hosts may lack the end of what another one wrote."""

    written: Mapping[str, Counted]
    altered: Mapping[str, str]
    short: Mapping[str, str] = field(default_factory=dict)


def ends(launched: launcher.Launched) -> dict[str, object]:
    """Return how a run ended, as run.json has it."""
    names = ("exit_status", "signal", "leaked", "own_limit_mb")
    return {name: getattr(launched, name) for name in names}


def compare(
    files: Files, launched: launcher.Launched, beside: Mapping[str, Mapping[str, Any]] | None = None
) -> FileCounts:
    """Return each file that the job could write to beside what its writer or follower counted of it, or
    gpudebug had put there before the launch. `beside` is what samplers of other nodes counted."""
    sampler = launched.sampler or {}
    counts = {SAMPLES: sampler.get("counted"), **launched.counted, **(beside or {})}
    written = {name: Counted.model_validate(count) for name, count in counts.items() if count}
    written |= {name: count_of(data) for name, data in files.ours.items()}
    places = {SAMPLES: files.samples, LOG: files.log, **{p.name: p for p in files.beside.values()}}
    if files.folder is not None:
        places |= {name: files.folder / name for name in files.ours}
    if files.records is not None:
        places[launcher.PROBE] = files.records / launcher.PROBE
    last = written.get(SAMPLES)
    if last is not None and not sampler.get("finished") and change_of(files.samples, last) is None:
        # The last row of a sampler that was killed: it had no time to count it.
        jobfiles.cut(files.samples, last.bytes)
    altered = {
        name: how
        for name, counted in written.items()
        if name in places and (how := change_of(places[name], counted, whole=name not in GROWING))
    }
    others = {path.name for path in files.beside.values()}
    short = {
        name: altered.pop(name) for name in others & altered.keys() if _is_short(places[name], written[name])
    }
    written = {name: counted for name, counted in written.items() if name not in short}
    size = jobfiles.size_of(files.log)
    if LOG in altered and size is not None and size < written[LOG].bytes:
        altered[LOG] += _EMPTIED
    # Its last word on the run is yet to be written.
    written.pop(RUN, None)
    return FileCounts(written, altered, short)


def _is_short(path: Path, counted: Counted) -> bool:
    size = jobfiles.size_of(path)
    return size is not None and size < counted.bytes


def count_of(data: bytes) -> Counted:
    """Return what is counted of a file that holds `data`."""
    return Counted(bytes=len(data), sha256=store.digest(data))


def change_of(path: Path, counted: Counted, *, whole: bool = False) -> str | None:
    """Return how a file differs from what was counted of it; None if all of that is still there.

    With `whole` there may be nothing more than that.
    """
    size = jobfiles.size_of(path)
    if whole and size is not None and size > counted.bytes:
        return f"it has {size} bytes, {counted.bytes} had been written to it"
    try:
        found = jobfiles.head_digest(path, counted.bytes)
    except OSError as e:
        return f"cannot be read: {e.strerror}"
    if found == counted.sha256:
        return None
    if found is not None:
        return f"the {counted.bytes} bytes that had been written to it were changed"
    if size is None:
        return "it was removed, or another thing was put in its place"
    return f"it has {size} bytes, {counted.bytes} had been written to it"


def ending(launched: launcher.Launched, altered: Mapping[str, str]) -> launcher.Launched:
    """Return how the run ended, now that it is known what became of its files."""
    if not altered:
        return launched
    text = "; ".join(f"{name} was altered during the run: {how}" for name, how in altered.items())
    reason = f"{launched.reason}; {text}" if launched.reason else text
    outcome = launched.outcome if launched.outcome in _KEPT else Outcome.SAMPLER_LOST
    return replace(launched, outcome=outcome, reason=reason)


def unread(launched: launcher.Launched, samples: Path) -> launcher.Launched:
    """Return how the run ended, given that its sampler said its last word or read the device before: a run
    that was over before a sampler that died could be started again has measured nothing."""
    sampler = launched.sampler
    if sampler is None or sampler.get("finished") or launched.outcome not in _READ:
        return launched
    if any(row.gpu_util is not None for row in read_run_samples(samples).rows):
        return launched
    reason = f"{sampler.get('why') or 'the sampler ended'} before it had read the device"
    return replace(launched, outcome=Outcome.SAMPLER_LOST, reason=reason)


def tidy(files: Files, altered: Mapping[str, str], written: Mapping[str, Counted]) -> None:
    """Leave nothing in a run folder that the job put there, or that a sampler of another node left uncounted:
    it is moved into the job's folder. What gpudebug had written there before is there again."""
    if files.reports is None:
        return
    jobfiles.regain(files.reports)
    beside = written.keys() & {path.name for path in files.beside.values()}
    ours = {SAMPLES, LOG, *files.ours, *([SERVER_LOG] if files.served else []), *beside}
    names = [name for name in altered if name in ours and files.folder is not None]
    jobfiles.put_aside(files.reports, [*names, *jobfiles.strangers(files.reports, ours)])
    for name in files.ours.keys() & altered.keys():
        store.copy_into(files.reports / name, files.ours[name])


def _join_nodes(folder: Path) -> None:
    """Add to the run's record what the processes of other nodes wrote into files of their own."""
    others = {
        node: data.decode("utf-8", "replace")
        for node, name in spans.records_of(jobfiles.names_in(folder, store.RECORDS)).items()
        if (data := jobfiles.read_of(folder, name, LONGEST_RECORD // 2)) is not None
    }
    if others:
        path = folder / launcher.PROBE
        first = store.read_head(path, LONGEST_RECORD).decode("utf-8", "replace") if path.exists() else ""
        store.copy_into(path, spans.joined(first, others).encode()[:LONGEST_RECORD])


def take_over(folder: Path, altered: Mapping[str, str]) -> None:
    """Copy the processes' reports into the run folder, capped. Reports of sections are also
    taken from the job's folder, where its own code may have written them."""
    for name in (launcher.PROBE, launcher.RECORD):
        if name not in altered:
            jobfiles.copy_up(folder, name, LONGEST_RECORD)
    if launcher.PROBE not in altered:
        _join_nodes(folder)
    places = (store.JOB, store.RECORDS)
    reports = {n: of for of in places for n in jobfiles.names_in(folder, of) if _SECTIONS.fullmatch(n)}
    for name, of in sorted(reports.items())[:_MOST_SECTIONS]:
        jobfiles.copy_up(folder, name, _LONGEST_SECTIONS, of=of)
    for name in _traces(folder / launcher.PROBE):
        jobfiles.move_up(folder, name, _LONGEST_TRACE)


def _traces(record: Path) -> list[str]:
    """Return the traces of PyTorch's profiler that the probe record names."""
    if not record.is_file():
        return []
    profiles = read_profiles(store.read_head(record, LONGEST_RECORD).decode("utf-8", "replace"))
    named: Any = (profiles or {}).get("files", ())
    return [str(name) for name in named]
