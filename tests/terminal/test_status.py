"""`status` as text: on 40, 80 and 200 columns, in a pipe and on real terminals, with and without colours."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, environment, make_campaign
from tests.support.statuses import STORY, answer, baseline, hypothesis, judged
from tests.support.terminals import run_in_terminal

from gpudebug.core.answers.status import StatusAnswer
from gpudebug.terminal.fit import width
from gpudebug.terminal.status import status

HOSTILE = {
    "markup": "[red]bold[/red] [link=http://x]a[/link] :smile: {x} %s",
    "escapes": "\x1b[2J\x1b]0;own\x07red \x9b31m",
    "directions": "\u202eevil\u2066 שלום \u200f",
    "wide": "模型" * 60,
    "marks": "e\u0301" * 500,
    "emoji": "👩‍👩‍👧 🤖 " * 20,
    "long": "x" * 5000,
    "html": "<script>alert('1')</script>",
}


def shown(monkeypatch: pytest.MonkeyPatch, columns: int, told: StatusAnswer, **env: str) -> list[str]:
    for name, value in {"COLUMNS": str(columns), "LC_ALL": "C.UTF-8", **env}.items():
        monkeypatch.setenv(name, value)
    return status(told).split("\n")


@pytest.mark.parametrize("columns", [1, 33, 40, 60, 72, 80, 100, 120, 200])
@pytest.mark.parametrize("title", HOSTILE.values(), ids=HOSTILE)
def test_no_line_is_wider_and_no_number_is_cut(
    monkeypatch: pytest.MonkeyPatch, columns: int, title: str
) -> None:
    told = answer(
        judged(1, title=title, why=title, status="REJECTED", delta_pp=-100.0, delta_ci=[-100.0, 100.0]),
        judged(1234, title=title, metric="latency_p50", delta_pp=None, delta_ci=None)
        | {"improvement": 1.314, "improvement_ci": [1.236, 1.384]},
        hypothesis(3, title=title),
        goal=title,
    )
    lines = shown(monkeypatch, columns, told)
    assert [line for line in lines if width(line) > max(columns, 32)] == []
    text = " ".join(" ".join(lines).split())
    for number in (
        "-100.0pp",
        "-100.0 to +100.0",
        "1.31x",
        "1.24x to 1.38x",
        "4.20x",
        "14 s",
        "2.2 min",
        "1234",
    ):
        assert number in text
    assert "\x1b" not in text and "\u202e" not in text


def test_markup_is_shown_as_it_is_written_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n".join(in_colour(monkeypatch, answer(judged(1, title=HOSTILE["markup"]))))
    assert HOSTILE["markup"] in text


def in_colour(monkeypatch: pytest.MonkeyPatch, told: StatusAnswer) -> list[str]:
    """What is written to a terminal of 100 columns; the terminal itself is real in another test."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return shown(monkeypatch, 100, told, TERM="xterm")


def test_a_terminal_shows_the_same_in_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    told = answer(*STORY)
    coloured = in_colour(monkeypatch, told)
    assert any("\x1b[32mVALIDATED" in line for line in coloured)
    assert any("\x1b[1m  H" in line for line in coloured)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False, raising=False)
    plain = shown(monkeypatch, 100, told)
    assert [re.sub("\x1b\\[[0-9;]*m", "", line).rstrip() for line in coloured] == plain


def test_without_unicode_everything_is_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n".join(shown(monkeypatch, 80, answer(*STORY), LC_ALL="C"))
    assert text.isascii()
    assert "gpu_util .....:::::-----=====+++++*****#####@@@@@" in text
    assert "half precision..." in text


def test_baselines_say_what_is_wrong_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    stale = baseline(valid=False, why="tree changed since it was recorded", advice=["log more often"])
    missing = baseline(valid=False, why="not recorded yet", runs=[], gpu_util_text=None, sparks=[])
    lines = shown(monkeypatch, 200, answer(baselines={"workload": stale, "reference": missing}))
    (line,) = [line for line in lines if line.startswith("Baseline workload   24.9%")]
    assert line.endswith("loss CONVERGING, 2.0 h ago [stale: tree changed since it was recorded]")
    assert "                    advice: log more often" in lines
    assert "Baseline reference  not recorded yet" in lines
    narrow = shown(monkeypatch, 40, answer())
    assert narrow[narrow.index("Baseline workload") + 1] == "     24.9% (95% CI 18.4 to 31.4, 2"


def used(devices: list[dict[str, Any]]) -> dict[str, Any]:
    return {"setting": "auto", "devices": devices, "replayed": False}


def test_many_devices_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = [{"name": "NVIDIA H100", "uuid": f"GPU-{n}"} for n in range(8)]
    lines = shown(monkeypatch, 80, answer(device=used(devices)))
    assert "Device   8 x NVIDIA H100 [device: auto]" in lines
    two = shown(monkeypatch, 80, answer(device=used(devices[:2])))
    assert "Device   NVIDIA H100 (GPU-0), NVIDIA H100 (GPU-1) [device: auto]" in two
    none = shown(monkeypatch, 80, answer(device=used([])))
    assert "Device   not used yet [device: auto]" in none


def test_without_hypotheses_and_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, 80, answer(goal="\n", baselines={"workload": None, "reference": None}))
    assert lines == [
        "Campaign demo",
        "Device   AMD EPYC (CPU) [device: cpu:1]",
        "",
        "No hypotheses yet.",
        "",
        "Target   89.9%",
        "Budget   18 of 20 hypotheses and 1 h 59 min of 2 h 0 min device time left (2",
        "         tested, 47.3 s used)",
        "Next     stop: solved: hypothesis 4 reaches 100.0%, the target is 89.9%",
    ]


def test_a_command_is_not_broken_over_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    why = (
        "every hypothesis has its verdict: propose a new one; dl-slow, 90% likely, is hypothesis 1, "
        "VALIDATED: gpudebug accept 1; dl-no-workers, 68% likely, promises most: "
        "gpudebug propose --from-catalogue dl-no-workers"
    )
    told = answer(next={"action": "propose", "hypothesis": None, "role": None, "why": why})
    lines = shown(monkeypatch, 80, told)
    assert lines[lines.index("         gpudebug accept 1") - 1].endswith("VALIDATED:")
    assert lines[-2:] == [
        "         dl-no-workers, 68% likely, promises most:",
        "         gpudebug propose --from-catalogue dl-no-workers",
    ]
    short = answer(next={"action": "propose", "hypothesis": None, "role": None, "why": "x: gpudebug propose"})
    assert shown(monkeypatch, 80, short)[-1] == "Next     propose: x: gpudebug propose"


def on_terminal(folder: Path, columns: int, **env: str) -> str:
    """What `gpudebug status` writes to a real terminal of so many columns."""
    status, said = run_in_terminal(folder, "status", columns=columns, **{"LC_ALL": "C.UTF-8", **env})
    assert status == 0
    return said.replace("\r\n", "\n")


TITLES = "".join(
    f"### Hypothesis {n}: {' '.join(title.split())}\n- **Status**: UNTESTED\n\n"
    for n, title in enumerate(HOSTILE.values(), 1)
)


@pytest.fixture(scope="module")
def hostile_titles(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    folder = tmp_path_factory.mktemp("titles") / "repo"
    return make_campaign(folder, progress=TITLES.encode())


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_real_terminal(hostile_titles: Campaign, columns: int) -> None:
    told = on_terminal(hostile_titles.folder, columns)
    bare = re.sub("\x1b\\[[0-9;]*m", "", told)
    assert ("\x1b[1m" in told) is (columns > 40) and "\x1b" not in bare
    assert "[red]bold[/red]" in bare and "\u202e" not in bare
    assert all(width(line) <= columns for line in bare.split("\n")), bare
    assert hostile_titles.run("status", env={"COLUMNS": str(columns)}).expect(0).out == bare


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "TERM=dumb"])
def test_a_terminal_that_wants_no_colours(hostile_titles: Campaign, env: dict[str, str]) -> None:
    told = on_terminal(hostile_titles.folder, 80, **env)
    assert "\x1b" not in told and "  1  UNTESTED      [red]bold" in told


@pytest.mark.parametrize(
    "env",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1", "TERM": "dumb"},
    ],
    ids=["C", "C without UTF-8", "ascii", "latin-1"],
)
def test_a_terminal_without_unicode(hostile_titles: Campaign, env: dict[str, str]) -> None:
    told = on_terminal(hostile_titles.folder, 80, **env)
    assert "x..." in told and "…" not in told and "\\u2026" not in told


def test_in_a_pipe_no_library_for_terminals_is_loaded(hostile_titles: Campaign) -> None:
    code = (
        "import sys; sys.argv = ['gpudebug', *sys.argv[1:]]\n"
        "from gpudebug.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('rich', 'numpy', 'typer', 'jinja2') if m in sys.modules], file=sys.stderr)"
    )
    for words in (("status",), ("status", "--json")):
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            cwd=hostile_titles.folder,
            env=environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr.strip() == "[]"
        assert "[red]bold" in done.stdout


def test_what_devices_show_beside_each_other_is_a_line_of_the_baseline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = answer(baselines={"workload": baseline(device_notes=["GPU 0 is idle every 3.5 s for 1 s"])})
    assert any(
        line.strip() == "devices: GPU 0 is idle every 3.5 s for 1 s" for line in shown(monkeypatch, 120, told)
    )
