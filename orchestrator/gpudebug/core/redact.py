"""Secrets taken out of text before it is written: known token shapes, values of sensitive names, and the
values of this run's own sensitive variables and flags wherever they turn up.

Every pattern has a bounded or once-only repetition, so that the time is linear in the text whatever it
holds. The shapes are those that the services publish for secret scanning; names are judged by their last
part, so that `--max_tokens`, `TOKENIZERS_PARALLELISM` and `image_key` stay readable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import quote

from . import commandline

REDACTED = "[redacted]"
_SHORTEST_EXACT = 6

# Of each what stands in any text that it matches, and the pattern; what may stand before it is checked after.
# A pattern is compiled when a text holds one of its words: few do, and together they would cost `gpudebug
# status` a tenth of its time.
_SHAPES = (
    (
        ("-----BEGIN ",),
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z0-9+/=\s\\:,]|-(?=[A-Za-z0-9]))*"
        r"(?:-----END [A-Z0-9 ]{0,40}-----)?",
    ),
    (("hf_",), r"hf_(?<![A-Za-z0-9]hf_)[A-Za-z0-9]{20,}"),
    (
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        r"gh(?<![A-Za-z0-9]gh)[pousr]_[A-Za-z0-9]{20,}",
    ),
    (("github_pat_",), r"github_pat_[A-Za-z0-9_]{20,}"),
    (("glpat-",), r"glpat-[A-Za-z0-9_-]{15,}"),
    (("sk-",), r"sk-(?<![A-Za-z0-9_-]sk-)(?=[A-Za-z_-]{0,200}[0-9])[A-Za-z0-9_-]{16,}"),
    (("AKIA",), r"AKIA(?<![A-Za-z0-9]AKIA)[A-Z0-9]{16}"),
    (("ASIA",), r"ASIA(?<![A-Za-z0-9]ASIA)[A-Z0-9]{16}"),
    (("xox",), r"xox[abeprs]-[A-Za-z0-9-]{10,}"),
    (("AIza",), r"AIza[A-Za-z0-9_-]{35}"),
    (("ya29.",), r"ya29\.[A-Za-z0-9_-]{20,}"),
    (("nvapi-",), r"nvapi-[A-Za-z0-9_-]{30,}"),
    (("npm_",), r"npm_(?<![A-Za-z0-9]npm_)[A-Za-z0-9]{30,}"),
    (("pypi-",), r"pypi-(?<![A-Za-z0-9]pypi-)[A-Za-z0-9_-]{40,}"),
    (("eyJ",), r"eyJ(?<![A-Za-z0-9_-]eyJ)[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*"),
)
_BESIDE = (
    (("://",), r"(://[^\s/:@\"'<>]{0,256}:)(?!\[redacted\]@)[^\s/@\"'<>]{1,256}(?=@)"),
    (("earer ",), r"(earer )(?<=[Bb]earer )[A-Za-z0-9._~+/=-]{12,}"),
    (("wandb login",), r"(wandb login (?:--?[a-z-]{1,20} ){0,3})[A-Za-z0-9_-]{20,}"),
    (
        ("login",),
        r"(login(?<![a-z]login)\s{1,8}\S{1,256}\s{1,8}password\s{1,8})(?!\[redacted\])\S{1,256}",
    ),
)

_HARMLESS_KEYS = (
    *("image", "images", "text", "sort", "video", "label", "column", "dataset", "feature", "batch", "map"),
    *("cache", "primary", "foreign", "group", "target", "loss", "audio", "state", "action", "obs", "input"),
    *("observation", "output", "prompt", "answer", "question", "metric", "monitor", "score", "index", "data"),
    *("message", "messages", "template", "field", "frame", "camera", "reward", "query", "public", "mask"),
)
_HARMLESS_TOKENS = (
    *(
        "pad",
        "eos",
        "bos",
        "unk",
        "sep",
        "cls",
        "mask",
        "image",
        "video",
        "audio",
        "stop",
        "add",
        "per",
        "num",
    ),
    *("max", "min", "begin", "end", "start", "new", "next", "last", "first", "prompt", "special", "extra"),
    *("system", "user", "tool", "assistant", "target", "action", "state", "query", "text", "input", "output"),
)


def _after(word: str, *before: str) -> str:
    """`word` where one of `before` (fixed widths) stands in front of it."""
    return "(?:" + "|".join(rf"(?<={front}{word})" for front in before) + ")"


def _separated(word: str, harmless: Sequence[str]) -> str:
    """`word` behind a separator, unless a harmless qualifier stands before that."""
    widths = {len(front) for front in harmless}
    alike = ["|".join(front for front in harmless if len(front) == width) for width in sorted(widths)]
    return rf"(?<=[_.\-]{word})" + "".join(rf"(?<!(?:{fronts})[_.\-]{word})" for fronts in alike)


# The end of a sensitive name, in lower case. What may stand before the word is looked up behind it, so that
# every alternative begins with a letter that the engine can skip to.
_KEY = _separated("key", _HARMLESS_KEYS)
_TOKEN = _separated("token", _HARMLESS_TOKENS) + r"|(?<![a-z0-9_.\-]token)|(?<=--token)"
_NAME = (
    r"(?:"
    rf"key(?:{_KEY}|{_after('key', 'api', 'access', 'secret', 'private', 'auth', '[?&]')})|"
    rf"token(?:{_TOKEN}|{_after('token', 'auth', 'access', 'refresh', 'session', 'hf', 'hub', 'api')})|"
    r"secrets?|password|passwd|passphrase|"
    r"auth(?:(?<![a-z0-9]auth)|(?<=oauth))(?:orization|entication)?|"
    r"credentials?|cookie(?<![a-z0-9]cookie)|bearer(?<![a-z0-9]bearer)|"
    r"pwd(?<=[_.\-]pwd)|pat(?<=[_.\-]pat)"
    r")(?:[_-]?[0-9]{1,3})?"
)
_END = r"(?![^\s\"',;&)}\]])"
_CONSTANT_VALUE = rf"(?:true|false|none|null|yes|no|[0-9]{{1,3}}(?:\.[0-9]*)?){_END}"
_SCHEME = r"(?:(?:bearer|basic|token)[ \t])?"
_NO_SECRET = rf"(?!{_CONSTANT_VALUE}|{_SCHEME}[\\\"']{{0,2}}\[redacted\])"
_QUOTED = r"\\\"([^\"\\\n]+)|\"((?:[^\"\\\n]|\\.)+)|\\?'([^'\\\n]+)"
_VALUE = rf"{_NO_SECRET}(?:{_QUOTED}|([^\s\"',;&)}}\]\\][^\s\"',;&)}}\]]*))"
_ASSIGNED = rf"{_NAME}\\?[\"']?\]?[ \t]{{0,4}}(?:=>|[:=](?!>))[ \t]{{0,4}}{_SCHEME}{_VALUE}"
_FLAG = (
    r"-(?<![a-z0-9_\-]-)-?(?=[a-z][a-z0-9_.\-]{2,80}[ \t])"
    rf"(?:[a-z0-9_.\-]{{0,72}}?{_NAME}|key|pass)[ \t]{{1,4}}(?!-){_VALUE}"
)
_ENDS_SENSITIVE = rf"(?:{_NAME}|(?<![a-z0-9_.\-])key|(?<![a-z0-9_.\-])pass)\Z"
# Every sensitive name holds one of these.
_WORDS = (
    *("key", "token", "secret", "pass", "auth", "credential", "cookie", "bearer", "pwd"),
    *("_pat", ".pat", "-pat"),
)
_SECRET_WORDS = ("SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL")
_PLACES = ("_FILE", "_PATH", "_DIR", "_NAME", "_ARN", "_URL", "_SOCK", "_TYPE", "_LENGTH")
_PATH = r"(?:~|\.{1,2})?/[^\n]*\.[A-Za-z]{1,6}"
_CONSTANTS = frozenset({"true", "false", "none", "null", "yes", "no", "disabled", "enabled"})


def sensitive_flag(name: str) -> bool:
    """Whether the value of a flag or key of this name is a secret: `--wandb.api_key`, `hf_token`."""
    bare = commandline.bare_name(name).lower()
    return _holds(bare, _WORDS) and _regex(_ENDS_SENSITIVE).search(bare) is not None


def sensitive_variable(name: str) -> bool:
    """Whether a variable of this name holds a secret: as a flag does, or with SECRET or PASSWORD within."""
    if sensitive_flag(name):
        return True
    upper = name.upper()
    return _holds(upper, _SECRET_WORDS) and not upper.endswith(_PLACES)


class Redactor:
    """Takes secrets out of text. `env` and `argv` are those of the run: the values of their sensitive
    entries are removed wherever they occur, values shorter than 6 characters only beside their name."""

    def __init__(self, env: Mapping[str, str] | None = None, argv: Sequence[str] = ()) -> None:
        found = {value for name, value in (env or {}).items() if sensitive_variable(name)}
        found |= {option.value or "" for option in commandline.options(argv) if sensitive_flag(option.name)}
        self._exact = sorted({form for value in found for form in _forms(value)}, key=len, reverse=True)

    def redact(self, text: str) -> str:
        """The text with every secret replaced by `[redacted]`; at most 200 ms a MiB, whatever it holds."""
        for value in self._exact:
            text = text.replace(value, REDACTED)
        for words, shape in _SHAPES:
            if _holds(text, words):
                text = _regex(shape).sub(REDACTED, text)
        for words, shape in _BESIDE:
            if _holds(text, words):
                text = _regex(shape).sub(rf"\1{REDACTED}", text)
        for marks, named in (((":", "="), _ASSIGNED), (("-",), _FLAG)):
            if _holds(text, marks):
                text = _without_values(named, text)
        return text

    def redact_argv(self, argv: Sequence[str]) -> tuple[str, ...]:
        """The command with the same number of words, the secrets in them replaced."""
        words = [self.redact(word) for word in argv]
        for option in commandline.options(argv):
            if option.value is None or option.value.lower() in _CONSTANTS or not sensitive_flag(option.name):
                continue
            if option.style == "separate":
                words[option.start + 1 : option.stop] = [REDACTED] * (option.stop - option.start - 1)
            else:
                words[option.start] = f"{option.name}={REDACTED}"
        return tuple(words)


def scrubbed(value: Any, scrub: Callable[[str], str]) -> Any:
    """A JSON value with each of its texts passed through `scrub`; names of keys stay."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, dict):
        return {k: scrubbed(v, scrub) for k, v in value.items()}
    return [scrubbed(v, scrub) for v in value] if isinstance(value, (list, tuple)) else value


def _holds(text: str, words: Iterable[str]) -> bool:
    return any(word in text for word in words)


@cache
def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _without_values(named: str, text: str) -> str:
    """The text with the pattern's only matching group replaced wherever it matches in lower case."""
    # Lower case of ASCII alone: other letters can change their length.
    lower = text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
    if not _holds(lower, _WORDS):
        return text
    pieces: list[str] = []
    position = 0
    for match in _regex(named).finditer(lower):
        start, end = match.span(match.lastindex or 0)
        pieces += (text[position:start], REDACTED)
        position = end
    return "".join((*pieces, text[position:])) if pieces else text


def _forms(value: str) -> set[str]:
    """The value as it may be written: plain, inside JSON, inside a URL, and each long line of it."""
    stripped = value.strip()
    known = stripped.lower() in _CONSTANTS or _regex(_PATH).fullmatch(stripped)
    if len(stripped) < _SHORTEST_EXACT or known:
        return set()
    lines = [line.strip() for line in stripped.splitlines()]
    return {
        stripped,
        json.dumps(stripped)[1:-1],
        json.dumps(stripped, ensure_ascii=False)[1:-1],
        quote(stripped, safe=""),
        *(line for line in lines if len(line) >= 16),
    }
