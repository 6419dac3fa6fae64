"""Secrets taken out of JSON: of documents of others, and of gpudebug's own records.

What a record says in words of gpudebug's own (names, outcomes, roles, paths, digests, devices) is compared
later and read by programs: a secret that happens to be such a word must not change it. So the values of
sensitive variables are looked for in what came from outside alone; known shapes of tokens go everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gpudebug.core.lazy import regex
from gpudebug.core.redaction.shapes import OWNERS
from gpudebug.core.words import word_set

if TYPE_CHECKING:
    from gpudebug.core.redaction.redact import Redactor


LONGEST = 1 << 18
"""Characters held back at most: longer lines and keys are cut, at white space if there is some."""
_KEY = regex(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY")
_KEY_END = "-----END"
# A login and the password behind it may stand on lines of their own, this far apart at most.
_LOGIN = "login"
_LOGIN_REACH = 300


class RedactedStream:
    """Feed it text as it comes. It hands on, redacted, what no later text can make part of a secret."""

    def __init__(self, redact: Callable[[str], str], longest: int = LONGEST) -> None:
        self._redact = redact
        self._longest = longest
        self._held = ""

    def feed(self, text: str) -> str:
        """Return what can be handed on by now; it ends with a line's end."""
        self._held += text
        ready = self._take(safe_end(self._held))
        while len(self._held) > self._longest:
            ready += self._take(_forced_end(self._held, self._longest))
        return ready

    def finish(self) -> str:
        """Return the rest."""
        return self._take(len(self._held))

    def _take(self, end: int) -> str:
        text, self._held = self._held[:end], self._held[end:]
        return self._redact(text) if text else ""


def safe_end(text: str) -> int:
    """How much of `text` can be redacted without what follows: whole lines, no open key, no lone login."""
    end = text.rfind("\n") + 1
    for key in _KEY.finditer(text, 0, end):
        closed = text.find(_KEY_END, key.end(), end)
        if closed < 0:
            end = text.rfind("\n", 0, key.start()) + 1
            break
    login = text.find(_LOGIN, max(0, end - _LOGIN_REACH), end)
    return end if login < 0 else text.rfind("\n", 0, login) + 1


def _forced_end(text: str, longest: int) -> int:
    found = max(text.rfind(c, 0, longest) for c in "\n \t")
    return found + 1 if found >= 0 else longest


# Keys whose texts are gpudebug's own.
_OURS = word_set(
    "action status verdict outcome result training trend loss kind role code field metric figure "
    "direction unit rule source part group id step_unit throughput_unit throughput_source steps_by "
    "samples_by step_time_by category workload_kind campaign run runs baseline baselines state phase "
    "next_command made start end ended when claim session gpudebug clock gpu_util_text metric_text "
    "throughput_text target_text claimed improvement uuid driver device setting host interpreter cwd "
    "root worktree page sha256 evidence_sha256 commit tree digest change_digest checked_out"
)
# All that is below these is, too.
_OURS_WHOLE = frozenset({"identity", "packages", "written", "files", "imports", "loaded", "classes"})
# Elsewhere a program or a person chose them.
_OURS_IN = dict.fromkeys(("name", "value", "threshold"), ("", "devices", "gates", "runs", "checks"))
# Whatever their keys are called, the texts below these are of others.
_OUTSIDE = frozenset(
    {"env", "printed", "restated", "logged", "batch_flags", "patterns", "knobs", "variables"}
)


def scrubbed(
    value: Any, scrub: Callable[[str], str], name: str = "", above: frozenset[str] = frozenset()
) -> Any:
    """A document with each of its texts passed through `scrub`, and what is secret by its keys replaced.

    Names of keys stay; `name` is the key that leads to the value, `above` are those of secrets before it.
    A list may be a command, where a flag is before its value.
    """
    if isinstance(value, (dict, list, tuple)) and name and _secrets().sensitive_key(name):
        above |= {name}
    if isinstance(value, dict):
        owner = f"{name.rpartition('.')[2]}." if name.rpartition(".")[2].lower() in OWNERS else ""
        return {k: scrubbed(v, scrub, f"{owner}{k}", above) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        before = ["", *(v if isinstance(v, str) and v.startswith("-") else "" for v in value)]
        flags = [flag if flag and "=" not in flag else name for flag in before]
        return [scrubbed(v, scrub, flag, above) for v, flag in zip(value, flags, strict=False)]
    if not isinstance(value, str) and not _long_number(value):
        return value
    secret = any(_secrets().secret_pair(key, str(value)) for key in (name, *above) if key)
    return _secrets().REDACTED if secret else scrub(value) if isinstance(value, str) else value


@cache
def _secrets() -> ModuleType:
    """Return what knows secrets takes long to load, and is asked for each text."""
    from gpudebug.core.redaction import redact

    return redact


def _long_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 999


def scrubbed_record(value: Any, scrub: Callable[[str], str], key: str = "") -> Any:
    """Return a record or an answer of gpudebug's own: `scrub` sees only what came from outside."""
    if isinstance(value, dict):
        return {k: _below(k, v, scrub, key) for k, v in value.items()}
    return _below(key, value, scrub, "")


def _below(key: str, value: Any, scrub: Callable[[str], str], parent: str) -> Any:
    if not isinstance(value, (str, dict, list, tuple)) and not _long_number(value):
        return value
    last = key.rpartition(".")[2]
    if last in _OUTSIDE:
        return scrubbed(value, scrub, key)
    if last in _OURS_WHOLE:
        return _shapes_alone(value)
    if isinstance(value, dict):
        return scrubbed_record(value, scrub, key)
    if last in _OURS or parent in _OURS_IN.get(key, ()):
        scrub = _shapes().redact
    if isinstance(value, (list, tuple)):
        return [_below(key, v, scrub, parent) for v in value]
    return scrubbed(value, scrub, key)


def _shapes_alone(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _shapes_alone(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_shapes_alone(v) for v in value]
    return scrubbed(value, _shapes().redact)


@cache
def _shapes() -> Redactor:
    from gpudebug.core.redaction.redact import Redactor

    return Redactor()
