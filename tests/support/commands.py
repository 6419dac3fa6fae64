"""`gpudebug WORDS` without a process of its own: for tables of cases, beside a test that starts one."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path

from tests.support.campaigns import Done

from gpudebug.cli import run


def command(folder: Path, *words: str) -> Done:
    """The command line's own way from its words to its exit status, in `folder`."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in "oe")
    before = Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = run(list(words))
    finally:
        os.chdir(before)
    said, complained = (stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
    return Done(status, said, complained)
