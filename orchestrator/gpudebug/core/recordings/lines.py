"""Lines of a recording as its monitor wrote them: without colours, and without what passed them on."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from gpudebug.core.lazy import regex
from gpudebug.core.recordings.headless import looks_headerless
from gpudebug.core.recordings.tables import delimited, header_of

_ESCAPE = regex(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*\x07?|[()][0-9A-Za-z]|[=>78])|\x0f")
_PREFIXES = tuple(
    regex(form)
    for form in (
        # Of a container's log, of `kubectl logs --timestamps`, of a journal, of pdsh and clush, of srun -l.
        r"(?P<node>[\w.-]{1,80}) *\| ",
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,9}(?:Z|[+-]\d\d:\d\d) (?:std(?:out|err) [FP] )?",
        r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?P<node>\S{1,80}) [\w./-]{1,80}(?:\[\d+\])?: ",
        r"\s{0,4}(?P<node>[\w.-]{1,80}): ",
    )
)
_MOST_WITHOUT = 0.1
HOST = "hostname"
Clean = Callable[[str], str]


def uncoloured(line: str) -> str:
    return _ESCAPE.sub("", line) if "\x1b" in line or "\x0f" in line else line


def cleaner(lines: Sequence[str]) -> Clean:
    """Return what makes of a line of this file what its monitor wrote; `lines` are its first.

    A prefix that nearly all lines have is taken off if a table is behind it. If it names several hosts, their
    name becomes a column of the table.
    """
    shown = [line for line in map(uncoloured, lines) if line.strip()]
    for form in _PREFIXES:
        found = [(match, line[match.end() :]) for line in shown if (match := form.match(line))]
        if len(found) < (1 - _MOST_WITHOUT) * len(shown) or len(found) < 2:
            continue
        headers = frozenset(rest for _, rest in found[:9] if header_of(rest) is not None)
        if not headers and not looks_headerless([rest for _, rest in found]):
            continue
        nodes = {match.groupdict().get("node") for match, _ in found}
        if len(nodes) == 1:
            return lambda line: form.sub("", uncoloured(line), count=1)
        if all(len(delimited(",", header)) > 1 for header in headers) and headers:
            return lambda line: _with_host(line, form, headers)
    return uncoloured


def _with_host(line: str, form: re.Pattern[str], headers: frozenset[str]) -> str:
    plain = uncoloured(line)
    match = form.match(plain)
    if match is None:
        return plain
    rest = plain[match.end() :]
    return f"{HOST if rest in headers else match.group('node')}, {rest}"
