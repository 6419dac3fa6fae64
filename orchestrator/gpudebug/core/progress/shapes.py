"""The shapes of a claim: a verdict, points, a figure beside the word for what it measures, a key that claims.

All take a text as a reader sees it (`fold`), not as it is written.
"""

from __future__ import annotations

import html
import re
import unicodedata

from gpudebug.core.progress.canonical import unescaped
from gpudebug.core.progress.fields import earlier, run_names

# Letters of other alphabets that look like Latin ones, and the dashes.
_ALIKE = str.maketrans(
    "аеорсухіјѕԁһӏԛԝкмтАВЕКМНОРСТХУІЈЅԌοανιρκυΑΒΕΖΗΙΚΜΝΟΡΤΥΧıɡɑ−‐‑–—",
    "aeopcyxijsdhlqwkmtABEKMHOPCTXYIJSGoavipkuABEZHIKMNOPTYXiga-----",
)
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]{0,20}://\S+", re.IGNORECASE)
_MARKS = re.compile(r"[*`]+|~~|(?<!\w)_+|_+(?!\w)")

_UNSEEN = ("Cf", "Mn", "Cc")
_VERDICTS = r"VALIDATED|REJECTED|INCONCLUSIVE|INVALID"
_OUTCOMES = r"SUCCESS|FAILED|CONVERGING|PLATEAU|DIVERGING"
_VERDICT = re.compile(rf"\b(?:{_VERDICTS})\b")
_OUTCOME = re.compile(rf"\b(?:{_OUTCOMES})\b")
_MEASURED = re.compile(rf"\d|\b(?:{_VERDICTS}|{_OUTCOMES})\b")
_CHOICE = re.compile(rf"\W*(?:{_VERDICTS}|{_OUTCOMES}|UNTESTED)(?:\s*[|/]\s*(?:[A-Z]+|NaN))+\W*")

_NUMBER = r"[-+~<>≈]?\s?\d[\d.,]*(?:\s?(?:to|->|→|-)\s?[-+]?\d[\d.,]*)?"
_UNIT = r"(?:\s?%|\s?pp\b|\s?x\b|\s?×|\s?times\b|\s?percent|\s?points\b|-?\s?fold\b|\s?[a-z]+/s\b)"
_FIGURE = rf"{_NUMBER}{_UNIT}"
_WITH_UNIT = re.compile(rf"(?<![\w.,]){_FIGURE}", re.IGNORECASE)
_POINTS = re.compile(r"\d\s?(?:pp\b|percentage points\b)|[-+]\s?\d[\d.,]*\s?points\b", re.IGNORECASE)
# A gain, and no change of a setting: `+10%` may be a learning rate's.
_GAIN = re.compile(
    r"(?<!\w)[-+]\s?\d[\d.,]*\s?(?:%|percent)\s(?:faster|better|higher|more|util|throughput|speed)",
    re.IGNORECASE,
)
_METRIC = r"(?:gpu[ _]?)?util(?:i[sz]ation)?\b|auslastung\b|throughput\b|speed-?up\b|improvement\b|delta\b"
_JOINT = r"(?:[\W_]|\b(?:before|after|later|from|to|of|at|is|now|jetzt|reached|went|really)\b){0,8}?"
_BESIDE = re.compile(
    rf"\b(?:{_METRIC}){_JOINT}(?<![\w.,]){_FIGURE}|(?<![\w.,]){_FIGURE}\W{{0,3}}(?:of )?\b(?:{_METRIC})",
    re.IGNORECASE,
)
_LEADING = re.compile(
    rf"[\W_]*?(?:{_NUMBER}(?:\s?%(?!\s*of\b)|\s?percent(?! of\b)|\s?pp\b|\s?points\b|\s?[a-z]+/s\b"
    rf"|(?:\s?x\b|\s?×|\s?times\b)(?=\W*\Z|\W*(?:on|at|in|than|faster|more|better)\b))|(?<=\+)\d)",
    re.IGNORECASE,
)
_VALUE = re.compile(
    rf"[\W_]*?(?:(?:from|to|now|reached|went|really)\s+)*(?:{_FIGURE}|(?<=\+)\d)", re.IGNORECASE
)
_STATUS_SAID = re.compile(rf"\W*(?:{_VERDICTS}|SOLVED|PASSED|CONFIRMED|ACCEPTED)\b", re.IGNORECASE)
_RATE = re.compile(r"\d\s?[a-z]+/s\b", re.IGNORECASE)
_ACCEPTED = re.compile(r"[\[(]\s*accepted\b|\baccepted\s*[\])]", re.IGNORECASE)
_HOPED = re.compile(
    r"\b(?:expect\w*|estimat\w*|predict\w*|hop(?:e|ed|ing)|target|goal|want\w*|idea|prior|guess\w*|should|would)\b"
)
_HAPPENED = re.compile(r"\b(?:as expected|reached|measured|actual\w*|achieved|got|confirmed|verified)\b")
_NOT_YET = frozenset({"", "no", "none", "not yet", "n/a", "tbd", "pending", "open", "todo"})
_GAINED = re.compile(
    r"\b(?:speed|speedup|gain|util|auslastung|improve|improved|improvement|faster|delta|throughput|verdict"
    r"|outcome|validated|rejected|results?(?! (?:at|in|file|files|folder|link)\b)"
    r"|(?:measured|verified)(?! (?:by|on|at|with|in)\b))\b"
)
_ONLY_OURS = frozenset({"gpu util before", "gpu util after", "improvement", "status", "accepted"})


def fold(text: str) -> str:
    """Return a text as a reader sees it: entities, escapes, links, tags and emphasis resolved, look-alike
    letters and widths made Latin, what shows nothing taken out, addresses left out."""
    text = html.unescape(text) if "&" in text else text
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_ALIKE)
        text = "".join(c for c in text if c.isspace() or unicodedata.category(c) not in _UNSEEN)
    text = _ADDRESS.sub(" ", _TAG.sub("", _LINK.sub(r"\1", text)))
    return " ".join(_MARKS.sub("", unescaped(text)).split())


def measured(text: str) -> bool:
    """Tell whether a text says a number, a verdict or an outcome."""
    return _MEASURED.search(text) is not None


def figured(text: str) -> bool:
    """Tell whether a text says a figure with a unit of ours, or a verdict."""
    return _WITH_UNIT.search(text) is not None or _VERDICT.search(text) is not None


def claimed(text: str) -> bool:
    """Tell whether a text says a verdict, points, or a figure beside the word for what it measures.

    What is hoped for is no figure yet.
    """
    if _VERDICT.search(text):
        return _CHOICE.fullmatch(text) is None
    return not hoped(text) and bool(_POINTS.search(text) or _BESIDE.search(text))


def hoped(text: str) -> bool:
    lowered = text.lower()
    return _HOPED.search(lowered) is not None and _HAPPENED.search(lowered) is None


def begins(text: str) -> bool:
    """Tell whether a text begins with a figure that is no count and no share of something named."""
    return _LEADING.match(text) is not None


def titled(text: str) -> bool:
    """Tell whether a title says a verdict, a gain or an acceptance."""
    return any(shape.search(text) for shape in (_VERDICT, _POINTS, _GAIN, _ACCEPTED))


def choice(text: str) -> bool:
    """Tell whether a text is a template's unfilled choice, `SUCCESS / FAILED`."""
    return _CHOICE.fullmatch(text) is not None


def tokens(text: str) -> set[str]:
    """Return the verdicts and the figures with a unit in a text, but for the level of an interval."""
    figures = _WITH_UNIT.findall(text.replace("95% CI", "CI"))
    return {*_VERDICT.findall(text), *(figure.strip(" +") for figure in figures)}


def gained(key: str) -> bool:
    """Tell whether an own key is a word for a result."""
    return _GAINED.search(key) is not None


def beside_runs(text: str) -> bool:
    """Tell whether a line of runs says more than their names."""
    text = fold(text)
    for name in run_names(text):
        text = text.replace(name, "")
    return figured(text) or claimed(text)


def says(key: str, value: str) -> bool:
    """Tell whether the value of a key that is gpudebug's own claims something, in an entry."""
    if _CHOICE.fullmatch(value):
        return False
    if key in ("gpu util", "gpu util before", "gpu util after", "improvement", "metric"):
        return measured(value)
    if key == "throughput":
        return _RATE.search(value) is not None
    if key == "runs":
        return bool(run_names(value)) or figured(value)
    return starts(key, value) or figured(value) or (key in ("training", "loss") and _outcome(value))


def starts(key: str, value: str) -> bool:
    """Tell whether the value of such a key begins with what gpudebug would write there: for own sections."""
    if _CHOICE.fullmatch(value):
        return False
    if key.startswith("accepted"):
        return value.strip(" -.").lower() not in _NOT_YET
    if key == "status":
        return _STATUS_SAID.match(value) is not None
    if key in ("training", "loss"):
        return _OUTCOME.match(value) is not None
    if key in ("result", "notes", "metric") or earlier(key):
        return begins(value) or claimed(value)
    return _VALUE.match(value) is not None


def only_ours(key: str) -> bool:
    """Tell whether no program's log has this key."""
    return key in _ONLY_OURS or earlier(key) > 0


def _outcome(value: str) -> bool:
    return _OUTCOME.search(value) is not None
