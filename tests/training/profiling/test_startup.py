"""What the environment asks for: an error of ours is one line, and the training goes on."""

from __future__ import annotations

import pytest

from gpudebug.training.profiling import startup
from gpudebug.training.profiling.exits import ProfilerEnvironment


def refuse() -> None:
    raise MemoryError("full")


@pytest.mark.parametrize(
    ("asked", "printed"),
    [
        ({}, ""),
        ({"GPUDEBUG_PROFILE": "r.json"}, "gpudebug: sections are not profiled: MemoryError: full\n"),
        ({"GPUDEBUG_PROFILE_SUMMARY": "5"}, "gpudebug: sections are not profiled: MemoryError: full\n"),
        (
            {"GPUDEBUG_PROFILE_SUMMARY": "often"},
            "gpudebug: GPUDEBUG_PROFILE_SUMMARY takes a whole number of iterations, not 'often'\n",
        ),
    ],
)
def test_profiling_that_cannot_begin_is_a_line(
    asked: dict[str, str], printed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(startup, "places", ProfilerEnvironment(asked))
    startup.begin(refuse)
    assert capsys.readouterr().err == printed


def test_methods_that_cannot_be_timed_are_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Locked(str):
        def split(self, *_: object) -> list[str]:
            raise OSError("no")

    startup.methods()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(startup.os, "environ", {"GPUDEBUG_PROFILE_METHODS": Locked("pkg:Policy")})
    startup.methods()
    assert capsys.readouterr().err == "gpudebug: methods are not profiled: OSError: no\n"
