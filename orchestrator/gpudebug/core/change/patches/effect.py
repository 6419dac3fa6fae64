"""What of a patch has an effect, so that the same change is known again however it is written.

Two patches are the same if they differ only in white space, blank lines, comments, context, the places
of hunks, index lines, and the order of files. Lines within strings of several lines count as code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import PurePosixPath

from gpudebug.core.change.patches.hunks import Hunk, Patch, PatchedFile, read
from gpudebug.core.lazy import regex
from gpudebug.core.text.values import short_digest

# Above this only what a file's change begins and ends with is matched, for that takes quadratic time.
_MATCHED = 500

_QUOTES = rb"\"\"\"|'''|\"|'|`"
_MARKS = {
    "#": rb"#",
    # In shells and configuration a # within a word starts no comment: ${x#y}, a#b.
    "word #": rb"(?:(?<=\s)|^)#",
    "//": rb"//|/\*",
    "word # ;": rb"(?:(?<=\s)|^)[#;]",
    "--": rb"--",
}
_KINDS = {
    "#": "py pyi pyx pxd pyw jl r rb pl",
    "word #": "sh bash zsh fish yaml yml toml conf env cmake mk dockerfile makefile gitignore txt.in",
    "word # ;": "ini cfg",
    "//": "c h cc cpp cxx hpp hh cu cuh js mjs cjs ts tsx jsx java rs go kt swift scala cs proto jsonc m mm",
    "--": "sql lua hs",
}
_MARK_OF = {suffix: _MARKS[kind] for kind, suffixes in _KINDS.items() for suffix in suffixes.split()}


def digest(patch: bytes) -> str:
    """16 hexadecimal digits that patches of the same effect share. InterventionError if it is not a patch."""
    return short_digest(effective(patch))


def effective(patch: bytes | Patch, file: str = "the patch") -> bytes:
    """Return the lines that a patch takes out and puts in, file by file in the order of names, in one form.

    Empty if it changes nothing but comments and white space. `file` names it in errors.
    """
    read_patch = patch if isinstance(patch, Patch) else read(patch, file)
    parts = [_of_file(each) for each in read_patch.files]
    return b"".join(sorted(part for part in parts if part))


def _of_file(each: PatchedFile) -> bytes:
    plain = _normaliser(each.path)
    # All hunks at once: lines that only seem to move, because blank lines were matched, are seen to stay.
    sides = [_sides(hunk, plain) for hunk in each.hunks]
    before = [line for side in sides for line in side[0]]
    after = [line for side in sides for line in side[1]]
    removed, added = _changed(before, after)
    kind = _kind(each)
    lines = [b"-" + line for line in removed] + [b"+" + line for line in added] + list(each.binary)
    if not lines and not kind:
        return b""
    name = each.path.encode("utf-8", "surrogateescape")
    return b"\n".join([b"file " + name, *kind, *lines, b""])


def _kind(each: PatchedFile) -> list[bytes]:
    """Return what happens to the file itself."""
    marks = []
    if each.old is None:
        marks.append(b"new")
    elif each.new is None:
        marks.append(b"deleted")
    elif each.moved:
        marks.append(f"{each.moved} of {each.old}".encode("utf-8", "surrogateescape"))
    if each.new_mode not in (None, each.old_mode) and (each.old is not None or each.new_mode != "100644"):
        marks.append(f"mode {each.new_mode}".encode())
    return marks


def _sides(hunk: Hunk, plain: Callable[[bytes], bytes]) -> tuple[list[bytes], list[bytes]]:
    """Return the lines before and after, normalised, those left out that hold nothing."""
    before, after = [], []
    for line in hunk.body:
        kind, text = line[:1], plain(line[1:])
        if text and kind != b"\\":
            if kind != b"+":
                before.append(text)
            if kind != b"-":
                after.append(text)
    return before, after


def _changed(before: Sequence[bytes], after: Sequence[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Return what is really taken out and put in: lines that are equal once normalised are neither."""
    shared = min(len(before), len(after))
    start = next((n for n in range(shared) if before[n] != after[n]), shared)
    left = shared - start
    end = next((n for n in range(left) if before[-1 - n] != after[-1 - n]), left)
    out, put = before[start : len(before) - end], after[start : len(after) - end]
    if not out or not put or max(len(out), len(put)) > _MATCHED:
        return list(out), list(put)
    removed: list[bytes] = []
    added: list[bytes] = []
    for tag, a, b, c, d in SequenceMatcher(None, out, put, autojunk=False).get_opcodes():
        if tag != "equal":
            removed += out[a:b]
            added += put[c:d]
    return removed, added


def _normaliser(path: str) -> Callable[[bytes], bytes]:
    name = path.rpartition("/")[2].lower()
    mark = _MARK_OF.get(name.rpartition(".")[2])
    if mark is None:
        return _without_blanks
    pattern = re.compile(_QUOTES + b"|" + mark)
    return lambda line: _without_blanks(_without_comment(line, pattern))


def uncommented(path: str) -> Callable[[bytes], bytes]:
    """Return what takes the comment out of a line of this file."""
    mark = _MARK_OF.get(path.rpartition("/")[2].lower().rpartition(".")[2])
    pattern = re.compile(_QUOTES + b"|" + mark) if mark is not None else None
    return (lambda line: _without_comment(line, pattern)) if pattern is not None else bytes


def _without_blanks(line: bytes) -> bytes:
    return b"".join(line.split())


def _without_comment(line: bytes, pattern: re.Pattern[bytes]) -> bytes:
    """Return the code before the first comment mark that is outside of quotes."""
    return b"".join(_code(line, pattern))


def _code(line: bytes, pattern: re.Pattern[bytes]) -> Iterator[bytes]:
    position = 0
    while found := pattern.search(line, position):
        mark = found.group()
        if mark == b"/*":
            yield line[position : found.start()]
            end = line.find(b"*/", found.end())
            if end < 0:
                return
            position = end + 2
        elif mark[:1] in b"\"'`":
            end = _end_of_string(line, found.end(), mark)
            yield line[position:end]
            position = end
        else:
            yield line[position : found.start()]
            return
    yield line[position:]


def _end_of_string(line: bytes, position: int, quote: bytes) -> int:
    """Behind the quote that closes, or the end of the line if none does."""
    while position < len(line):
        if line[position : position + 1] == b"\\":
            position += 2
        elif line.startswith(quote, position):
            return position + len(quote)
        else:
            position += 1
    return len(line)


_SUFFIXES = frozenset({".yaml", ".yml", ".json", ".toml", ".ini", ".cfg"})
_KEY = regex(rb"""\s*(?:-\s+)?["']?(?P<name>[A-Za-z_][\w.-]*)["']?\s*[:=]""")


def settings_of(patch: Patch) -> tuple[str, ...] | None:
    """The names whose values change, in order; None if a line of it is no setting, or in another file."""
    found = [name for each in patch.files for name in _names(each)]
    return None if not found or None in found else tuple(dict.fromkeys(name for name in found if name))


def _names(each: PatchedFile) -> Iterator[str | None]:
    if PurePosixPath(each.path).suffix not in _SUFFIXES or each.binary or each.old != each.new:
        yield None
        return
    for line in (line for hunk in each.hunks for line in hunk.body if line[:1] in (b"-", b"+")):
        if not line[1:].strip() or line[1:].lstrip().startswith((b"#", b";")):
            continue
        key = _KEY.match(line[1:])
        yield key["name"].decode() if key else None


_LONGEST = 60
_TEXTS = (".md", ".rst")
# Read line by line, in any language: wide on purpose, as a person may confirm what is honest.
_PRINTED = r"""
    # what is printed
    \b(?:f?print(?:f|ln)?|echo|puts|log(?:ger|ging|s)?|tqdm|trange|pbar|wandb|stdout|stderr|cout|cerr)\b
    | \blog_\w+ | \w+_log(?:ger)?\b
    | \.(?:info|debug|warn(?:ing)?|error|write(?:lines)?|flush|add_scalars?|set_postfix\w*|set_description)\b
    # what may change any of that out of sight
    | \b(?:builtins|__builtins__|__import__|setattr|settrace|setprofile|globals|ctypes|sys\.modules|dup2)\b
    | (?<![.\w])(?:exec|eval|compile)\s*\( | \b(?:exec[lv]p?e?|fork|posix_spawn)\b
"""
_COUNTED = r"""
    # the loop, and what counts its steps
    | \b(?:range|while|yield|continue|enumerate|until)\b
    | \bfor\b .* \bin\b .* (?:load|batch|data|stream|iter|zip|cycle|repeat|chain|count)
    | (?:\b|_)(?:step|iter|iteration|epoch|update|batche)s?(?:\b|_)
    # what waits, or burns the time of a wait
    | (?:\b|_)(?:sleep|spin)\w*
    | \b(?:perf_counter|monotonic|process_time|thread_time)(?:_ns)?\b | \btime\.time
"""
_TOUCHES = regex(_PRINTED + _COUNTED, re.VERBOSE | re.IGNORECASE)
_PRINTS = regex(_PRINTED + r"| loss", re.VERBOSE | re.IGNORECASE)


def touches_count(patch: Patch) -> str | None:
    """The first change that touches the printing or the step loop, as `FILE: LINE`; None if none does."""
    return _first(patch, _TOUCHES)


def prints(patch: Patch) -> bool:
    """Tell whether a change touches the loss or the printing, so that printed losses are its own word."""
    return _first(patch, _PRINTS) is not None


def _first(patch: Patch, sought: re.Pattern[str]) -> str | None:
    for each in patch.files:
        if each.path.endswith(_TEXTS):
            continue
        if each.binary:
            return f"{each.path}: a binary file"
        found = next((line for line in changed_lines(each) if sought.search(line)), None)
        if found is not None:
            text = found.strip()
            return f"{each.path}: {text if len(text) <= _LONGEST else text[: _LONGEST - 3] + '...'}"
    return None


def changed_lines(each: PatchedFile) -> Iterator[str]:
    """Yield the lines that are taken out or put in, without their comments."""
    plain = uncommented(each.path)
    for hunk in each.hunks:
        sides = [_side(hunk, sign, plain) for sign in (b"-", b"+")]
        if sides[0] != sides[1]:
            yield from (line for side in reversed(sides) for line in side)


def _side(hunk: Hunk, sign: bytes, plain: Callable[[bytes], bytes]) -> list[str]:
    lines = (plain(line[1:]).decode("utf-8", "replace").rstrip() for line in hunk.body if line[:1] == sign)
    return [line for line in lines if line]
