"""What is put into a training's Python so that it reports on itself."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

RECORDS_DIR = "GPUDEBUG_RECORDS_DIR"
"""The variable that names the folder of the reports of a run's processes."""

RECORD = "loaded.jsonl"
"""In that folder: a line a process, as `core.inside.imported_files` reads it."""

PROBE = "probe.jsonl"
"""In the same folder: what each training process reported while it trained."""

SECTIONS = "sections.json"
"""In the same folder: the sections that the training's own code named."""

TORCH_PROFILE = "GPUDEBUG_TORCH_PROFILE"
"""The variable that says what PyTorch's profiler is to record in a training."""

LAYER = "GPUDEBUG_LAYER"
"""The variable that says which layer of a training is to be replaced from inside."""

NODE = "GPUDEBUG_NODE"
"""The launch's node and how many the job has, `n0/2`; `gpudebug_probe.record` reads it."""

KEEP = "GPUDEBUG_KEEP"
"""The variable that says which files of the user a training's Python does not overwrite."""

KEPT_NOTES = "wrote.txt"
"""In the folder of the records: the files that the run's processes wrote."""

STOPPED = "stopped.txt"
"""In the same folder, once a process was stopped before it overwrote one."""

_FOLDER = Path(__file__).resolve().parents[2] / "training" / "probe"


def inject(
    env: Mapping[str, str],
    tree: Path | None = None,
    others: Sequence[Path] = (),
    apart: Sequence[Path] = (),
) -> dict[str, str]:
    """`env` with our folder in front of PYTHONPATH, and behind it what the user has there.

    `tree` is the tested one, `others` are the checkouts whose files would be another code's, `apart` folders
    in any of them that hold no code of theirs; without a tree the loaded files are not recorded. What
    GPUDEBUG_PROBE (`0`: no probe) and GPUDEBUG_PROFILE already say stays. A program that is no Python takes
    no notice.
    """
    # An empty PYTHONPATH has no entry; an empty entry in it would be the working folder.
    theirs = [env["PYTHONPATH"]] if env.get("PYTHONPATH") else []
    return {
        "GPUDEBUG_PROBE": "1",
        "GPUDEBUG_PROFILE": SECTIONS,
        **env,
        "PYTHONPATH": os.pathsep.join([str(_FOLDER), *theirs]),
        **({"GPUDEBUG_TREES": _trees(tree, others, apart)} if tree else {}),
    }


def _trees(tree: Path, others: Sequence[Path], apart: Sequence[Path]) -> str:
    tested = os.path.realpath(tree)
    trees = [
        tested,
        *sorted({os.path.realpath(other) for other in others} - {tested}),
        *(f"-{folder}" for folder in sorted({os.path.realpath(folder) for folder in apart})),
    ]
    return ":".join(_escaped(entry) for entry in trees)


def _escaped(entry: str) -> str:
    return entry.replace("%", "%25").replace(":", "%3A")
