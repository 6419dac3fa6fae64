"""Lines of a recording as its monitor wrote them: without colours, and without what passed them on."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from functools import partial

from gpudebug.core.lazy import regex
from gpudebug.core.recordings.headless import looks_headerless
from gpudebug.core.recordings.tables import delimited, header_of

_ESCAPE = regex(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*\x07?|[()][0-9A-Za-z]|[=>78])|\x0f|\0+")
_PREFIXES = tuple(
    regex(form)
    for form in (
        # Of a container's log; of `kubectl logs --timestamps`, a journal or a shell's own date; of `ts` or a
        # syslog; of pdsh, clush and `srun -l`.
        r"(?P<hostname>[\w.-]{1,80}) *\| ",
        r"\[?(?P<timestamp>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)(?:Z|[+-]\d\d:?\d\d)?\]?:? "
        r"(?:std(?:out|err) [FP] |(?P<hostname>\S{1,80}) [\w./-]{1,80}(?:\[\d+\])?: )?",
        r"[A-Z][a-z]{2} [ \d]\d (?P<timestamp>\d\d:\d\d:\d\d) "
        r"(?:(?P<hostname>\S{1,80}) [\w./-]{1,80}(?:\[\d+\])?: )?",
        r"\s{0,4}(?P<hostname>[\w.-]{1,80}): ",
    )
)
_MOST_WITHOUT = 0.1
_FIRST = 9
Clean = Callable[[str], str]


def uncoloured(line: str) -> str:
    """Return a line without colours, and without NUL bytes of a file that was cut while it was written."""
    return _ESCAPE.sub("", line) if "\x1b" in line or "\x0f" in line or "\0" in line else line


def cleaner(lines: Sequence[str]) -> Clean:
    """Return what makes of a line of this file what its monitor wrote; `lines` are its first.

    A prefix that nearly all lines have is taken off if a table is behind it. If it names several hosts, or
    the times that the table lacks, they become columns of the table.
    """
    shown = [line for line in map(uncoloured, lines) if line.strip()]
    for form in _PREFIXES:
        found = [(match, line[match.end() :]) for line in shown if (match := form.match(line))]
        if len(found) < 2 or len(shown) - len(found) > max(1, _MOST_WITHOUT * len(shown)):
            continue
        headers = {rest: header for _, rest in found[:_FIRST] if (header := header_of(rest)) is not None}
        if not headers and not looks_headerless([rest for _, rest in found]):
            continue
        hosts = {match.groupdict().get("hostname") for match, _ in found} - {None}
        timed = "timestamp" in form.groupindex and not any(one.timed for one in headers.values())
        added = [name for name, lacks in (("timestamp", timed), ("hostname", len(hosts) > 1)) if lacks]
        if not added or not headers:
            return partial(_bare, form)
        sign = ", " if all(len(delimited(",", header)) > 1 for header in headers) else " "
        return partial(_with_columns, form, headers.keys(), added, sign)
    return uncoloured


def _bare(form: re.Pattern[str], line: str) -> str:
    return form.sub("", uncoloured(line), count=1)


def _with_columns(
    form: re.Pattern[str], headers: Container[str], added: Sequence[str], sign: str, line: str
) -> str:
    plain = uncoloured(line)
    match = form.match(plain)
    if match is None:
        return plain
    rest = plain[match.end() :]
    hashed = rest.lstrip().startswith("#")
    if rest in headers:
        return ("# " if hashed else "") + sign.join([*added, rest.lstrip(" #")])
    return (
        rest if hashed else sign.join([*((match.group(one) or "-").replace(" ", "T") for one in added), rest])
    )
