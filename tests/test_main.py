"""`status` in its usual spellings takes the short way, everything else the long one; both answer alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudebug.__main__ import plain_status

SHORT = {
    ("status",): (".", False),
    ("status", "--json"): (".", True),
    ("--json", "status"): (".", True),
    ("-C", "/", "status"): ("/", False),
    ("status", "-C", "/", "--json"): ("/", True),
    ("-C", "/tmp", "status", "-C", "/"): ("/", False),
}
LONG = (
    (),
    ("next",),
    ("status", "status"),
    ("status", "--watch"),
    ("status", "--help"),
    ("status", "-C"),
    ("status", "-C", "/no/such/folder"),
    ("status", "-C/"),
    ("--debug", "status"),
    ("status", "1"),
)


@pytest.mark.parametrize(("words", "asked"), SHORT.items())
def test_the_short_way(words: tuple[str, ...], asked: tuple[str, bool]) -> None:
    assert plain_status(list(words)) == asked


@pytest.mark.parametrize("words", LONG)
def test_the_long_way(words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert plain_status(list(words)) is None
