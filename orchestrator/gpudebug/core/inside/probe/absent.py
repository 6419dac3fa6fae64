"""Why no training process reported anything, as far as the command and the record show."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from gpudebug.core.inside.probe.processes import VERSION, ProbeRecord

NOBODY = "the command ran no PyTorch training step"
NEVER_ASKED = "the run was recorded without a probe"
SWITCHED_OFF = "`probe: false` in gpudebug.yaml"
REPLACED = "`PYTHONPATH=` in the command keeps the probe out: it replaces the probe's entry"
BY_SCRIPT = f"{NOBODY}; a script that resets PYTHONPATH, or starts `python -I`, keeps the probe out"
_SHELL = re.compile(r"(?:ba|da|k|z)?sh|.*\.sh|make|just")
_PYTHON = re.compile(r"python(?:\d(?:\.\d+)?)?t?")
# Options of Python that take the next word if nothing follows in their own.
_WITH_VALUE = "XWcm"


def reason(argv: Sequence[str], probed: bool | None, record: ProbeRecord | None) -> str:
    """In one clause. `probed` says whether the probe was put into the run; None: unknown."""
    if probed is None:
        return NEVER_ASKED
    if not probed:
        return SWITCHED_OFF
    if record is not None and record.other_version is not None:
        return f"probe.jsonl is of version {record.other_version}; this gpudebug reads version {VERSION}"
    if record is not None and record.off is not None:
        return f"the probe switched itself off: {record.off}"
    return _kept_out(argv) or (BY_SCRIPT if _by_script(argv) else NOBODY)


def _kept_out(argv: Sequence[str]) -> str | None:
    """Return what keeps sitecustomize, and the probe with it, out of the command's Python."""
    words = [word for text in argv for word in text.split()]
    if any(word.startswith("PYTHONPATH=") and "$" not in word for word in words):
        return REPLACED
    for index, word in enumerate(words):
        if _PYTHON.fullmatch(PurePosixPath(word).name):
            letters = _letters(words[index + 1 :])
            for letter, why in (("S", "does not run sitecustomize"), ("I", _IGNORES), ("E", _IGNORES)):
                if letter in letters:
                    return f"`{PurePosixPath(word).name} -{letter}` keeps the probe out: it {why}"
    return None


def _by_script(argv: Sequence[str]) -> bool:
    return any(_SHELL.fullmatch(PurePosixPath(word).name) for word in argv[:1])


_IGNORES = "ignores PYTHONPATH"


def _letters(words: Sequence[str]) -> str:
    """Return the options of Python itself among the words behind it: one letter each, up to its script."""
    found, skip = "", False
    for word in words:
        if skip:
            skip = False
        elif len(word) < 2 or word[0] != "-" or word.startswith("--"):
            return found
        else:
            for position, letter in enumerate(word[1:], 1):
                found += letter
                if letter in _WITH_VALUE:
                    skip = position == len(word) - 1
                    break
            if letter in "cm":
                return found
    return found
