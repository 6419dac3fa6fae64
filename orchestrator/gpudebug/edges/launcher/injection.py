"""What is put into a training's Python so that it tells which files it imported."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

RECORD = "loaded.jsonl"
"""In the folder that GPUDEBUG_RUN_DIR names: a line a process, as `core.loaded` reads it."""

_FOLDER = Path(__file__).resolve().parents[2] / "training" / "loaded"


def inject(
    env: Mapping[str, str], tree: Path, others: Sequence[Path], apart: Sequence[Path]
) -> dict[str, str]:
    """`env` with our folder in front of PYTHONPATH, and behind it what the user has there.

    `tree` is the tested one, `others` are the checkouts whose files would be another code's, `apart` folders
    in any of them that hold no code of theirs. A program that is no Python takes no notice.
    """
    # An empty PYTHONPATH is none; an empty entry in it would be the working folder.
    theirs = [env["PYTHONPATH"]] if env.get("PYTHONPATH") else []
    tested = os.path.realpath(tree)
    trees = [
        tested,
        *sorted({os.path.realpath(other) for other in others} - {tested}),
        *(f"-{folder}" for folder in sorted({os.path.realpath(folder) for folder in apart})),
    ]
    return {
        **env,
        "PYTHONPATH": os.pathsep.join([str(_FOLDER), *theirs]),
        "GPUDEBUG_TREES": ":".join(_escaped(entry) for entry in trees),
    }


def _escaped(entry: str) -> str:
    return entry.replace("%", "%25").replace(":", "%3A")
