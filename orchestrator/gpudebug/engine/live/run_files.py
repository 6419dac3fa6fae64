"""The files of one run as they grow: its readings, what its processes report, the end of its log."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gpudebug.core.inside.probe.spans import Lately
from gpudebug.core.samples.live import DeviceNow, Latest
from gpudebug.core.samples.table import name_on
from gpudebug.core.text import shown
from gpudebug.core.trainlog.reader import LogReader
from gpudebug.core.words import Trend
from gpudebug.edges import launcher, store
from gpudebug.engine.campaign.files import stored_record
from gpudebug.engine.live.tails import Growing
from gpudebug.engine.live.underway import Mark

_SAMPLES = 512 << 10
_PROBE = 256 << 10
_LOG = 32 << 10
ROWS = 200
"""Of the log's end so many lines are kept, …"""
LONGEST_ROW = 400
"""… each cut to so many characters."""
FACTS_EVERY_S = 5.0
FEW = 10
"""Fewer printed losses show no trend yet."""
_KEY_BEGINS, _KEY_ENDS = "-----BEGIN ", "-----END "


@dataclass(frozen=True)
class LogFacts:
    """What the log says as a whole, an unfinished line included; `losses` are at most 100, in order."""

    steps: int | None = None
    step_unit: str | None = None
    loss_trend: str | None = None
    losses: tuple[float, ...] = ()
    data_share: float | None = None


class FollowedRun:
    """One run folder, looked at again and again. A file that is not there, or is removed, has nothing new."""

    def __init__(self, folder: store.RunFolder) -> None:
        self.folder = folder
        self.latest = Latest()
        self.lately = Lately()
        self.record: dict[str, Any] = {}
        self.log_rows: tuple[str, ...] = ()
        self.samples = Growing(folder.samples, _SAMPLES)
        self._beside: dict[Path, tuple[Growing, Latest]] = {}
        self.log = Growing(folder.log, _LOG)
        # A run of 0.1.0 had no folder for its records.
        place = folder.records if folder.records.is_dir() else folder.path
        self._probe = Growing(place / launcher.PROBE, _PROBE)
        self._record = Growing(folder.path / "run.json", 1)
        self._read_of: tuple[object, object] | None = None
        self._log_end = b""
        self._moved: tuple[int | None, float | None] | None = None
        self._facts = LogFacts()
        self._facts_of: int | None = None
        self._facts_due = 0.0

    @property
    def devices(self) -> list[dict[str, Any]]:
        """Those that run.json names."""
        found = self.record.get("devices")
        return [d for d in found if isinstance(d, dict) and "uuid" in d] if isinstance(found, list) else []

    @property
    def readings(self) -> list[DeviceNow]:
        """The newest readings of each device, on whichever node it is."""
        nodes = {d["uuid"]: d.get("node") for d in self.devices}
        found = [
            now
            for latest in (self.latest, *(one for _, one in self._beside.values()))
            for now in latest.devices
        ]
        return [replace(now, node=nodes.get(now.uuid)) for now in found]

    def _look_beside(self) -> None:
        """Read what is new of the samples of other nodes."""
        names = {str(d["node"]) for d in self.devices if d.get("node")}
        for node in sorted(name for name in names if "/" not in name):
            path = self.folder.path / name_on(node, self.folder.samples.name)
            growing, latest = self._beside.setdefault(path, (Growing(path, _SAMPLES), Latest()))
            data, torn = growing.news()
            latest.feed(data, torn=torn)

    def look(self, elapsed: float | None) -> None:
        """Read what is new. `elapsed` is when that is, in seconds since launch."""
        self._record.news()
        if self._read_of != (self._record.size, self._record.changed):
            self._read_of = (self._record.size, self._record.changed)
            self.record = stored_record(self.folder, "run.json")
        data, torn = self.samples.news()
        self.latest.feed(data, torn=torn)
        self._look_beside()
        data, torn = self._probe.news()
        self.lately.feed(data, torn=torn)
        if self._moved is None:
            # When it came to the steps that the first look finds is not known.
            self._moved = (self.lately.steps, None)
        elif self.lately.steps != self._moved[0]:
            self._moved = (self.lately.steps, elapsed)
        data, torn = self.log.news()
        if data or torn:
            self._log_end = _end(self._log_end, data, torn)
            self.log_rows = self._rows()

    def quiet(self, marks: Sequence[Mark], elapsed: float | None) -> float | None:
        """Seconds since the last step, as the log's lines or the processes report; None if none do."""
        inside = self._moved[1] if self._moved else None
        known = [at for at in (marks[-1][0] if marks else None, inside) if at is not None]
        return None if elapsed is None or not known else max(0.0, elapsed - max(known))

    def facts(self, reader: LogReader | None, *, at_once: bool = False) -> LogFacts:
        """Return what its log says by now; not `at_once` only every few seconds, as it takes a while."""
        due = self._facts_of != self.log.size and (at_once or time.monotonic() >= self._facts_due)
        if reader is not None and due:
            self._facts, self._facts_of = _facts(reader), self.log.size
            self._facts_due = time.monotonic() + FACTS_EVERY_S
        return self._facts

    def _rows(self) -> tuple[str, ...]:
        rows = shown.rows(_outside_keys(self._log_end.decode("utf-8", "replace")))
        clean = self.folder.scrub("\n".join(rows)).split("\n")
        return tuple(row[:LONGEST_ROW] for row in clean[-ROWS:] if row)


def _end(before: bytes, data: bytes, torn: bool) -> bytes:
    """Return the end of a log, from the beginning of a line: half a secret would not be known for one."""
    whole = data if torn else before + data
    if not torn and len(whole) <= _LOG:
        return whole
    end = whole[-_LOG:]
    begin = min((at for mark in (b"\n", b"\r") if (at := end.find(mark)) >= 0), default=end.find(b" "))
    return end[begin + 1 :] if begin >= 0 else b""


def _outside_keys(text: str) -> str:
    """Without the rest of a private key whose beginning is not in the text."""
    end = text.find(_KEY_ENDS)
    if end < 0 or 0 <= text.find(_KEY_BEGINS) < end:
        return text
    return text[end:].partition("\n")[2]


def _facts(reader: LogReader) -> LogFacts:
    summary = reader.summary()
    values = [p.value for p in summary.loss if math.isfinite(p.value)]
    every = max(1, math.ceil(len(values) / 100))
    return LogFacts(
        steps=summary.steps,
        step_unit=summary.step_unit,
        loss_trend=summary.trend.value if summary.points >= FEW or summary.trend is Trend.NAN else None,
        losses=tuple(values[::-1][::every][::-1]),
        data_share=_share(summary.data_s, summary.update_s),
    )


def _share(data_s: float | None, update_s: float | None) -> float | None:
    if data_s is None or update_s is None or data_s + update_s <= 0:
        return None
    return data_s / (data_s + update_s)
