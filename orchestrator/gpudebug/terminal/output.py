"""Print answers and failures: a failure becomes a line or a JSON object, and an exit status."""

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

A = TypeVar("A", bound="Answer")

DEFECT = 3
INTERRUPTED = 130
_BROKEN_PIPE = 128 + 13


class _ReaderGone(Exception):
    """The reader of standard output is gone. Not an OSError: typer would catch it."""


class _OutputLost(GpudebugError):
    """Standard output takes nothing more: standard error alone can say so."""


def run(command: Callable[[], int], *, json: Callable[[], bool], debug: Callable[[], bool]) -> int:
    """Run `command` and return its exit status; an expected error becomes one line, a defect a log file.

    `json` and `debug` are called only after a failure: the command line that sets them may itself be wrong.
    """
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # File names may not be text, and terminals may lack characters: neither may fail a command.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        return _guarded(command, json, debug)
    except (_ReaderGone, BrokenPipeError):
        # Keep the interpreter from complaining at exit.
        _discard()
        return _BROKEN_PIPE


def in_session() -> bool:
    """Tell whether an agent may be the caller; the exact check takes longer to load."""
    return any("SESSION" in name or "THREAD_ID" in name for name in os.environ)


def working_folder(directory: Path) -> Path:
    """Return the folder to work in, absolute; UsageError if it is missing or not a folder."""
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
    raise UsageError("-C does not name a folder", file=str(directory), next="check the path")


def _owner_of_removed_worktree(directory: Path) -> Path | None:
    """Return the campaign of a caller whose folder is gone: a worktree, removed after its verdict."""
    gone = Path(os.environ.get("PWD", "")) if directory == Path() else Path()
    owners = [f.parents[1] for f in gone.parents if f.parts[-2:] == ("runs", "worktrees")]
    return next((root for root in reversed(owners) if (root / "gpudebug.yaml").is_file()), None)


def timeout(text: str | None, option: str = "--timeout") -> float | None:
    """Parse the text of `option` into seconds; None if not given. UsageError if it is not a duration."""
    from gpudebug.core.text.values import QuantityError, parse_duration

    try:
        return None if text is None else parse_duration(text)
    except QuantityError as e:
        raise UsageError(f"{option}: {e}", next="write it as 90s, 10m or 2h") from None


def _open_closed_streams() -> None:
    """Open closed streams on the null device: no lock or log may take their place."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(fd)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)


def _guarded(command: Callable[[], int], json: Callable[[], bool], debug: Callable[[], bool]) -> int:
    try:
        return command()
    except GpudebugError as e:
        return report(e, e.exit_code, as_json=json())
    except KeyboardInterrupt:
        print("gpudebug: interrupted", file=sys.stderr)
        return INTERRUPTED
    except (_ReaderGone, BrokenPipeError):
        raise
    except Exception as e:  # noqa: BLE001  # a defect of ours
        return _unexpected(e, as_json=json(), debug=debug())


def report(error: GpudebugError, status: int, *, as_json: bool) -> int:
    """Print an expected error as JSON or as a line; return `status`."""
    if as_json and not isinstance(error, _OutputLost):
        try:
            print_text(_document(error_document(error)))
            return status
        except _OutputLost:
            pass  # The line below says what the document would have said.
    print(f"gpudebug: {plain_line(str(error))}", file=sys.stderr)
    return status


def error_document(error: GpudebugError) -> dict[str, object]:
    """Return the object that `--json` prints for an expected error, without secrets."""
    from gpudebug.core.redaction.records import scrubbed_record

    return {"error": dict(scrubbed_record(error.as_json(), plain))}


def plain(text: str) -> str:
    """Remove this process's secrets, and what looks like one, from a text of ours."""
    return _redactor().quoted(text)


def plain_line(text: str) -> str:
    """Return the same as one visible line: nothing in it moves a cursor or turns the text."""
    return _one_line(plain(text))


def _redactor() -> Redactor:
    from gpudebug.core.redaction.redact import Redactor

    return Redactor(os.environ, sys.argv)


def without_secrets(answer: dict[str, object]) -> dict[str, object]:
    """Remove this process's secrets, and what looks like one; engines remove those of a run."""
    from gpudebug.core.redaction.records import scrubbed_record

    return dict(scrubbed_record(answer, _redactor().redact))


def document_of(answer: Answer | dict[str, Any], directory: Path | None) -> dict[str, object]:
    """Return an answer as JSON without secrets; its next command repeats `-C` if that was given."""
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
    from gpudebug.core.answers.answer import with_texts

    print_text(text(with_texts(answer, _harmless(document))))


def print_text(text: str) -> None:
    """Print to standard output at once; GpudebugError if that fails."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise _ReaderGone from None
    except OSError as e:
        _discard()
        raise _OutputLost(
            f"cannot write to standard output: {e.strerror}", next="send the output somewhere else"
        ) from None


def _document(value: dict[str, object]) -> str:
    """Return one line of JSON. A terminal's control characters are escaped; a lone surrogate is escaped by
    the stream's `backslashreplace`."""
    from json import dumps

    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = dumps(value, ensure_ascii=not utf8, allow_nan=False)
    return text if text.isprintable() else "".join(map(_in_json, text))


def _in_json(character: str) -> str:
    shown = character.isprintable() or "\ud800" <= character <= "\udfff"
    if shown or not _obeyed(character):
        return character
    from json import dumps

    return dumps(character)[1:-1]


def _obeyed(character: str) -> bool:
    """Tell whether it moves, hides or turns what is around it: control, format and separating characters."""
    from unicodedata import category

    return category(character) in ("Cc", "Cf", "Zl", "Zp")


def _harmless(value: Any) -> Any:
    """Remove the control characters of files and logs, which could rewrite a terminal."""
    if isinstance(value, str):
        return value if value.isprintable() else "".join(filter(_shows, value))
    if isinstance(value, dict):
        return {_harmless(k): _harmless(v) for k, v in value.items()}
    return [_harmless(v) for v in value] if isinstance(value, (list, tuple)) else value


def _shows(character: str) -> bool:
    return character.isprintable() or character in "\n\t"


def _one_line(text: str) -> str:
    """Escape the line breaks and terminal codes that names of files may hold."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _discard() -> None:
    """Drop what is still to be printed."""
    fd = os.open(os.devnull, os.O_WRONLY)
    os.dup2(fd, sys.stdout.fileno())
    os.close(fd)


def _unexpected(error: Exception, *, as_json: bool, debug: bool) -> int:
    from gpudebug.core.errors import refused

    if debug:
        import traceback

        lines = plain("".join(traceback.format_exception(error))).splitlines()
        sys.stderr.writelines(f"{_one_line(line)}\n" for line in lines)
    refusal = refused(error)
    if refusal is not None:
        return report(refusal, refusal.exit_code, as_json=as_json)
    return report(defect(error), DEFECT, as_json=as_json)


def defect(error: Exception) -> GpudebugError:
    """Return the error to show for a defect of ours; its traceback goes to a log file, which it names."""
    import tempfile
    import traceback

    try:
        fd, path = tempfile.mkstemp(prefix="gpudebug-defect-", suffix=".log")
        with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as f:
            f.write(plain("".join(traceback.format_exception(error))))
        file, after = path, "report it with this file"
    except OSError:
        file, after = None, "run it again with --debug, which shows the rest, and report it"
    failure = GpudebugError(f"a defect in gpudebug: {type(error).__name__}", file=file, next=after)
    failure.code = "defect"
    return failure
