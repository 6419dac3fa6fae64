"""Whether a JSON record has the shape that gpudebug writes; `status` reads many and loads no models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpudebug.core.lazy import regex
from gpudebug.core.words import VERDICTS

_RUN = regex(r"[0-9]{4,9}-[A-Za-z]")
_DEEPEST = 40
_LARGEST = 1e18
_STACK = 5
"""Phase, frames, line, seconds, seconds on a CPU."""
_STATUSES = tuple(status.value for status in VERDICTS)
_NEEDED = {"before", "after", "delta"}
_RUN_TEXTS = (
    *("name", "campaign", "role", "command", "cwd", "commit", "change", "change_digest", "interpreter"),
    *("checked_out", "set_aside", "session", "claim", "settings"),
    *("host", "start", "end", "outcome", "reason"),
)
_RUN_OBJECTS = ("packages", "knobs", "imports", "written", "uncounted", "node")
# Of evidence.json, by what each key holds.
NUMBERS = frozenset(
    {
        *("format", "exit_status", "signal", "duration_s", "utilisation", "standard_error", "steps"),
        *("total_steps", "steps_per_s", "progress_per_s", "samples_per_s", "step_time_p50_s"),
        *(
            "step_time_p95_s",
            "latency_p50_s",
            "latency_p95_s",
            "latency_p99_s",
            "batch_size",
            "data_s",
            "update_s",
            "peak_rss_mb",
            "first_count",
            "last_count",
            "first_step_s",
        ),
        "peak_device_mb",
        "joules_per_step",
        "working",
    }
)
TEXTS = frozenset(
    {
        *("run", "role", "outcome", "reason", "window_reason", "steps_by", "step_unit", "samples_by"),
        *("step_time_by", "framework", "probe_reason", "resumed", "cached", "working_reason"),
        *("awaited_reason", "phases_reason"),
    }
)
OBJECTS = frozenset(
    {
        *("failure", "window", "batch_flags", "logged", "loss", "missing", "conditions", "printed"),
        *("restated", "occasions", "loaded", "probe", "sections", "stacks", "trace", "latency", "step_flags"),
        *("attached", "program", "awaited"),
    }
)
_TEXTS = ("why", "training", "loss")
_FIGURES = ("before", "after", "throughput_before", "throughput_after", "metric_before", "metric_after")


def plain(value: Any) -> bool:
    """Tell whether every number is finite and not absurdly large, and nothing nests too deep."""
    level = [value]
    for _ in range(_DEEPEST + 1):
        below: list[Any] = []
        for each in level:
            kind = type(each)
            if kind is dict:
                below += each.values()
            elif kind is list:
                below += each
            elif kind is not str and each is not None and not _moderate(each):
                return False
        if not below:
            return True
        level = below
    return not any(isinstance(each, (dict, list)) or not _moderate(each) for each in level)


def _moderate(value: Any) -> bool:
    # No comparison with a NaN holds.
    return not isinstance(value, (int, float)) or -_LARGEST < value < _LARGEST


_POINT = frozenset({"run", "part", "place", "value", "level", "low", "high"})


def verdict(data: Any) -> bool:
    """Tell whether what reads a verdict finds in it what it expects."""
    return (
        isinstance(data, dict)
        and plain(data)
        and type(data.get("hypothesis")) is int
        and data.get("status") in _STATUSES
        and data.keys() >= _NEEDED
        and all(isinstance(data.get(key), str) for key in _TEXTS)
        and all(map(_number, map(data.get, _FIGURES)))
        and all(_estimate(data.get(key)) for key in ("delta", "throughput_ratio"))
        and all(_text(data.get(key)) for key in ("change_digest", "claim", "throughput_unit"))
        and isinstance(data.get("metric", ""), str)
        and isinstance(data.get("terms"), (dict, type(None)))
        and _course(data.get("course", []))
        and _rows(data.get("gates"), "name", "result", "value", "threshold")
        and _rows(data.get("runs"), "name", "part")
        and all(isinstance(r.get("fresh"), bool) and _RUN.match(r["name"]) for r in data["runs"])
        and all(_text(gate.get("note", 0)) for gate in data["gates"])
        and _texts(data.get("notes"))
        and _texts(data.get("remarks", []))
    )


def _course(found: Any) -> bool:
    """Tell whether these are the points of a course, with these keys alone."""
    return _rows(found, "run", "part") and all(
        p.keys() == _POINT and all(type(p[key]) in (int, float) for key in _POINT - {"run", "part"})
        for p in found
    )


def run(data: Any) -> bool:
    """Tell whether what decides by a run's record finds in it what it expects."""
    if not isinstance(data, dict) or not plain(data):
        return False
    devices, identity = data.get("devices", []), data.get("identity", {})
    return (
        all(map(_number, (data.get("duration_s"), data.get("cpu_quota"))))
        and _texts(data.get("rewritten") or [])
        and type(data.get("hypothesis")) in (int, type(None))
        and all(map(_text, map(data.get, _RUN_TEXTS)))
        and all(isinstance(data.get(key), (dict, type(None))) for key in _RUN_OBJECTS)
        and isinstance(identity, dict)
        and all(isinstance(value, str) for value in identity.values())
        and _rows(devices, "uuid", "name")
        and all(_number(d.get("memory_total_mb")) for d in devices)
    )


_SPAN = ("start_s", "end_s", "seconds", "stretches")
_NO_WINDOW = {"start_s": 0.0, "end_s": 0.0}


def evidence(data: Any) -> bool:
    """Tell whether what reads a run's evidence finds in it what it expects."""
    return (
        isinstance(data, dict)
        and plain({key: value for key, value in data.items() if key != "loss"})
        and all(map(_number, map(data.get, NUMBERS)))
        and all(map(_text, map(data.get, TEXTS)))
        and all(isinstance(data.get(key), (dict, type(None))) for key in OBJECTS)
        and _rows(data.get("devices", []), "uuid")
        and isinstance(data.get("spark", []), list)
        and _rows(data.get("work", []), "unit", "source")
        and all(_number(each.get("per_s")) for each in data.get("work", []))
        and _texts(data.get("work_notes", []))
        and _rows(data.get("learning", []), "metric", "name", "source")
        and _texts(data.get("learning_notes", []))
        and _rows(data.get("ranks", []))
        and _rows(data.get("phases", []), "name", "by")
        and all(
            evidence(one) and None not in map(one.get, _SPAN) and all(map(_number, map(one.get, _SPAN)))
            for one in data.get("phases", [])
        )
        and _number((data.get("loss") or {}).get("points"))
        and _text((data.get("loss") or {}).get("advice"))
        and _figures((data.get("conditions") or {}).get("throttle"))
        and all(type((data.get("window") or _NO_WINDOW).get(key)) in (int, float) for key in _NO_WINDOW)
        and _watched((data.get("stacks") or {}).get("training"))
    )


def _watched(value: Any) -> bool:
    """Tell whether these are a thread's stacks, as far as they are added up; None is."""
    if value is None:
        return True
    if not isinstance(value, dict) or not _number(value.get("seconds")):
        return False
    rows = value.get("stacks", [])
    return isinstance(rows, list) and all(
        isinstance(row, list) and len(row) == _STACK and isinstance(row[0], str) and _both(row[3:])
        for row in rows
    )


def _both(values: list[Any]) -> bool:
    return all(value is not None and _number(value) for value in values)


def _number(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _figures(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and _both(list(value.values())))


def _estimate(value: Any) -> bool:
    if value is None:
        return True
    if not isinstance(value, Mapping) or value.get("value") is None:
        return False
    return all(_number(value.get(key)) for key in ("value", "low", "high"))


def _text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _rows(value: Any, *texts: str) -> bool:
    """Tell whether this is a list of objects with these texts."""
    return isinstance(value, list) and all(
        isinstance(each, dict) and all(isinstance(each.get(key), str) for key in texts) for each in value
    )
