"""What was measured of a zoo program, once: its baselines and the trial of each of its hypotheses."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "data" / "zoo"
FILES = ("run.json", "evidence.json", "verdict.json")


@dataclass
class Run:
    """A run folder's records, without what nobody reads again."""

    name: str
    files: dict[str, Any]


@dataclass
class Trial:
    """One hypothesis tested alone on the baseline: its entry afterwards, verdict and device time (s)."""

    entry: str
    status: str
    why: str
    device_s: float
    runs: list[Run] = field(default_factory=list)


@dataclass
class Recording:
    """Of one program. `baselines` is the progress file's section, `runs` the baselines'."""

    program: str
    baselines: str
    runs: list[Run]
    trials: dict[int, Trial] = field(default_factory=dict)


def path_of(program: str, folder: Path = FOLDER) -> Path:
    return folder / f"{program}.json.gz"


def write(recording: Recording, folder: Path = FOLDER, renamed: Mapping[str, str] | None = None) -> Path:
    """Byte for byte the same for the same recording. Paths of the machine are `renamed`, longest first."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(asdict(recording), sort_keys=True, separators=(",", ":"))
    for path, name in sorted((renamed or {}).items(), key=lambda pair: -len(pair[0])):
        text = text.replace(path, name)
    path = path_of(recording.program, folder)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    return path


def read(program: str, folder: Path = FOLDER) -> Recording | None:
    """None where the program was not measured."""
    path = path_of(program, folder)
    if not path.exists():
        return None
    told = json.loads(gzip.decompress(path.read_bytes()))
    trials = {
        int(number): Trial(**{**trial, "runs": [Run(**run) for run in trial["runs"]]})
        for number, trial in told["trials"].items()
    }
    return Recording(told["program"], told["baselines"], [Run(**run) for run in told["runs"]], trials)
