"""A patch's files, names, modes and hunks.

Read as `git apply` reads them: git's own headers and plain unified diffs, names stripped of one folder
(`a/`, `b/`); what is between is a mail's prose. Line numbers are the patch's, from 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gpudebug.core.errors import InterventionError
from gpudebug.core.lazy import regex

LARGEST = 5 * 2**20

_HUNK = regex(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_QUOTED = regex(rb'\\([abfnrtv"\\]|[0-7]{1,3})')
_ESCAPES = dict(zip(b'abfnrtv"\\', b'\a\b\f\n\r\t\v"\\', strict=True))
_WRITE = "write it with git diff"


class Hunk(NamedTuple):
    """`start`: the first line of the old file; `body`: lines with their first character."""

    line: int
    start: int
    body: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class PatchedFile:
    """One file of a patch; `old` is None if it is new, `new` if it is deleted.

    Modes are None if the patch does not say. `binary`: the encoded contents.
    """

    line: int
    old: str | None
    new: str | None
    old_mode: str | None = None
    new_mode: str | None = None
    hunks: tuple[Hunk, ...] = ()
    binary: tuple[bytes, ...] = ()
    moved: str = ""

    @property
    def path(self) -> str:
        return self.new or self.old or ""

    @property
    def paths(self) -> tuple[str, ...]:
        """What is written or removed: both names of a renamed file, the new one of a copy."""
        named = (self.new,) if self.moved == "copy" else (self.old, self.new)
        return tuple(dict.fromkeys(name for name in named if name is not None))


@dataclass(frozen=True, slots=True)
class Patch:
    """`file` names it in errors."""

    file: str
    files: tuple[PatchedFile, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(path for each in self.files for path in each.paths))


def read(patch: bytes, file: str) -> Patch:
    """Return the files and hunks of a patch. InterventionError, with the line, where it is empty or none."""
    if len(patch) > LARGEST:
        size = f"{len(patch) / 2**20:.1f} MB, more than {LARGEST // 2**20}"
        raise InterventionError(f"the patch has {size}", file=file, next="leave data out of it")
    if not patch.strip():
        raise InterventionError("the patch is empty", file=file, next=_WRITE)
    files = tuple(_HunkReader(patch, file).files())
    if not files:
        raise InterventionError("is not a patch: it names no file", file=file, next=_WRITE)
    return Patch(file, files)


class _Header:
    """What was read so far of the lines before a file's first hunk."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.old: str | None = None
        self.new: str | None = None
        self.old_mode: str | None = None
        self.new_mode: str | None = None
        self.added = self.deleted = False
        self.moved = ""

    def take(self, line: bytes) -> bool:
        """Take a line of git's extended header; False if it is another line."""
        for start, (attribute, kind) in _EXTENDED.items():
            if line.startswith(start):
                value = line[len(start) :]
                if kind == "mode":
                    setattr(self, attribute, value.strip().decode("ascii", "replace"))
                    self.added |= start.startswith(b"new file")
                    self.deleted |= start.startswith(b"deleted")
                elif kind:
                    setattr(self, attribute, _name(value, strip=False))
                    self.moved = kind
                return True
        found = re.match(rb"index [0-9a-f]+\.\.[0-9a-f]+(?: (\d+))?$", line)
        if found and found.group(1):
            self.old_mode = self.new_mode = found.group(1).decode()
        return bool(found)

    def named(self, before: bytes, after: bytes) -> None:
        """Take the lines `--- ` and `+++ `, without these."""
        self.old, self.new = _name(before, strip=True), _name(after, strip=True)

    def finish(self, hunks: Sequence[Hunk], binary: Sequence[bytes]) -> PatchedFile:
        old = None if self.added else self.old
        new = None if self.deleted else self.new
        return PatchedFile(
            self.line, old, new, self.old_mode, self.new_mode, tuple(hunks), tuple(binary), self.moved
        )


_EXTENDED = {
    b"old mode ": ("old_mode", "mode"),
    b"new mode ": ("new_mode", "mode"),
    b"deleted file mode ": ("old_mode", "mode"),
    b"new file mode ": ("new_mode", "mode"),
    b"rename from ": ("old", "rename"),
    b"rename to ": ("new", "rename"),
    b"rename old ": ("old", "rename"),
    b"rename new ": ("new", "rename"),
    b"copy from ": ("old", "copy"),
    b"copy to ": ("new", "copy"),
    b"similarity index ": ("", ""),
    b"dissimilarity index ": ("", ""),
}


class _HunkReader:
    def __init__(self, patch: bytes, file: str) -> None:
        self._lines = patch.split(b"\n")
        if self._lines[-1] == b"":
            self._lines.pop()
        self._file = file
        self._at = 0

    def files(self) -> Iterator[PatchedFile]:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith(b"diff --git "):
                yield self._git()
            elif self._names_follow() and self._peek(2).startswith(b"@@ -"):
                header = _Header(self._at + 1)
                self._take_names(header)
                yield self._finished(header)
            elif _HUNK.match(line):
                raise self._wrong("a hunk without a file", self._at)
            else:
                self._at += 1

    def _git(self) -> PatchedFile:
        header = _Header(self._at + 1)
        header.old = header.new = _both(self._lines[self._at][len(b"diff --git ") :])
        self._at += 1
        while self._at < len(self._lines):
            if self._names_follow():
                self._take_names(header)
                break
            if not header.take(self._lines[self._at]):
                break
            self._at += 1
        return self._finished(header)

    def _finished(self, header: _Header) -> PatchedFile:
        hunks, binary = list(self._hunks()), list(self._binary())
        made = header.finish(hunks, binary)
        if not made.path:
            raise self._wrong("the name of the file cannot be read", header.line - 1)
        return made

    def _peek(self, ahead: int) -> bytes:
        place = self._at + ahead
        return self._lines[place] if place < len(self._lines) else b""

    def _names_follow(self) -> bool:
        return self._peek(0).startswith(b"--- ") and self._peek(1).startswith(b"+++ ")

    def _take_names(self, header: _Header) -> None:
        header.named(self._peek(0)[4:], self._peek(1)[4:])
        self._at += 2

    def _hunks(self) -> Iterator[Hunk]:
        while found := _HUNK.match(self._peek(0)):
            line = self._at
            counts = [1 if count is None else int(count) for count in (found.group(2), found.group(4))]
            self._at += 1
            yield Hunk(line + 1, int(found.group(1)), tuple(self._body(*counts)))

    def _body(self, old: int, new: int) -> Iterator[bytes]:
        while old > 0 or new > 0:
            if self._at == len(self._lines):
                raise self._wrong("the patch ends within a hunk", self._at - 1)
            line = self._lines[self._at]
            kind = line[:1] or b" "
            if kind not in (b" ", b"-", b"+", b"\\", b"\r"):
                raise self._wrong("no line of a hunk, which is longer by its header", self._at)
            old -= kind in (b" ", b"-", b"\r")
            new -= kind in (b" ", b"+", b"\r")
            if old < 0 or new < 0:
                raise self._wrong("the hunk is longer than its header says", self._at)
            yield line
            self._at += 1
        if self._peek(0).startswith(b"\\ "):
            yield self._lines[self._at]
            self._at += 1

    def _binary(self) -> Iterator[bytes]:
        line = self._peek(0)
        if line.startswith(b"Binary files ") and line.rstrip().endswith(b" differ"):
            raise InterventionError(
                "a binary file without its contents",
                file=self._file,
                line=self._at + 1,
                next="write it with git diff --binary",
            )
        if line != b"GIT binary patch":
            return
        self._at += 1
        while self._at < len(self._lines) and not self._peek(0).startswith(b"diff --git "):
            yield self._lines[self._at]
            self._at += 1

    def _wrong(self, what: str, at: int) -> InterventionError:
        return InterventionError(what, file=self._file, line=at + 1, next=_WRITE)


def _name(text: bytes, *, strip: bool) -> str | None:
    """Return a file's name as a header writes it; None for /dev/null and for a name that cannot be read."""
    text = text.rstrip(b"\r")
    if text.startswith(b'"'):
        name, _ = _unquoted(text)
    else:
        name = text.partition(b"\t")[0] if strip else text
    if name is None or name == b"/dev/null" or (strip and name.rstrip() == b"/dev/null"):
        return None
    return _stripped(name) if strip else name.decode("utf-8", "surrogateescape")


def _stripped(name: bytes) -> str:
    """Without the first folder, as -p1 has it; an absolute name stays one, to be refused."""
    head, slash, rest = name.partition(b"/")
    kept = rest.lstrip(b"/") if slash and head else name
    return kept.decode("utf-8", "surrogateescape")


def _unquoted(text: bytes) -> tuple[bytes | None, bytes]:
    """Return the name in C quotes that `text` begins with, and what follows it."""
    found = re.match(rb'"((?:[^"\\]|\\.)*)"', text)
    if found is None:
        return None, b""
    name = _QUOTED.sub(
        lambda m: bytes([int(m[1], 8) & 255] if m[1].isdigit() else [_ESCAPES[m[1][0]]]), found.group(1)
    )
    return name, text[found.end() :]


def _both(text: bytes) -> str | None:
    """Return the name that both sides of `diff --git a/NAME b/NAME` have; None if they differ."""
    text = text.rstrip(b"\r")
    if text.startswith(b'"'):
        first, rest = _unquoted(text)
        second = _unquoted(rest[1:])[0] if rest.startswith(b' "') else rest[1:]
        pairs = [(first, second)]
    elif text.endswith(b'"') and b' "' in text:
        first, _, rest = text.partition(b' "')
        pairs = [(first, _unquoted(b'"' + rest)[0])]
    else:
        # A name may hold blanks: both halves must be the same behind their first folder.
        blanks = [m.start() for m in re.finditer(rb" ", text)][:10_000]
        middle = len(text) // 2
        pairs = [(text[:b], text[b + 1 :]) for b in sorted(blanks, key=lambda b: abs(b - middle))[:64]]
    for first, second in pairs:
        if first and second and _stripped(first) == _stripped(second):
            return _stripped(first)
    return None
