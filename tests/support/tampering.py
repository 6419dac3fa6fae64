"""What happens to evidence afterwards: slips, edits, and edits that fix up the manifest as well."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any


def substitute(path: Path, old: str, new: str) -> None:
    """Replace the first occurrence, which must be there."""
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{old!r} is not in {path}"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def rewrite(path: Path, **values: Any) -> None:
    """Set keys of a JSON object, written as gpudebug writes it."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}, indent=1) + "\n")


def reseal(run: Path) -> None:
    """Make the manifest agree with the files, as somebody would who knows it."""
    manifest = run / "manifest.json"
    files = json.loads(manifest.read_text())["files"]
    present = {name: run / name for name in files if (run / name).exists()}
    rewrite(manifest, files={n: hashlib.sha256(p.read_bytes()).hexdigest() for n, p in present.items()})
