"""`status` as it was recorded: only while everything that it was made of is as it was.

What cannot be compared, whatever the reason, is no answer: then the evidence is read. Imports are few, since
this is all that most calls of `status` need.
"""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

from gpudebug import __version__
from gpudebug.core.answers.answer import PhaseFigures
from gpudebug.core.answers.status import (
    AcceptedWorth,
    BaselineRow,
    BudgetLeft,
    CampaignFiles,
    DetectableFigure,
    DeviceValue,
    ExpectedFigure,
    FigureAcross,
    FlagSweep,
    GoalRuns,
    HypothesisClaim,
    HypothesisRow,
    NextAction,
    OrderSource,
    PinnedSettings,
    RecordedAt,
    Resolution,
    RunSpark,
    StatusAnswer,
    SweepValue,
    UnlistedVerdict,
    UsedDevice,
)
from gpudebug.core.errors import GpudebugError
from gpudebug.core.text.values import short_digest
from gpudebug.edges import git, opener
from gpudebug.edges.store import root as places
from gpudebug.edges.store.summary import Summary, as_they_are, read_summary, run_names, summaries

FORMAT = 1


def recorded(directory: Path, session: str | None, *, every: bool) -> StatusAnswer | None:
    """Return the recorded answer for this caller; None if there is none that still holds.

    Without `every` it has only the hypotheses that a text lists.
    """
    try:
        root = places.find_root(directory)
        for path in summaries(root) if root is not None else ():
            found = read_summary(path)
            if root is not None and found is not None and holds(root, found, session):
                return _answer(found, every)
    except (OSError, GpudebugError, LookupError, TypeError, ValueError, AttributeError):
        pass
    return None


def holds(root: Path, summary: Summary, session: str | None) -> bool:
    """Tell whether a summary says what the evidence would say now. What is cheap to compare comes first."""
    head = summary.head
    return (
        (head["format"], head["gpudebug"], head["root"]) == (FORMAT, __version__, str(root))
        and (session is None or head["alike"])
        and head["config"] == _digest(root / places.CONFIG)
        and head["progress"] == progress_of(Path(head["progress"][0]))
        and head["visible"] == os.environ.get("CUDA_VISIBLE_DEVICES")
        and head["runs"] == names_digest(root)
        and head["files"] == as_they_are(root, summary.files)
        and not _somebody_works(root, head["answer"]["campaign"])
        and all(program == program_of(root, *program[:3]) for program in head["programs"])
        and head["code"] == code_of(root, head["apart"])
    )


def progress_of(path: Path) -> list[str]:
    """Return the progress file: its path, where links lead, and its digest."""
    return [str(path), os.path.realpath(path), _digest(path)]


def names_digest(root: Path) -> str:
    """Return a digest of the names of all run folders."""
    return short_digest("\0".join(run_names(root)).encode("utf-8", "surrogateescape"))


def program_of(root: Path, word: str, cwd: str, search: str | None) -> list[str | None]:
    """Return the interpreter that a command's first word starts, beside what it was looked up by."""
    from gpudebug.edges import host, launcher

    path = os.environ.get("PATH", "") if search is None else search
    try:
        executable = launcher.find_command((word,), str(root / cwd), {"PATH": path})
        found = host.interpreter_identity(host.find_interpreter(executable, path))
    except GpudebugError:
        found = "command not found"
    return [word, cwd, search, found]


def code_of(root: Path, apart: list[str]) -> list[str]:
    """The code as it lies there: where it is, its tree, and which paths git tracks that are no code."""
    return code_in(git.identify(root, map(Path, apart), places.CONFIG))


def code_in(checkout: git.Checkout) -> list[str]:
    """Return the same of a checkout that was looked at."""
    tracked = short_digest(b"\0".join(sorted(checkout.left_out)))
    return [str(checkout.top), str(checkout.common), checkout.tree, tracked]


def _digest(path: Path) -> str:
    return short_digest(opener.read_file(path, follow=True))


def _somebody_works(root: Path, campaign: str) -> bool:
    """Tell whether a command runs something, or somebody holds a hypothesis."""
    from gpudebug.edges.store.locks import held_by

    runs = root / places.RUNS
    leases = runs / ".leases" / campaign
    return (
        held_by(places.private_folder(root) / "claim") is not None
        or (leases.is_dir() and any(leases.iterdir()))
        or runs.is_symlink()
    )


def _answer(summary: Summary, every: bool) -> StatusAnswer:
    """Return the answer with its ages as they are now."""
    head = summary.head
    answer: dict[str, Any] = head["answer"]
    order, resolution = answer["order"], answer["resolution"]
    made: dict[str, Any] = {
        "device": UsedDevice(**answer["device"]),
        "baselines": {role: _baseline(row) for role, row in answer["baselines"].items()},
        "hypotheses": list(map(_hypothesis, summary.every_row() if every else head["listed"])),
        "unlisted": [UnlistedVerdict(**verdict) for verdict in answer["unlisted"]],
        "sweeps": list(map(_sweep, answer["sweeps"])),
        "resolution": _resolution(resolution) if resolution else None,
        "expected": [ExpectedFigure(**row) for row in answer["expected"]],
        "next": NextAction(**answer["next"]),
        "order": OrderSource(**{**order, "age_s": age(order["when"])}) if order else None,
        "recorded": RecordedAt(when=head["when"], age_s=age(head["when"])),
        "budget": BudgetLeft(**answer["budget"]),
        "settings": PinnedSettings(**answer["settings"]),
        "files": CampaignFiles(**answer["files"]),
        "together": AcceptedWorth(**worth) if (worth := answer.get("together")) else None,
    }
    return StatusAnswer(**{**answer, **made}, rest=None if every else head["rest"])


def _baseline(row: dict[str, Any] | None) -> BaselineRow | None:
    if row is None:
        return None
    sparks = [RunSpark(**spark) for spark in row["sparks"]]
    across = [_figure(one) for one in row.get("across", ())]
    phases = [PhaseFigures(**one) for one in row.get("phases", ())]
    fields = {"age_s": age(row["ended"]), "sparks": sparks, "across": across, "phases": phases}
    return BaselineRow(**{**row, **fields})


def _figure(row: dict[str, Any]) -> FigureAcross:
    ends = {end: DeviceValue(**row[end]) for end in ("least", "most")}
    lists = {key: tuple(DeviceValue(**one) for one in row.get(key, ())) for key in ("apart", "unused")}
    return FigureAcross(**{**row, **ends, **lists})


def _hypothesis(row: dict[str, Any]) -> HypothesisRow:
    row["age_s"] = age(row["ended"])
    if row["claim"]:
        row["claim"] = HypothesisClaim(**row["claim"])
    if row["sparks"]:
        row["sparks"] = [RunSpark(**spark) for spark in row["sparks"]]
    return HypothesisRow(**row)


def _sweep(sweep: dict[str, Any]) -> FlagSweep:
    return FlagSweep(**{**sweep, "rows": [SweepValue(**row) for row in sweep["rows"]]})


def _resolution(row: dict[str, Any]) -> Resolution:
    figures = [
        DetectableFigure(**{**f, "goal_runs": GoalRuns(**f["goal_runs"]) if f["goal_runs"] else None})
        for f in row["figures"]
    ]
    return Resolution(**{**row, "figures": tuple(figures)})


def age(when: object) -> int | None:
    """Seconds since a time. None if it is no time; 0 if the clock was set back since."""
    found = moment(when)
    if found is None:
        return None
    now = datetime.datetime.now(datetime.timezone.utc)
    return max(0, round((now - found).total_seconds()))


def moment(text: object) -> datetime.datetime | None:
    """Return a time as records hold it; None if it is none, or has no zone."""
    try:
        found = datetime.datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo else None
