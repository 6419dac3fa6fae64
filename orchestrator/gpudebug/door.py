"""The one door through which every failure leaves: a line or a JSON object, and its exit status."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from gpudebug.core.errors import GpudebugError

DEFECT = 3
INTERRUPTED = 130
_BROKEN_PIPE = 128 + 13


def run(command: Callable[[], int], *, json: Callable[[], bool], debug: Callable[[], bool]) -> int:
    """The exit status of `command`. Its expected errors become one line, its defects a log file.

    `json` and `debug` are asked when something failed: the command line that says so may itself be at fault.
    """
    try:
        return command()
    except GpudebugError as e:
        return report(e, e.exit_code, as_json=json())
    except KeyboardInterrupt:
        print("gpudebug: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        return _broken_pipe()
    except Exception as e:  # noqa: BLE001  # a defect of ours, whatever it is
        return _defect(e, as_json=json(), debug=debug())


def report(error: GpudebugError, status: int, *, as_json: bool) -> int:
    """Print an expected error where its reader looks for it; returns `status`."""
    if as_json:
        from json import dumps

        print(dumps({"error": error.as_json()}, ensure_ascii=False))
    else:
        print(f"gpudebug: {error}", file=sys.stderr)
    return status


def print_answer(answer: dict[str, Any], text: Callable[[dict[str, Any]], str], *, as_json: bool) -> None:
    """An answer of the engine: one JSON document, or text for people."""
    if as_json:
        from json import dumps

        print(dumps(answer, ensure_ascii=False, allow_nan=False))
    else:
        print(text(answer))


def _broken_pipe() -> int:
    """Whoever read our output is gone; the interpreter must not complain about it at exit."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _BROKEN_PIPE


def _defect(error: Exception, *, as_json: bool, debug: bool) -> int:
    import os
    import tempfile
    import traceback

    if debug:
        traceback.print_exception(error)
    fd, path = tempfile.mkstemp(prefix="gpudebug-defect-", suffix=".log")
    with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as f:
        traceback.print_exception(error, file=f)
    said = GpudebugError(
        f"a defect in gpudebug: {type(error).__name__}", file=path, next="report it with this file"
    )
    said.code = "defect"
    return report(said, DEFECT, as_json=as_json)
