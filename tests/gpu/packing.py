"""What a contact recorded, packed without names of hosts, persons and cards, and without paths."""

from __future__ import annotations

import gzip
import os
import platform
import re
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpudebug.core.redaction.hosts import NAME, host_names, without_hosts

_HOST = re.compile(r'("host_name": ")[^"]*')
_UUID = re.compile(r"(?i)\b(GPU|MIG)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


def cleaned(text: str, places: Mapping[str, str]) -> str:
    text = without_hosts(_placed(text, places), host_names(os.environ, (platform.node(), Path.home().name)))
    return _UUID.sub(r"\1-00000000-0000-4000-8000-000000000000", text)


def _placed(text: str, places: Mapping[str, str]) -> str:
    """The text with `places` named instead of their paths, longer ones first."""
    for path in sorted(places, key=len, reverse=True):
        text = text.replace(path, places[path])
    return text


def keep(source: Path, target: Path, places: Mapping[str, str]) -> None:
    """Copy a recording, cleaned; of a trace, which is long, the name of its host and where it was made."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.name.endswith(".json.gz"):
        with gzip.open(source, "rt", encoding="utf-8", errors="replace") as file:
            text = _HOST.sub(rf"\1{NAME}", _placed(file.read(), places))
        target.write_bytes(gzip.compress(text.encode(), mtime=0))
    elif source.suffix == ".gz":
        shutil.copy(source, target)
    else:
        target.write_text(cleaned(source.read_text("utf-8", "replace"), places), "utf-8")


def pack(kept: Path, lines: Sequence[str], out: Path, places: Mapping[str, str]) -> None:
    """Write what is kept so far; all but the log of the commands is clean already."""
    (kept / "lines.txt").write_text("\n".join(lines) + "\n", "utf-8")
    for path in (kept / "log.txt", kept / "lines.txt"):
        if path.exists():
            keep(path, path, places)
    with tarfile.open(f"{out}.part", "w:gz") as archive:
        for path in sorted(p for p in kept.rglob("*") if p.is_file()):
            archive.add(path, str(path.relative_to(kept)), filter=_nobodys)
    Path(f"{out}.part").replace(out)


def _nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member
