"""A run of a hypothesis as text."""

from __future__ import annotations

import io
import sys

import pytest
from tests.support.answers import read
from tests.support.powered import busy
from tests.support.trials import run

from gpudebug.core.answers.status import GateRow
from gpudebug.core.evidence.devices import notes
from gpudebug.terminal import fit, show
from gpudebug.terminal.fit import Screen, coloured, short
from gpudebug.terminal.show import gates


def test_a_run_has_the_notes_that_sample_gives_of_it() -> None:
    devices = tuple(busy(97.0, 200.0, n) for n in range(2))
    stored = run(97.0, 1.0, devices=devices, working=0.3).model_dump(mode="json")
    (note,) = notes(stored)
    assert "misleads: waiting counts as busy in it" in note
    shown = " ".join(" ".join(show._run(stored)).split())
    assert f"note: {note}" in shown
    assert "note:" not in " ".join(show._run(run(30.0, 1.0).model_dump(mode="json")))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_are_for_statuses_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert coloured("VALIDATED", 12) == "\x1b[32mVALIDATED   \x1b[0m"
    assert coloured("UNTESTED") == "UNTESTED"
    monkeypatch.setenv("NO_COLOR", "")
    assert coloured("VALIDATED") == "VALIDATED"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert coloured("VALIDATED") == "VALIDATED"


def test_in_a_pipe_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert coloured("VALIDATED") == "VALIDATED"


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [("short", 10, "short"), ("exactly 10", 10, "exactly 10"), ("a" * 11, 10, "aaaaaaaaa…")],
)
def test_long_titles_are_cut(text: str, width: int, shown: str) -> None:
    assert short(text, width) == shown


def test_gates_are_a_line_each_and_the_skipped_ones_together() -> None:
    gate = {"value": "v", "threshold": "t", "note": None}
    rows = [
        {**gate, "name": "outcome", "result": "pass"},
        {**gate, "name": "loss", "result": "unknown", "note": "log more often"},
        {**gate, "name": "one", "result": "skipped", "note": "later"},
        {**gate, "name": "two", "result": "skipped", "note": "later"},
    ]
    lines = gates([read(GateRow, row) for row in rows])
    assert [text.split() for text in lines] == [
        ["outcome", "pass", "v", "[t]"],
        ["loss", "unknown", "v", "[t]"],
        ["log", "more", "often"],
        ["skipped:", "one,", "two", "(later)"],
    ]


@pytest.mark.parametrize(
    ("columns", "lines"),
    [
        (
            64,
            [
                "  delta               fail     -0.6pp (95% CI -13.0 to +11.9)",
                "                               [estimate >= 20pp]",
                "  skipped: locked_knobs (there is nothing that could tell of",
                "           them)",
            ],
        ),
        (
            40,
            [
                "  delta               fail",
                "    -0.6pp (95% CI -13.0 to +11.9)",
                "    [estimate >= 20pp]",
                "  skipped: locked_knobs (there is",
                "           nothing that could tell of",
                "           them)",
            ],
        ),
    ],
)
def test_gates_fit_a_terminal(monkeypatch: pytest.MonkeyPatch, columns: int, lines: list[str]) -> None:
    delta = {"name": "delta", "result": "fail", "value": "-0.6pp (95% CI -13.0 to +11.9)", "note": None}
    later = {"result": "skipped", "value": None, "note": "there is nothing that could tell of them"}
    rows = [{**delta, "threshold": "estimate >= 20pp"}, {**later, "name": "locked_knobs", "threshold": "t"}]
    monkeypatch.setattr(fit, "screen", lambda: Screen(columns, terminal=True))
    assert gates([read(GateRow, row) for row in rows]) == lines


@pytest.mark.parametrize("variable", ["GPUDEBUG_SESSION", "CLAUDE_CODE_SESSION_ID"])
def test_a_session_reads_what_did_not_pass(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "a1")
    rows = [
        GateRow(name="outcome", value="COMPLETED", threshold="ends", result="pass", note=None),
        GateRow(name="loss", value=None, threshold="CONVERGING", result="unknown", note="too few points"),
        GateRow(name="delta", value="+1.0pp", threshold="20pp", result="fail", note=None),
        GateRow(name="side_work", value="as before", threshold="x", result="pass", note=None),
        GateRow(name="parity", value=None, threshold="x", result="skipped", note="no seed"),
    ]
    assert gates(rows) == [
        "  loss unknown: unknown  [CONVERGING]; too few points",
        "  delta fail: +1.0pp  [20pp]",
        "  passed: outcome, side_work",
        "  skipped: parity",
    ]
