"""The line by which a program says that it goes on where an earlier run ended."""

from __future__ import annotations

import re

_LONGEST = 300
_STATE = r"(?:snapshot|checkpoint(?!ing|er)|ckpt|last\.pt\b|(?:training|trainer|optimizer|saved) state)"
_COUNT = r"\b(?:epoch|step|iter(?:ation)?|update)s?\b"
# What a run may go on from: a state, a count of what is behind it, a file or a folder.
_RESUMES = re.compile(
    rf"\bresum(?:ed|e|es|ing)\b(?:.{{0,80}}(?:\btraining\b|{_STATE}|{_COUNT})|.{{0,40}}\bfrom\b[\W_]*\w)"
    rf"|\bcontinuing\b.{{0,80}}(?:{_STATE}|{_COUNT}\D{{0,12}}\d)"
    rf"|\bstart(?:ing|ed|s)?\b.{{0,30}}\b(?:from|at)\b.{{0,10}}{_COUNT}\D{{0,12}}\d",
    re.I,
)
_LOADS = re.compile(
    rf"\b(?:load(?:ed|ing|s)?|restor(?:ed|ing)|found|reading)\b.{{0,60}}{_STATE}"
    rf"|{_STATE}.{{0,60}}\b(?:loaded|restored|found)\b"
    rf"|\brestor(?:ed|ing)\b.{{0,80}}{_COUNT}\D{{0,12}}\d",
    re.I,
)
# A setting is no act; nor is what is looked for, or is not there.
_NOT = re.compile(
    r"\b(?:no|not|none|null|never|without|cannot|can't|unable|false|disabled|skipp\w*|if|shards?|from scratch"
    r"|look(?:ing|s)? for|search\w*|found 0|would|could|will be saved)\b|^\W*[\w.]*resume\w*['\"]?\s?[:=]",
    re.I,
)
# The beginning is where every run begins: nothing is behind it.
_FROM_ZERO = re.compile(r"\b(?:epoch|step|iter(?:ation)?|update|at|from)s?\W{0,3}0\b(?![.\d])", re.I)
# Weights that every run of a training begins with, those of other models, and the best ones at the end.
_OTHERS = re.compile(
    r"\b(?:pre-?train\w*|backbone|teacher|encoder|tokenizer|vae|data(?:set)?|hub|base|init|initial|best)\b"
    r"|\bfor (?:eval\w*|test\w*|inference|sampling|prediction)\b|\bconfig(?:uration)?\b"
    r"|https?://|torchvision://|[./]cache\b",
    re.I,
)
_WORDS = re.compile(rb"resum|load|restor|found|reading|continuing|start", re.I)


def resumes(text: bytes, trained: bool = False) -> str | None:
    """Return the line, at most 300 characters, if it says so; None for any other.

    What is loaded once the program has `trained` is not what it began with.
    """
    if not _WORDS.search(text):
        return None
    line = text[: 4 * _LONGEST].decode("utf-8", "replace").strip()[:_LONGEST]
    if _NOT.search(line) or _FROM_ZERO.search(line):
        return None
    loads = not trained and _LOADS.search(line) and not _OTHERS.search(line)
    return line if loads or _RESUMES.search(line) else None
