"""Expected errors: one line that says what, where and what to do next; a documented exit status."""

from __future__ import annotations

import errno
import os

import pytest

from gpudebug.core import errors
from gpudebug.core.errors import GpudebugError, LaunchError, refused


@pytest.mark.parametrize(
    ("where", "line"),
    [
        ({}, "broken"),
        ({"file": "a.md"}, "a.md: broken"),
        ({"file": "a.md", "line": 3}, "a.md:3: broken"),
        ({"line": 3}, "broken"),
        ({"file": "a.md", "line": 3, "next": "mend it"}, "a.md:3: broken; next: mend it"),
        ({"next": "mend it"}, "broken; next: mend it"),
    ],
)
def test_one_line(where: dict[str, object], line: str) -> None:
    assert str(GpudebugError("broken", **where)) == line  # type: ignore[arg-type]


def test_the_same_as_json() -> None:
    error = errors.ConfigError("broken", file="gpudebug.yaml", line=2, next="mend it")
    assert error.as_json() == {
        "code": "config",
        "message": "broken",
        "file": "gpudebug.yaml",
        "line": 2,
        "next": "mend it",
    }


def test_exit_statuses_are_the_documented_ones() -> None:
    found = {
        cls.__name__: cls.exit_code
        for cls in vars(errors).values()
        if isinstance(cls, type) and issubclass(cls, GpudebugError)
    }
    special = {"UsageError": 2, "BusyError": 6, "InterruptedRun": 130}
    assert {name: code for name, code in found.items() if code != 1} == special


def test_a_launch_error_knows_the_shells_status() -> None:
    assert LaunchError("no such program", status=127).status == 127


@pytest.mark.parametrize(
    ("name", "file", "said"),
    [
        ("/a/b", "/a/b", "/a/b: No space left on device: b; next: free some space"),
        (b".git", None, "No space left on device: .git; next: free some space"),
        (3, None, "No space left on device; next: free some space"),
        (None, None, "No space left on device; next: free some space"),
    ],
)
def test_it_names_what_was_refused(name: object, file: str | None, said: str) -> None:
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
    found = refused(error)
    assert found is not None
    assert (found.file, found.exit_code) == (file, 1)
    assert str(found).startswith(said)


@pytest.mark.parametrize(
    "number", ["EDQUOT", "EMFILE", "ENFILE", "EACCES", "EPERM", "EIO", "EROFS", "ENOMEM"]
)
def test_each_says_what_to_do(number: str) -> None:
    found = refused(OSError(getattr(errno, number), "refused"))
    assert found is not None
    assert found.next


@pytest.mark.parametrize("error", [FileNotFoundError(2, "x"), OSError("x"), KeyError(28), ValueError()])
def test_all_else_is_no_refusal(error: Exception) -> None:
    assert refused(error) is None
