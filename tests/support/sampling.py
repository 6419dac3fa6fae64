"""Drives the sampler as the warden does: a real process, its orders and answers, the files it leaves."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpudebug.edges import sampler


class SamplerProcess:
    """One sampler; end it with `stop`, or use it as a context, which kills what is left."""

    def __init__(
        self, folder: Path, device: dict[str, Any], env: Mapping[str, str] | None = None, **order: Any
    ):
        self.csv = folder / "samples.csv"
        self._said: list[dict[str, Any]] = []
        self.t0 = 0.0
        self.process = subprocess.Popen(
            sampler.command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(env if env is not None else os.environ),
            cwd=folder,
        )
        self.say(
            {
                "device": device,
                "csv": str(self.csv),
                "log": None,
                "interval": 0.1,
                **order,
            }
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.answer: dict[str, Any] = json.loads(line) if line else {}
        self._said += [self.answer]

    def __enter__(self) -> SamplerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.said()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):  # It may be gone with something left unread.
                pipe.close()

    def say(self, value: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(value).encode() + b"\n")
        self.process.stdin.flush()

    def launch(self, job_pid: int | None = None, t0: float | None = None) -> None:
        self.t0 = time.monotonic() if t0 is None else t0
        self.say({"t0": self.t0, "job_pid": job_pid})

    def stop(self, timeout: float = 20) -> int:
        """Close its standard input and wait; returns the exit status."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(timeout)

    def wait(self, timeout: float = 20) -> int:
        return self.process.wait(timeout)

    def wait_for_rows(self, count: int, timeout: float = 20) -> None:
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            if self.csv.exists() and self.csv.read_bytes().count(b"\n") > count:
                return
            time.sleep(0.01)
        raise AssertionError(f"fewer than {count} rows after {timeout} s")

    def rows(self) -> list[dict[str, str]]:
        return read_rows(self.csv)

    def said(self) -> list[dict[str, Any]]:
        """All that it said, once it has ended."""
        assert self.process.stdout is not None
        if not self.process.stdout.closed and self.process.poll() is not None:
            self._said += [json.loads(line) for line in self.process.stdout]
        return self._said

    def notes(self) -> dict[str, Any]:
        """What becomes sampler.json, as it said it last."""
        return [dict(message["notes"]) for message in self.said() if "notes" in message][-1]

    def counted(self) -> dict[str, Any]:
        """Length and digest of samples.csv, as it said them last."""
        return [dict(message["counted"]) for message in self.said() if "counted" in message][-1]


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows by column; fails where one has not as many cells as the header."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file, restkey="too many", restval="missing"))
    assert all("too many" not in row and "missing" not in row.values() for row in rows)
    return rows


def numbers(rows: list[dict[str, str]], column: str) -> list[float]:
    """The known values of a column."""
    return [float(row[column]) for row in rows if row[column]]


def mean_util(rows: list[dict[str, str]], start: float = 0.0) -> float:
    """Time-weighted mean of `gpu_util` over new samples from `start` s on."""
    total = weight = 0.0
    before = start
    for row in rows:
        now = float(row["elapsed"])
        if now <= start:
            continue
        if row["new_samples"] not in {"", "0"}:
            total += float(row["gpu_util"]) * (now - before)
            weight += now - before
        before = now
    return total / weight
