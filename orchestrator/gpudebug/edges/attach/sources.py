"""Lines of another process's source, read as that process would find them.

The name of a file comes from the process, which may name anything: a file is read only if it is regular and
its own user, or every user, may read it. What could be a secret in a line is left out.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress

LONGEST_LINE = 120
LARGEST_FILE = 4 << 20
_LONG_WORD = re.compile(r"[A-Za-z0-9_+/=-]{20,}")
_LITERAL = re.compile(r"\"[^\"\\]*\"|'[^'\\]*'")


def line_of(pid: int, uid: int, cwd: str | None, file: str, line: int) -> str:
    """Return the text of a line without white space around it; "" if it cannot be read."""
    if file.startswith("<") or line < 1 or "\0" in file:
        return ""
    path = os.path.normpath(os.path.join(cwd or "/", file))
    text = _text(f"/proc/{pid}/root{path}", uid)
    lines = (text or "").split("\n", line)
    if len(lines) < line:
        return ""
    hidden = _LITERAL.sub(lambda literal: _LONG_WORD.sub("...", literal.group()), lines[line - 1].strip())
    return hidden[:LONGEST_LINE]


def _text(path: str, uid: int) -> str | None:
    with suppress(OSError):
        # Opening a pipe would wait for its writer.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            status = os.fstat(fd)
            readable = status.st_uid == uid or status.st_mode & stat.S_IROTH
            if stat.S_ISREG(status.st_mode) and readable:
                return os.read(fd, LARGEST_FILE).decode("utf-8", "replace")
        finally:
            os.close(fd)
    return None
