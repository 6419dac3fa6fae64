"""The one door through which every failure leaves: a line or a JSON object, and its exit status."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gpudebug.core.errors import GpudebugError, UsageError

if TYPE_CHECKING:
    from gpudebug.core.answers.answer import Answer
    from gpudebug.core.redaction.redact import Redactor

A = TypeVar("A", bound="Answer | dict[str, Any]")

DEFECT = 3
INTERRUPTED = 130
_BROKEN_PIPE = 128 + 13


class _ReaderGone(Exception):
    """Nobody reads our standard output any more. No OSError, which the command line's library would take."""


def run(command: Callable[[], int], *, json: Callable[[], bool], debug: Callable[[], bool]) -> int:
    """The exit status of `command`. Its expected errors become one line, its defects a log file.

    `json` and `debug` are asked when something failed: the command line that says so may itself be at fault.
    """
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # A file's name need not be text, nor a terminal know every letter: neither is a reason to fail.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        return _told(command, json, debug)
    except (_ReaderGone, BrokenPipeError):
        # Whoever read our output is gone; the interpreter must not complain about it at exit.
        _discard()
        return _BROKEN_PIPE


def in_session() -> bool:
    """Whether an agent may call: what tells it for sure takes longer to load."""
    return any("SESSION" in name or "THREAD_ID" in name for name in os.environ)


def working_folder(directory: Path) -> Path:
    """The folder to work in, absolute. UsageError where it is none, or was removed around the caller."""
    try:
        if directory.is_dir():
            return directory.resolve()
    except OSError as e:
        owner = _owner_of_removed_worktree(directory)
        if owner is not None:
            return owner
        raise UsageError(
            f"cannot work here: {e.strerror}", file=str(directory), next="change to a folder"
        ) from None
    raise UsageError("-C names no folder", file=str(directory), next="check the path")


def _owner_of_removed_worktree(directory: Path) -> Path | None:
    """The campaign of a caller whose folder is gone because it was a worktree that has had its verdict."""
    gone = Path(os.environ.get("PWD", "")) if directory == Path() else Path()
    owners = [f.parents[1] for f in gone.parents if f.parts[-2:] == ("runs", "worktrees")]
    return next((root for root in reversed(owners) if (root / "gpudebug.yaml").is_file()), None)


def timeout(text: str | None) -> float | None:
    """What --timeout says, in seconds; None where it is not given. UsageError where it is no duration."""
    from gpudebug.core.text.units import QuantityError, parse_duration

    try:
        return None if text is None else parse_duration(text)
    except QuantityError as e:
        raise UsageError(f"--timeout: {e}", next="write it as 90s, 10m or 2h") from None


def _open_closed_streams() -> None:
    """What the caller closed goes nowhere; a lock or a log must not be opened in its place."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(fd)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)


def _told(command: Callable[[], int], json: Callable[[], bool], debug: Callable[[], bool]) -> int:
    try:
        return command()
    except GpudebugError as e:
        return report(e, e.exit_code, as_json=json())
    except KeyboardInterrupt:
        print("gpudebug: interrupted", file=sys.stderr)
        return INTERRUPTED
    except (_ReaderGone, BrokenPipeError):
        raise
    except Exception as e:  # noqa: BLE001  # a defect of ours, whatever else it is
        return _unexpected(e, as_json=json(), debug=debug())


def report(error: GpudebugError, status: int, *, as_json: bool) -> int:
    """Print an expected error where its reader looks for it; returns `status`."""
    if as_json:
        print(_document(told(error)), flush=True)
    else:
        print(f"gpudebug: {plain_line(str(error))}", file=sys.stderr)
    return status


def told(error: GpudebugError) -> dict[str, Any]:
    """The object that `--json` prints of an expected error, without secrets."""
    from gpudebug.core.redaction.records import scrubbed_record

    return {"error": dict(scrubbed_record(error.as_json(), plain))}


def plain(text: str) -> str:
    """A text of ours, which may quote anything, without this process's secrets and what looks like one."""
    return _redactor().quoted(text)


def plain_line(text: str) -> str:
    """The same as one line that can be seen whole: nothing in it moves a cursor or turns the text."""
    return _one_line(plain(text))


def _redactor() -> Redactor:
    from gpudebug.core.redaction.redact import Redactor

    return Redactor(os.environ, sys.argv)


def without_secrets(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without this process's secrets and what looks like one: engines take out those of a run."""
    from gpudebug.core.redaction.records import scrubbed_record

    return dict(scrubbed_record(answer, _redactor().redact))


def document_of(answer: Answer | dict[str, Any], directory: Path | None) -> dict[str, Any]:
    """An answer as JSON without secrets; its next command names the folder that `-C` named, if one did."""
    document = answer if isinstance(answer, dict) else answer.as_json()
    command = document.get("next_command")
    if command and directory is not None and " -C " not in command:
        from shlex import quote

        named = command.replace("gpudebug", f"gpudebug -C {quote(str(directory))}", 1)
        document = {**document, "next_command": named}
    return without_secrets(document)


def print_answer(answer: A, text: Callable[[A], str], directory: Path | None, *, as_json: bool) -> None:
    """Print an answer of the engine: one JSON document, or text for people."""
    document = document_of(answer, directory)
    if as_json:
        print_text(_document(document))
        return
    harmless = _harmless(document)
    if isinstance(answer, dict):
        print_text(text(harmless))
        return
    from gpudebug.core.answers.answer import with_texts

    print_text(text(with_texts(answer, harmless)))


def print_text(text: str) -> None:
    """To standard output, at once. GpudebugError where it cannot be written."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise _ReaderGone from None
    except OSError as e:
        _discard()
        raise GpudebugError(
            f"cannot write to standard output: {e.strerror}", next="send the output somewhere else"
        ) from None


def _document(value: dict[str, Any]) -> str:
    """One line of JSON. A lone surrogate in it becomes its escape, by the stream's `backslashreplace`; so
    does what a terminal would obey instead of showing it."""
    from json import dumps

    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = dumps(value, ensure_ascii=not utf8, allow_nan=False)
    # A surrogate is printable to nobody, and the stream's business.
    return text if text.isprintable() else "".join(map(_in_json, text))


def _in_json(character: str) -> str:
    shown = character.isprintable() or "\ud800" <= character <= "\udfff"
    if shown or not _obeyed(character):
        return character
    from json import dumps

    return dumps(character)[1:-1]


def _obeyed(character: str) -> bool:
    """Whether it moves, hides or turns what is around it: control, format and separating characters."""
    from unicodedata import category

    return category(character) in ("Cc", "Cf", "Zl", "Zp")


def _harmless(value: Any) -> Any:
    """The answer without the control characters of files and logs, which could rewrite a terminal."""
    if isinstance(value, str):
        return value if value.isprintable() else "".join(filter(_shows, value))
    if isinstance(value, dict):
        return {_harmless(k): _harmless(v) for k, v in value.items()}
    return [_harmless(v) for v in value] if isinstance(value, (list, tuple)) else value


def _shows(character: str) -> bool:
    return character.isprintable() or character in "\n\t"


def _one_line(text: str) -> str:
    """Names of files may hold line breaks and terminal codes; the report of an error is one plain line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _discard() -> None:
    """Whatever is still to be printed goes nowhere."""
    fd = os.open(os.devnull, os.O_WRONLY)
    os.dup2(fd, sys.stdout.fileno())
    os.close(fd)


def _unexpected(error: Exception, *, as_json: bool, debug: bool) -> int:
    from gpudebug.core.text.refusals import refused

    if debug:
        import traceback

        lines = plain("".join(traceback.format_exception(error))).splitlines()
        sys.stderr.writelines(f"{_one_line(line)}\n" for line in lines)
    known = refused(error)
    if known is not None:
        return report(known, known.exit_code, as_json=as_json)
    return report(defect(error), DEFECT, as_json=as_json)


def defect(error: Exception) -> GpudebugError:
    """What a user is told of a defect of ours; its traceback goes to a log file, which is named."""
    import tempfile
    import traceback

    try:
        fd, path = tempfile.mkstemp(prefix="gpudebug-defect-", suffix=".log")
        with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as f:
            f.write(plain("".join(traceback.format_exception(error))))
        file, after = path, "report it with this file"
    except OSError:
        file, after = None, "run it again with --debug, which shows the rest, and report it"
    said = GpudebugError(f"a defect in gpudebug: {type(error).__name__}", file=file, next=after)
    said.code = "defect"
    return said
