"""What kind of file it is, from its first bytes, and what any kind answers."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpudebug.core.recordings.formats import (
    EVENTS,
    GZIP,
    SQLITE,
    SWANLAB,
    UNKNOWN,
    WANDB,
    binary_format,
    encoding_of,
    is_text,
    text_of,
)
from gpudebug.core.recordings.monitors import recognised
from gpudebug.core.samples.table import looks_like_samples
from gpudebug.core.trainlog.written_tables import records_in
from gpudebug.core.words import Word

if TYPE_CHECKING:
    from gpudebug.core.answers.analyze import OneFile, WholeRecording

HEAD = 64 << 10
KNOWN = "a training log, a samples CSV, a section report, a trace or a recording of another monitor"
# One JSON document over several lines, or a list of objects; JSON lines and `[0]` prefixes are logs.
_DOCUMENT = re.compile(
    r"\ufeff?\s*(\[\s*\{\s*\"|\{\s*\"[^\"]{1,80}\"\s*:\s*\[|\{\s*\n|\{\s*\"(traceEvents|schemaVersion|displayTimeUnit|sections)\""
    r"|\{\s*(?:\"timestamp\"\s*:\s*[^,{}\[\]]{1,80},\s*)?\"(?:summary|operations|total_operations)\"\s*:"
    r"|\{\s*\"format\"\s*:\s*\"gpudebug|\{\s*\"[^\n]{0,4000}\"gpudebug-sections\")"
)
_LOSSES = re.compile(r"\s*\{\s*\"[a-z_ ]{0,20}loss(?:es)?\"\s*:\s*\[\s*[-\d]")
"""Columns that are longer than what is looked at."""
_SECTIONS = re.compile(
    r"\"format\"\s*:\s*\"gpudebug|\"cat\"\s*:\s*\"section\"|\"operations\"\s*:\s*\{\s*(?:\}|\"[^\"]*\"\s*:\s*\{)"
)
_PIECE = 256
_BEGINNING = 64
_ASCII_SHARE = 0.2


class FileKind(Word):
    """What `analyze` reads, and JSON that may be a trace."""

    SAMPLES = "samples"
    SECTIONS = "sections"
    TRACE = "trace"
    LOG = "training_log"
    WANDB = "wandb"
    SWANLAB = "swanlab"
    EVENTS = "tensorboard"
    SQLITE = "sqlite"


@dataclass(frozen=True)
class AnalyzedFile:
    """What one file holds: its `answer`, and `more` that `--detailed` adds to it.

    `draw` makes the picture of `--charts`, PNG bytes, of the answer and each value of `more`. `together` is
    what all runs of its recording show, if it is one of several.
    """

    answer: OneFile
    draw: Callable[..., bytes]
    more: dict[str, Any] = field(default_factory=dict)
    together: WholeRecording | None = None

    def detailed(self) -> dict[str, object]:
        """Return all that is known of the file."""
        return {**self.answer.as_json(), **self.more}


def kind_of(head: bytes) -> tuple[FileKind, bool]:
    """Return the kind of a file that begins with `head`, and whether it is in gzip."""
    if head.startswith(SQLITE):
        return FileKind.SQLITE, False
    if head.startswith(WANDB):
        return FileKind.WANDB, False
    if head.startswith(SWANLAB):
        return FileKind.SWANLAB, False
    if binary_format(head) == EVENTS:
        return FileKind.EVENTS, False
    packed = head.startswith(GZIP)
    content = _unpacked(head) if packed else head
    text = text_of(content)
    if looks_like_samples(text) or recognised(text):
        return FileKind.SAMPLES, packed
    if packed and not text.strip():
        # Cut off or damaged at once: the reader of traces says so.
        return FileKind.TRACE, packed
    if not _DOCUMENT.match(text) or (not packed and is_records(text)):
        return FileKind.LOG, packed
    return (FileKind.SECTIONS if _SECTIONS.search(text) else FileKind.TRACE), packed


def is_records(text: str) -> bool:
    """Tell whether a document that begins so is one of a training's records."""
    if not _DOCUMENT.match(text):
        return False
    return bool(records_in(text[:HEAD])[0]) or _LOSSES.match(text) is not None


def is_document(head: bytes) -> bool:
    """Tell whether a whole small file is one JSON value, `{}` and `[]` too."""
    try:
        json.loads(head)
    except (ValueError, RecursionError):
        return False
    return True


def telling_head(head: bytes) -> bytes:
    """Return the first bytes that say if a file is a log, of a gzip file those inside.

    Nothing of text in UTF-16; of a file that begins as text but goes on as noise the beginning alone.
    """
    if head.startswith(GZIP):
        return _unpacked(head)
    encoding = encoding_of(head)
    if encoding is not None:
        text = head.decode(encoding, "replace")
        return b"" if sum(map(str.isascii, text)) > _ASCII_SHARE * len(text) else head
    return head[:_BEGINNING] if binary_format(head) == UNKNOWN and is_text(head[:_BEGINNING]) else head


def _unpacked(head: bytes) -> bytes:
    """As much of a gzip member as its first bytes give, up to what is damaged."""
    unpacking, found = zlib.decompressobj(wbits=31), b""
    for at in range(0, len(head), _PIECE):
        try:
            found += unpacking.decompress(head[at : at + _PIECE], HEAD)
        except zlib.error:
            break
        if len(found) >= HEAD:
            break
    return found
