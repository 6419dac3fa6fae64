"""What Slurm's commands print of jobs, as seen jobs; lines of any other form are left out."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from itertools import product

from gpudebug.core.cluster.jobs import JobEnd, JobPlace, JobState, SeenJob
from gpudebug.core.cluster.reasons import CLEANING
from gpudebug.core.lazy import regex
from gpudebug.core.words import word_set

MOST_NODES = 4096
_BRACKET = regex(r"\[([^\][]*)\]")
_ABSENT = frozenset({"", "(null)", "None", "None assigned", "N/A"})


def expanded(text: str) -> tuple[str, ...]:
    """Return each node of a list, in its order; none of what is no list, and at most `MOST_NODES`."""
    if text.strip() in _ABSENT:
        return ()
    names: list[str] = []
    for part in _parts(text.strip()):
        names += _named(part, MOST_NODES - len(names))
    return tuple(names)


def _parts(text: str) -> list[str]:
    """Split at commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for place, char in enumerate(text):
        depth += (char == "[") - (char == "]")
        if char == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [part for part in (*parts, text[start:]) if part]


def _named(part: str, most: int) -> list[str]:
    pieces = _BRACKET.split(part)
    # Every second piece was in brackets.
    choices = [_numbers(piece, most) if place % 2 else [piece] for place, piece in enumerate(pieces)]
    names: list[str] = []
    for words in product(*choices):
        if len(names) >= most:
            break
        names.append("".join(words))
    return names


def _numbers(text: str, most: int) -> list[str]:
    found: list[str] = []
    for item in text.split(","):
        first, dash, last = item.partition("-")
        if not dash or not (first.isdecimal() and last.isdecimal()):
            found.append(item)
            continue
        span = range(int(first), min(int(last), int(first) + most) + 1)
        found += [str(number).zfill(len(first)) for number in span]
    return found


SQUEUE = "%i|%T|%r|%N|%L"
"""Formats that every Slurm since 2.6 has: id, state, reason, nodes, time left."""
QUEUED = "%F|%T|%Z"
"""Of a job or the array that it is of: id, state, folder."""
SACCT = "JobID,State,ExitCode,NodeList"

_STATES: Mapping[str, JobState] = {
    **dict.fromkeys(
        word_set(
            "PENDING CONFIGURING REQUEUED REQUEUE_FED REQUEUE_HOLD RESV_DEL_HOLD SPECIAL_EXIT EXPEDITING"
        ),
        JobState.WAITING,
    ),
    **dict.fromkeys(("RUNNING", "SIGNALING", "RESIZING"), JobState.RUNNING),
    **dict.fromkeys(("SUSPENDED", "STOPPED"), JobState.PAUSED),
    **dict.fromkeys(CLEANING, JobState.CLEANING),
}
_TO_COME = (JobState.WAITING, JobState.RUNNING)
_ENDS: Mapping[str, JobEnd] = {
    **{str(end): end for end in JobEnd if end not in (JobEnd.OTHER, JobEnd.REQUEUED)},
    "BOOT_FAIL": JobEnd.NODE_FAIL,
    "LAUNCH_FAILED": JobEnd.NODE_FAIL,
    "RECONFIG_FAIL": JobEnd.NODE_FAIL,
    "DEADLINE": JobEnd.TIMEOUT,
}
"""REVOKED is no end: in a federation another cluster runs the job."""
UNSAID = "JobLaunchFailure"
"""What Slurm before 23.02 says of every batch script that a signal ended, or that never began."""
# Reasons of FAILED that are the cluster's own, not the program's.
_CLUSTERS_OWN = frozenset({UNSAID, "SystemFailure"})
_RAISED = regex(r"RaisedSignal:(\d+)", re.ASCII)
# slurmstepd that cannot set up a batch script's files ends with ESLURMD_IO_ERROR (4021), and what is left of
# that in a wait status reads as a signal: 4021 % 128.
_NO_LOG = 53
_ID = regex(r"([0-9]+)(?:;\S*)?", re.ASCII)
_SUBMITTED = regex(r"Submitted batch job ([0-9]+)", re.ASCII)
_CANCELLED = regex(r"CANCELLED by ([0-9]{1,10})", re.ASCII)
_LEFT = regex(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", re.ASCII)
# ` Key=value` of one line of `scontrol -o`: a value may hold blanks, and ends where the next key begins.
_FIELD = regex(r"(?:^|\s)([A-Za-z_:/]+)=(.*?)(?=\s+[A-Za-z_:/]+=|\s*$)", re.ASCII)


def submitted(text: str) -> str | None:
    """Return the id in what `sbatch --parsable` printed, which may be wrapped by a site's own lines.

    None if no line is an id, or several are; `Submitted batch job 123` is of a wrapper that drops options.
    """
    lines = (line.strip() for line in text.splitlines())
    ids = {match[1] for line in lines if (match := _ID.fullmatch(line)) is not None}
    if not ids:
        ids = set(_SUBMITTED.findall(text))
    return ids.pop() if len(ids) == 1 else None


def queued(text: str, folder: str, known: Container[str]) -> str | None:
    """Return the latest job of `folder` in the output of `squeue -o QUEUED` that is new; None without one."""
    rows = (line.strip().split("|", 2) for line in text.splitlines())
    ids = [row[0] for row in rows if len(row) == 3 and _STATES.get(row[1]) in _TO_COME and row[2] == folder]
    return max((id for id in ids if id.isdecimal() and id not in known), key=int, default=None)


def squeue_rows(text: str, ids: tuple[str, ...]) -> dict[str, SeenJob]:
    """Jobs of `ids` in the output of `squeue -h -o SQUEUE`.

    Of a job that clusters of a federation share, the row of the one that knows of it counts.
    """
    found: dict[str, SeenJob] = {}
    for line in text.splitlines():
        fields = line.strip().split("|")
        if len(fields) >= 5 and fields[0] in ids:
            id, word, *reason, nodes, left = fields
            job = seen(id, word, reason="|".join(reason), nodes=nodes, left=left)
            if id not in found or job.state is not JobState.UNKNOWN:
                found[id] = job
    return found


def sacct_rows(text: str, ids: tuple[str, ...]) -> dict[str, SeenJob]:
    """Jobs of `ids` in the output of `sacct -X -n -P -o SACCT`; the last row of a job counts."""
    found = {}
    for line in text.splitlines():
        fields = line.strip().split("|")
        if len(fields) == 4 and fields[0] in ids:
            id, word, status, nodes = fields
            found[id] = seen(id, word, nodes=nodes, status=status)
    return found


def scontrol_rows(text: str, ids: tuple[str, ...]) -> dict[str, SeenJob]:
    """Jobs of `ids` in the output of `scontrol -o show job`."""
    found = {}
    for fields in map(_fields, text.splitlines()):
        id = _id_of(fields)
        if id in ids and "JobState" in fields:
            found[id] = seen(
                id,
                fields["JobState"],
                reason=fields.get("Reason", ""),
                nodes=fields.get("NodeList", ""),
                status=fields.get("ExitCode", ""),
                restarts=fields.get("Restarts", ""),
            )
    return found


def place(text: str, id: str) -> JobPlace | None:
    """Return where the job ran, from `scontrol -o -d show job`; None if it had no nodes."""
    for line in text.splitlines():
        fields = _fields(line)
        nodes = expanded(fields.get("NodeList", ""))
        if _id_of(fields) == id and nodes:
            # GRES stands after the nodes that it is of; there are as many as groups of equal nodes.
            gpus = re.findall(r"\bNodes=\S+ .*?\bGRES=(gpu\S*)", line)
            return JobPlace(id, nodes, tuple(gpus), fields.get("Partition", ""))
    return None


def _fields(line: str) -> dict[str, str]:
    return dict(reversed(_FIELD.findall(line)))


def _id_of(fields: Mapping[str, str]) -> str:
    array, task = fields.get("ArrayJobId"), fields.get("ArrayTaskId", "")
    return f"{array}_{task}" if array and task.isdecimal() else fields.get("JobId", "")


def seen(
    id: str,
    word: str,
    *,
    reason: str = "",
    nodes: str = "",
    left: str = "",
    status: str = "",
    restarts: str = "",
) -> SeenJob:
    """One job of Slurm's words. A state that this version does not know is UNKNOWN, never an end."""
    # `CANCELLED by 1000`, `CANCELLED+` where a column was cut.
    state = re.split(r"[ +]", word.strip(), maxsplit=1)[0]
    end, signal = _ENDS.get(state), _signal(reason, status)
    # A worker's own failures have a status: a signal is Slurm's, the kernel's or a person's.
    if end is JobEnd.FAILED and (signal is not None or reason in _CLUSTERS_OWN):
        end = JobEnd.OTHER
    stands = JobState.ENDED if end is not None else _STATES.get(state, JobState.UNKNOWN)
    return SeenJob(
        id=id,
        state=stands,
        word=state,
        # That of a job that was cancelled is why it waited before.
        reason="" if end is JobEnd.CANCELLED else _reason(reason, state if stands is JobState.PAUSED else ""),
        nodes=expanded(nodes),
        end=end,
        exit_status=_status(status) if end is not None else None,
        restarts=int(restarts) if restarts.isdecimal() else None,
        left_s=seconds(left) if stands is JobState.RUNNING else None,
        by=int(who[1]) if (who := _CANCELLED.fullmatch(word.strip())) else None,
        unlogged=end is JobEnd.OTHER and signal == _NO_LOG,
    )


def _reason(text: str, otherwise: str) -> str:
    return otherwise if text in ("", "None", "(null)") else text.strip("()")


def _signal(reason: str, status: str) -> int | None:
    """Return the signal that ended a batch script, by `RaisedSignal:9(Killed)` or by `0:9`."""
    raised = _RAISED.match(reason)
    number = raised[1] if raised is not None else status.partition(":")[2]
    return int(number) if number.isdecimal() and int(number) else None


def _status(text: str) -> int | None:
    """`3:0` is status 3, `0:9` signal 9."""
    code, _, signal = text.partition(":")
    if not code.isdecimal():
        return None
    return 128 + int(signal) if signal.isdecimal() and int(signal) else int(code)


def seconds(left: str) -> float | None:
    """Seconds of `1-02:03:04`; None for UNLIMITED, `infinite` and all else that is no time."""
    match = _LEFT.fullmatch(left.strip())
    if match is None:
        return None
    d, h, m, s = (int(part or 0) for part in match.groups())
    return float(((d * 24 + h) * 60 + m) * 60 + s)
