"""Secrets taken out of text before it is written: known token shapes, values of sensitive names, and the
values of this run's own sensitive variables and flags wherever they turn up.

The shapes are in `shapes`, the names in `names`. The time is linear in the text, whatever it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from urllib.parse import quote

from gpudebug.core.command import command_line
from gpudebug.core.redaction.shapes import BESIDE, END_OF_NAME, NAME, PLACES, SECRET_WORDS, WHOLE, WORDS
from gpudebug.core.words import Outcome, Result, Status, Trend

REDACTED = "[redacted]"
_SHORTEST_EXACT = 6
_SHORTEST_PART = 12
_SHORTEST_RANDOM = 16
_WORDS_BEFORE = (1, 3, 12)

_END = r"(?![^\s\"',;&)}\]])"
_CONSTANT_VALUE = rf"(?:true|false|none|null|yes|no|[0-9]{{1,3}}(?:\.[0-9]*(?:e[-+]?[0-9]{{1,3}})?)?){_END}"
_SCHEME = r"(?:(?:bearer|basic|token)[ \t])?"
_NO_SECRET = rf"(?!{_CONSTANT_VALUE}|{_SCHEME}[\\\"']{{0,4}}\[redacted\])"
_QUOTED = r"\\{1,3}\"([^\"\\\n]+)|\"((?:[^\"\\\n]|\\.)+)|\\?'([^'\\\n]+)"
_MORE = r"(?:,[^\s\"',;:=&)}\]]{4,512}(?![\w]*[:=]))*"
_VALUE = rf"{_NO_SECRET}(?:{_QUOTED}|([^\s\"',;&)}}\]\\\[({{][^\s\"',;&)}}\]]*{_MORE}))"
# A list or mapping as a whole, unless it holds nothing but numbers.
_LISTED = r"(?!\[redacted\])[\[({](?!\[redacted|[-+0-9eE., \t]{0,4000}[\])}])([^\])}\n]{1,4000})"
_ASSIGNED = (
    rf"{NAME}\\{{0,3}}[\"']?\]?[ \t]{{0,4}}[:=]={{0,8}}>{{0,4}}(?![>=])[ \t]{{0,4}}"
    rf"(?:{_LISTED}|{_SCHEME}{_VALUE})"
)
_FLAG = (
    r"-(?<![a-z0-9_\-]-)-?(?=[a-z][a-z0-9_.\-]{2,80}[ \t])"
    rf"(?:[a-z0-9_.\-]{{0,72}}?{NAME}|key|pass)[ \t]{{1,4}}(?!-){_VALUE}"
)
# Without a sign of assignment: the value alone in the next line, a tag, a table's cell, a Dockerfile.
_BELOW = (
    rf"{NAME}[\"']?:[ \t]{{0,4}}(?:[|>][+-]?)?[ \t]{{0,4}}\n[ \t]{{1,16}}{_NO_SECRET}"
    r"([^\s:]{6,512})(?=\s*\n|\Z)"
)
_ABOVE = rf"{NAME}[\"']?:[ \t]{{0,40}}\n(?=[ \t]|- )"
_ITEM_BELOW = (
    r"([ \t]*)(- +)?(?:[\w.-]{1,80}[\"']?:(?:[ \t]+|$))?"
    r"[\"']?(?:([^\s\"'#&*|>\[{][^\s\"']{5,512})[\"']?[ \t]*$)?"
)
_MOST_BELOW = 200
_TAGGED = rf"{NAME}>{_NO_SECRET}([^<>\s]{{1,512}})(?=</)"
_CELL = (
    rf"{NAME}[ \t]{{0,40}}[|│┃][ \t]{{0,40}}(?=[a-z_./+=-]{{0,200}}[0-9])"
    r"([^\s|│┃]{8,512})(?=[ \t]{0,200}[|│┃])"
)
_SET = rf"env[ \t]{{1,4}}[a-z0-9_]{{0,60}}?{NAME}[ \t]{{1,4}}{_NO_SECRET}([^\s=]{{6,512}})"
# Each with marks of which one is in any text that it matches.
_NAMED = (
    (("\n ", "\n\t"), _BELOW),
    (":=", _ASSIGNED),
    ("-", _FLAG),
    ("<", _TAGGED),
    ("|│┃", _CELL),
    (("nv ", "NV ", "nv\t", "NV\t"), _SET),
)
_MANY = r"(?<![a-z0-9])tokens\\?[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\[(]([^\])\n]{1,4000})"
_ITEM = r"[A-Za-z0-9_+/=.~-]{16,512}"
# Words beside which only what a machine made is a secret: `wandb.login(key='…')`, `('password', '…')`.
_LOOSE = (
    r"(?i:(?<![a-z0-9_.-])(?:key|login|password|passwd|passphrase|secret))(?:[ \t]is)?[^\w\[]{1,12}"
    r"([A-Za-z0-9_+=~-]{16,512})(?![\w./])"
)
_LOOSE_MARKS = ("key", "Key", "KEY", "ogin", "OGIN", "ass", "ASS", "ecret", "ECRET")
_URL = r"://[^\s/:@\"'<>\[]{0,128}:"
_URL_END = r"[\s\"'<>]"
_PORT = r"[0-9]{1,5}(?:[/?#]|\Z)"
_IN_URL = 256
_WORD = 16
# What shows nothing, colours among it, inside of which a secret is one all the same.
_HIDDEN = (
    r"(?:\x1b|\\u001b|\\x1b|\\033)\[[0-9;]{0,20}m|"
    r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u061c\u180e]|"
    r"\\u(?:00ad|200[b-f]|202[a-e]|206[0-9]|feff|061c|180e)"
)
# A word without which no text has the shape, the shape, and what is put in its place.
_SHAPES = (
    *((word, shape, REDACTED) for words, shape in WHOLE for word in words),
    *((word, shape, rf"\1{REDACTED}") for words, shape in BESIDE for word in words),
)
_PATH = r"(?:~|\.{1,2})?/[^\n]*\.[A-Za-z]{1,6}"
_CONSTANTS = frozenset({"true", "false", "none", "null", "yes", "no", "disabled", "enabled"})
_ROLES = ("baseline", "workload", "reference", "success", "gpudebug")
# What only looks random: identities and versions, which evidence names.
_IDENTITIES = ("COMMIT", "SHA", "HASH", "DIGEST", "REVISION", "VERSION", "DEVICES", "UUID", "_ID", "HOSTNAME")


# What names a column or counts: in lower case with dots, or a short number.
_PLAIN = r"[a-z_]+(?:\.[a-z_]+)+|[0-9]{1,6}"


def sensitive_flag(name: str) -> bool:
    """Tell whether the value of a flag or key of this name is a secret: `--wandb.api_key`, `hf_token`."""
    bare = command_line.bare_name(name).lower()
    return _holds(bare, WORDS) and _regex(END_OF_NAME).search(bare) is not None


def sensitive_variable(name: str) -> bool:
    """Whether a variable of this name holds a secret: as a flag does, or with SECRET or PASSWORD within."""
    if sensitive_flag(name):
        return True
    upper = name.upper()
    return _holds(upper, SECRET_WORDS) and not upper.endswith(PLACES)


def random_looking(text: str) -> bool:
    """Tell whether a word was made by a machine: long, and letters and digits change about in it."""
    if len(text) < _SHORTEST_RANDOM or not _regex(r"[A-Za-z0-9_+/=.~-]+").fullmatch(text):
        return False
    kinds = [1 if c.isdigit() else 2 if c.isupper() else 3 for c in text if c.isalnum()]
    changes = sum(1 for one, other in pairwise(kinds) if one != other)
    return changes >= 5 and kinds.count(1) >= 2 and len(set(text)) >= 8 and text.count("/") <= 2


def secret_pair(name: str, value: str) -> bool:
    """Whether a value under this key is a secret; `key`, `pass` and `tokens` alone mean other things too."""
    if not sensitive_key(name):
        return False
    stripped = value.strip()
    if not stripped or stripped.lower() in _CONSTANTS or REDACTED in value:
        return False
    bare = command_line.bare_name(name).lower()
    if bare in ("key", "tokens"):
        return random_looking(stripped)
    if bare == "pass":
        return len(stripped) > 5 and any(c.isdigit() for c in stripped)
    if bare in ("pwd", "pw") and stripped.startswith(("/", "~", ".")):
        return False
    return _regex(r"[0-9]{1,3}(?:\.[0-9]*)?").fullmatch(stripped) is None


def _secret_option(name: str, value: str) -> bool:
    """Whether the value of an option is a secret: no constant, and no name in dots under a plain `--key`."""
    if value.lower() in _CONSTANTS or not sensitive_flag(name):
        return False
    plain = command_line.bare_name(name).lower() in ("key", "pass", "cookie")
    return not (plain and _regex(_PLAIN).fullmatch(value))


@lru_cache(maxsize=4096)
def sensitive_key(name: str) -> bool:
    """Tell whether what a key of this name holds may be a secret: the values themselves decide then."""
    return name.lower() in ("tokens", "pwd", "pw") or sensitive_variable(name)


class Redactor:
    """Takes secrets out of text. `env` and `argv` are those of the run: the values of their sensitive
    entries are removed wherever they occur: as a whole word if they are short or one themselves, beside
    their name alone if they are shorter than 6 characters or a word that every record of ours has."""

    def __init__(self, env: Mapping[str, str] | None = None, argv: Sequence[str] = ()) -> None:
        found = {value for name, value in (env or {}).items() if sensitive_variable(name)}
        options = ((option.name, option.value or "") for option in command_line.options(argv))
        found |= {value for name, value in options if _secret_option(name, value)}
        for value in (env or {}).values():
            found |= {value[start:end] for start, end in _url_passwords(value)}
        forms = _longest_first(form for value in found for form in _forms(value))
        self._exact = [(form, _as_a_word(form)) for form in forms]
        self._env = env or {}
        self._random: list[str] | None = None

    def redact(self, text: str) -> str:
        """The text with every secret replaced by `[redacted]`; at most 200 ms a MiB, whatever it holds."""
        if (not text.isascii() or "\\" in text or "\x1b" in text) and (
            bare := _regex(_HIDDEN).sub("", text)
        ) != text:
            clean = self._redacted(bare)
            if clean != bare:
                return clean
        return self._redacted(text)

    def quoted(self, text: str) -> str:
        """Return the same of what a program, an agent or a person wrote: it may quote any variable that looks
        random, whatever its name."""
        if self._random is None:
            values = {v for k, v in self._env.items() if not k.upper().endswith(_IDENTITIES)}
            self._random = _longest_first(v for v in values if random_looking(v))
        for value in self._random:
            text = text.replace(value, REDACTED)
        return self.redact(text)

    def _redacted(self, text: str) -> str:
        for value, word in self._exact:
            if value in text:
                text = word.sub(REDACTED, text) if word else text.replace(value, REDACTED)
        # No shape is as short without a digit or a mark: most texts of a record are a word.
        if len(text) < _WORD and text.isalpha():
            return text
        for held, shape, put in _SHAPES:
            if held in text:
                text = _regex(shape).sub(put, text)
        if "://" in text and "@" in text:
            text = _without(text, _url_passwords(text))
        if "tokens" in text and _holds(text, "[("):
            text = _without_items(text)
        if _holds(text, _LOOSE_MARKS):
            text = _without(text, _beside_loose_words(text))
        if ":" in text and "\n" in text:
            text = _without_below(text)
        for marks, named in _NAMED:
            if _holds(text, marks):
                text = _without_values(named, text)
        return text

    def redact_argv(self, argv: Sequence[str]) -> tuple[str, ...]:
        """Return the command with the same number of words, the secrets in them replaced."""
        words = [self.redact(word) for word in argv]
        for option in command_line.options(argv):
            if option.value is None or not _secret_option(option.name, option.value):
                continue
            if option.style == "separate":
                words[option.start + 1 : option.stop] = [REDACTED] * (option.stop - option.start - 1)
            else:
                words[option.start] = f"{option.name}={REDACTED}"
        for before, after, at in _logins(argv):
            words[at] = f"{before}{REDACTED}" if after else words[at]
        return tuple(self._beside_others(words))

    def _beside_others(self, words: list[str]) -> list[str]:
        """Without what is a secret by the words before it: `HF_TOKEN: abc`."""
        whole = " ".join(words)
        if self.redact(whole) == whole:
            return words
        kept = list(words)
        for at, word in enumerate(words):
            windows = (words[max(at - before, 0) : at + 1] for before in _WORDS_BEFORE)
            if word and REDACTED not in word and any(word not in self.redact(" ".join(w)) for w in windows):
                kept[at] = REDACTED
        return kept


def _holds(text: str, words: Iterable[str]) -> bool:
    # Asked of each text that is shown: a generator costs twice as much.
    for word in words:  # noqa: SIM110
        if word in text:
            return True
    return False


@cache
def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _longest_first(values: Iterable[str]) -> list[str]:
    return sorted(set(values), key=len, reverse=True)


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return the text with these parts of it replaced."""
    pieces: list[str] = []
    position = 0
    for start, end in spans:
        pieces += (text[position:start], REDACTED)
        position = end
    return "".join((*pieces, text[position:])) if pieces else text


def _without_values(named: str, text: str) -> str:
    """Return the text with the pattern's only matching group replaced wherever it matches in lower case."""
    # Lower case of ASCII alone: other letters can change their length.
    lower = text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
    if not _holds(lower, WORDS):
        return text
    spans = (match.span(match.lastindex or 0) for match in _regex(named).finditer(lower))
    return _without(text, (span for span in spans if not _of_a_plain_key(lower, *span)))


def _without_below(text: str) -> str:
    """Without the values of a YAML list or mapping below a sensitive key, as far as it is indented."""
    lower = text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
    if not _holds(lower, WORDS):
        return text

    def values() -> Iterator[tuple[int, int]]:
        done = 0
        below = _regex(_ITEM_BELOW)
        for key in _regex(_ABOVE).finditer(lower):
            line = lower[lower.rfind("\n", 0, key.start()) + 1 : key.end()]
            indent = len(line) - len(line.lstrip(" "))
            at = max(key.end(), done)
            for _ in range(_MOST_BELOW):
                item = below.match(text, at, (text.find("\n", at) + 1 or len(text) + 1) - 1)
                if item is None or len(item[1]) < indent + (item[2] is None):
                    break
                if item[3] and secret_pair(line.strip("- \t\"':\n"), item[3]):
                    yield item.span(3)
                at = done = item.end() + 1

    return _without(text, values())


def _of_a_plain_key(lower: str, start: int, end: int) -> bool:
    """Whether this is the plain value of an option `--key` or `--pass`: the name of a column, a count."""
    before = _regex(r"(?<![\w.-])--?(?:key|pass)[= ]\Z").search(lower, max(start - 8, 0), start)
    return before is not None and _regex(_PLAIN).fullmatch(lower, start, end) is not None


def _without_items(text: str) -> str:
    """Without the items of a list of tokens that look random: those of a vocabulary do not."""

    def items() -> Iterator[tuple[int, int]]:
        for listed in _regex(_MANY).finditer(text):
            for item in _regex(_ITEM).finditer(text, *listed.span(1)):
                if random_looking(item[0]):
                    yield item.span()

    return _without(text, items())


def _beside_loose_words(text: str) -> Iterator[tuple[int, int]]:
    """Yield what looks random beside a loose word: not `key 'layer10_block2_head3'`, of a layer."""
    for found in _regex(_LOOSE).finditer(text):
        if random_looking(found[1]) and not ("_" in found[1] and found[1].islower()):
            yield found.span(1)


def _url_passwords(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the passwords of URLs stand, which may hold `/` and `@`: up to the last `@` of the URL."""
    if "://" not in text or "@" not in text:
        return
    at = position = 0
    for url in _regex(_URL).finditer(text):
        start = url.end()
        if start < position:
            continue
        if at < start:
            at = text.find("@", start)
        if at < 0:
            return
        if at > start + _IN_URL:
            continue
        stop = _regex(_URL_END).search(text, start, start + _IN_URL)
        end = text.rfind("@", start, stop.start() if stop else start + _IN_URL)
        if end > start and not text.startswith(REDACTED, start) and not _regex(_PORT).match(text, start, end):
            position = end
            yield start, end


def _logins(argv: Sequence[str]) -> Iterator[tuple[str, str, int]]:
    """Yield what of a command's words is a login: (what stays, what goes, its place)."""
    names = [word.rpartition("/")[2] for word in argv]
    for at, (name, word) in enumerate(zip(names, argv, strict=True)):
        before = names[:at]
        if at and argv[at - 1] in ("-u", "-U", "--user", "--proxy-user") and "curl" in before:
            user, colon, password = word.partition(":")
            if colon:
                yield user + colon, password, at
        elif "sshpass" in before[-2:] and name.startswith("-p") and len(word) > 2:
            yield "-p", word[2:], at
        elif "sshpass" in before[-2:] and at and argv[at - 1] == "-p":
            yield "", word, at


@cache
def _own_words() -> frozenset[str]:
    kinds = (Outcome, Trend, Status, Result)
    return frozenset({*_ROLES, *(str(word).lower() for kind in kinds for word in kind)})


def _as_a_word(value: str) -> re.Pattern[str] | None:
    """Return what finds a value that other words may hold by chance; None for one that none does."""
    if len(value) >= _SHORTEST_PART and _regex(r"[a-z_\W]+|[A-Z_\W]+|[0-9_\W]+").fullmatch(value) is None:
        return None
    before = r"(?:(?<!\w)|(?<=\\[nrt]))" if _regex(r"\w").match(value) else ""
    after = r"(?!\w)" if _regex(r"\w").match(value[-1]) else ""
    return re.compile(f"{before}{re.escape(value)}{after}")


def _forms(value: str) -> set[str]:
    """The value as it may be written: plain, inside JSON, inside a URL, and each long part and line of it."""
    stripped = value.strip()
    known = stripped.lower() in _CONSTANTS | _own_words() or _regex(_PATH).fullmatch(stripped)
    if len(stripped) < _SHORTEST_EXACT or known:
        return set()
    lines = [line.strip() for line in stripped.splitlines()]
    parts = [
        part for words in _regex(r"[,;\s]+").split(stripped) for part in (words, words.partition("=")[2])
    ]
    return {
        stripped,
        json.dumps(stripped)[1:-1],
        json.dumps(stripped, ensure_ascii=False)[1:-1],
        quote(stripped, safe=""),
        *(line for line in lines if len(line) >= _SHORTEST_RANDOM),
        *(part for part in parts if len(part) >= _SHORTEST_PART and any(c.isdigit() for c in part)),
    }
