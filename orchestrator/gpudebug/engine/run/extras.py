"""The configuration that a training saved beside its output, copied into its run folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpudebug.core.catalogue import frameworks
from gpudebug.core.redaction.records import scrubbed
from gpudebug.core.redaction.redact import Redactor
from gpudebug.core.trainlog.printed_settings import parsed, read_saved
from gpudebug.edges import store
from gpudebug.edges.walk import files_below
from gpudebug.engine.run import adapters

FOLDER = "configuration"
"""In the run folder, so that the evidence follows from that alone."""

_NAMES = frozenset(
    {
        *("config.json", "train_config.json", "training_args.json", "args.json", "hparams.json"),
        *("config.yaml", "hparams.yaml", "args.yaml", "config.yml", "args.yml"),
    }
)
_LARGEST = 200 << 10
_MOST = 4
_DEEPEST = 4
_MOST_FOLDERS = 200


def collect(run_dir: Path, argv: Sequence[str], cwd: Path, redactor: Redactor) -> None:
    """Copy what a run saved in its own folder, in `run_dir`, or in the output folder that `argv` names.

    Files older than its run.json are of another run.
    """
    since = (run_dir / "run.json").stat().st_mtime
    option = frameworks.output_flag(argv, adapters.known())
    # A job that put a link in place of its folder gets nothing read through it.
    own = [] if (run_dir / "job").is_symlink() else [run_dir / "job"]
    folders = [*own, *([cwd / option.value] if option and option.value else [])]
    found = [path for folder in dict.fromkeys(folders) for path in _configurations(folder, since)]
    for number, path in enumerate(found[:_MOST], 1):
        written = store.read_head(path, _LARGEST, follow=True).decode("utf-8", "replace")
        text = without_secrets(path.name, written, redactor)
        if text is None:
            continue
        (run_dir / FOLDER).mkdir(exist_ok=True)
        store.copy_into(run_dir / FOLDER / f"{number}-{path.name}", text.encode("utf-8"))


def without_secrets(name: str, text: str, redactor: Redactor) -> str | None:
    """The text of a configuration without secrets, by their keys too; None if nothing can be read of it.

    It stays as it was written if only its texts hold secrets, and is rewritten if its keys do.
    """
    for candidate in (redactor.redact(text), text):
        if (value := parsed(name, candidate)) is not None:
            clean = scrubbed(value, redactor.redact)
            return candidate if clean == value else json.dumps(clean, indent=1) + "\n"
    return None


def _configurations(folder: Path, since: float) -> Iterator[Path]:
    """Files of the usual names in it and a few folders below, the highest first."""
    below = files_below(
        folder, deepest=_DEEPEST, most_folders=_MOST_FOLDERS, enter=lambda path: path.name != FOLDER
    )
    return (path for path in below if path.name in _NAMES and _fresh(path, since))


def _fresh(path: Path, since: float) -> bool:
    status = path.stat()
    # File systems may keep whole seconds only.
    return path.is_file() and status.st_size <= _LARGEST and status.st_mtime >= int(since)


def read_collected(run_dir: Path) -> list[dict[str, str]]:
    """Return what each of the collected files says."""
    folder = run_dir / FOLDER
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    return [read_saved(f.name, store.read_head(f, 2 * _LARGEST).decode("utf-8", "replace")) for f in files]
