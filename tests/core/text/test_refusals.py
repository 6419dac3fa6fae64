"""What the machine refuses is said in a line; what no machine refuses is left to be a defect."""

from __future__ import annotations

import errno
import os

import pytest

from gpudebug.core.text.refusals import refused


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
