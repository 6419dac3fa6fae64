"""The line by which a program says that it goes on where an earlier run ended."""

from __future__ import annotations

import re

_LONGEST = 300
_STATE = r"(?:snapshot|checkpoint|ckpt|training state|trainer state|optimizer state|saved state|last\.pt\b)"
_RESUMES = re.compile(
    r"\b(?:resum(?:ed|ing)|continuing|restor(?:ed|ing))\b.{0,80}\b(?:from|at|training|epoch|step)\b"
    r"|\bresume[sd]? (?:from|at|training from)\b",
    re.I,
)
_LOADS = re.compile(
    rf"\b(?:load(?:ed|ing|s)?|restor(?:ed|ing)|found|reading)\b.{{0,60}}{_STATE}"
    rf"|{_STATE}.{{0,60}}\b(?:loaded|restored|found)\b",
    re.I,
)
_NOT = re.compile(
    r"\b(?:no|not|none|never|without|cannot|can't|unable|false|disabled|skipp\w*|if|shards?|from scratch)\b",
    re.I,
)
# Weights that every run of a training begins with, and those of other models.
_OTHERS = re.compile(
    r"\b(?:pre-?train\w*|backbone|teacher|encoder|tokenizer|vae|data(?:set)?|hub)\b"
    r"|https?://|torchvision://|[./]cache\b",
    re.I,
)
_WORDS = re.compile(rb"resum|load|restor|found|reading|continuing", re.I)


def resumes(text: bytes) -> str | None:
    """The line, at most 300 characters, if it says so; None for any other."""
    if not _WORDS.search(text):
        return None
    line = text[: 4 * _LONGEST].decode("utf-8", "replace").strip()[:_LONGEST]
    if _NOT.search(line):
        return None
    return line if _RESUMES.search(line) or (_LOADS.search(line) and not _OTHERS.search(line)) else None
