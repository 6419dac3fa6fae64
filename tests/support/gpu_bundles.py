"""The bundle of `doctor --gpu`, read back: what a table of checks can be derived from again."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

from gpudebug.core.hardware.recording import Gpu, GpuRecording, Machine
from gpudebug.core.hardware.table import checks_of
from gpudebug.engine.tools.gpu_doctor import FILES, RUN, RunTexts


def parsed_machine(text: str) -> Machine:
    """Parse what `written_machine` wrote."""
    read = json.loads(text)
    gpus = tuple(Gpu(**gpu) for gpu in read["gpus"])
    return Machine(gpus, read["cuda"], tuple(read["cuda_uuids"]), read["outcome"], read["reason"])


def members(path: Path) -> dict[str, str]:
    """The text of each file."""
    with tarfile.open(path) as archive:
        return {m.name: file.read().decode() for m in archive if (file := archive.extractfile(m))}


def stored_and_derived(path: Path) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Name and result of each check: as it is in the bundle, and derived again from what was recorded."""
    checks = json.loads(members(path)["gpudebug-gpu/checks.json"])
    again = [(check.name, check.result) for check in checks_of(*read_bundle(path))]
    # What was run after the loads is not in the recording.
    return [(c["name"], c["result"]) for c in checks if c["name"] not in ("probe", "campaign")], again


def read_bundle(path: Path) -> tuple[Machine, GpuRecording]:
    files = members(path)
    recorded = RunTexts(*(files[f"gpudebug-gpu/{RUN}/{name}"] for name in FILES))
    return parsed_machine(files["gpudebug-gpu/machine.json"]), recorded.parsed()
