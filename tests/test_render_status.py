"""`status` as text: on 40, 80 and 200 columns, in a pipe and on real terminals, with and without colours."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import GPUDEBUG, Campaign, environment, make_campaign
from tests.support.statuses import answer, baseline, hypothesis, judged

from gpudebug import render
from gpudebug.render.fitting import Screen, width
from gpudebug.render.status import grid, row_of

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
STORY = (
    judged(1, "REJECTED", delta_pp=-0.6, delta_ci=[-16.1, 14.9], throughput_ratio=1.03),
    hypothesis(2, title="Single precision moves twice the bytes that half precision would move, as we know"),
    judged(3, "INCONCLUSIVE", loss=None, why="throughput is unknown (1.03x): more runs would tell"),
    hypothesis(4, "TESTING", claim={"session": "a-1", "since": "2026-01-01T10:00:00+00:00"}),
    hypothesis(5, "VALIDATED", verified=False, claimed="+71.6pp"),
    judged(6, cost_s=4000.0, age_s=400_000, accepted=1),
)


def shown(monkeypatch: pytest.MonkeyPatch, columns: int, told: dict[str, Any], **env: str) -> list[str]:
    for name, value in {"COLUMNS": str(columns), "LC_ALL": "C.UTF-8", **env}.items():
        monkeypatch.setenv(name, value)
    return render.status(told).split("\n")


def test_on_80_columns_title_and_figures_have_a_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, 80, answer(*STORY))
    start = lines.index("  H  status        hypothesis")
    assert lines[start + 1 : start + 18] == [
        "     delta (95% CI)            throughput  loss        cost   age",
        "  1  REJECTED      Cause 1",
        "     -0.6pp (-16.1 to +14.9)   1.03x       CONVERGING  14 s   2.2 min",
        "     gpu_util ▁▁▁▁▁▂▂▂▂▂▃▃▃▃▃▄▄▄▄▄▅▅▅▅▅▆▆▆▆▆▇▇▇▇▇█████",
        "  2  UNTESTED      Single precision moves twice the bytes that half precision w…",
        "  3  INCONCLUSIVE  Cause 3",
        "     +75.0pp (+60.4 to +89.6)  4.20x       unknown     14 s   2.2 min",
        "     throughput is unknown (1.03x): more runs would tell",
        "     gpu_util ▁▁▁▁▁▂▂▂▂▂▃▃▃▃▃▄▄▄▄▄▅▅▅▅▅▆▆▆▆▆▇▇▇▇▇█████",
        "  4  TESTING       Cause 4",
        "     held by session a-1 since 2026-01-01T10:00:00+00:00",
        "  5  VALIDATED     Cause 5",
        "     UNVERIFIED +71.6pp",
        "  6  VALIDATED     Cause 6",
        "     +75.0pp (+60.4 to +89.6)  4.20x       CONVERGING  1.1 h  4.6 d",
        "     accepted: its change is part of the workload",
        "     gpu_util ▁▁▁▁▁▂▂▂▂▂▃▃▃▃▃▄▄▄▄▄▅▅▅▅▅▆▆▆▆▆▇▇▇▇▇█████",
    ]


def test_on_200_columns_a_hypothesis_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, 200, answer(*STORY))
    (row,) = [line for line in lines if re.match(" +1  ", line)]
    assert " ".join(row.split()) == "1 REJECTED Cause 1 -0.6pp (-16.1 to +14.9) 1.03x CONVERGING 14 s 2.2 min"
    (head,) = [line for line in lines if "hypothesis  " in line]
    assert head.index("delta (95% CI)") == row.index("-0.6pp")


def test_on_40_columns_every_figure_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, 40, answer(*STORY))
    start = lines.index("  1  REJECTED")
    assert lines[start + 1 : start + 6] == [
        "     Cause 1",
        "     -0.6pp (95% CI -16.1 to +14.9),",
        "     throughput 1.03x, loss CONVERGING,",
        "     cost 14 s, 2.2 min ago",
        "     gpu_util ▁▁▁▁▂▂▂▃▃▃▄▄▄▅▅▅▆▆▆▆▇▇▇███",
    ]


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


def in_colour(monkeypatch: pytest.MonkeyPatch, told: dict[str, Any]) -> list[str]:
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


@pytest.mark.parametrize(
    ("sparks", "columns", "said"),
    [
        (1, 80, "▁{40}"),
        (2, 80, "▁{32} ▁{32}"),
        (5, 80, "▁{12} ▁{12} ▁{12} ▁{12} ▁{12}"),
        (7, 80, "▁{10} ▁{10} ▁{10} ▁{10} ▁{10} \\+ 2 runs"),
        (3, 40, "▁{17} \\+ 2 runs"),
    ],
)
def test_as_many_runs_as_there_is_room_for(sparks: int, columns: int, said: str) -> None:
    told = judged(1, sparks=[{"run": str(n), "spark": [0.0] * 40} for n in range(sparks)])
    made = grid(
        [row_of(told, "gpu_util")], Screen(columns), ("delta (95% CI)", "throughput", "loss", "cost", "age")
    )
    (line,) = [line for line in made.rows[0][1] if "▁" in line]
    assert re.fullmatch(f"gpu_util {said}", line)


def test_a_run_without_readings_is_no_picture_and_a_broken_one_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = [{"run": "0007-h1", "spark": None}, {"run": "0008-h1", "spark": []}]
    lines = shown(
        monkeypatch, 80, answer(judged(1, sparks=broken), baselines={"workload": baseline(sparks=[])})
    )
    assert not any("gpu_util ▁" in line for line in lines)
    assert "     no evidence that can be read: 0007-h1" in lines


def test_another_metric_has_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    ratio = {"delta_pp": None, "delta_ci": None, "improvement": 1.314, "improvement_ci": [1.236, None]}
    own = judged(1, metric="latency_p50", **ratio)
    told = answer(own, judged(2), metric="latency_p50")
    lines = shown(monkeypatch, 80, told)
    assert any(line.startswith("     latency_p50 (95% CI)") for line in lines)
    assert any(line.startswith("     1.31x  ") for line in lines)
    assert "     judged by gpu_util" in lines
    assert "     latency_p50 1.31x," in shown(monkeypatch, 40, told)


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


def test_many_devices_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = [{"name": "NVIDIA H100", "uuid": f"GPU-{n}"} for n in range(8)]
    lines = shown(monkeypatch, 80, answer(device={"setting": "auto", "devices": devices}))
    assert "Device   8 x NVIDIA H100 [device: auto]" in lines
    two = shown(monkeypatch, 80, answer(device={"setting": "auto", "devices": devices[:2]}))
    assert "Device   NVIDIA H100 (GPU-0), NVIDIA H100 (GPU-1) [device: auto]" in two
    none = shown(monkeypatch, 80, answer(device={"setting": "auto", "devices": []}))
    assert "Device   not used yet [device: auto]" in none


def test_what_the_table_leaves_out_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    hypotheses = [judged(1), *(hypothesis(n) for n in range(2, 1000)), judged(1000, "REJECTED")]
    rows = [
        {"value": n, "hypothesis": n, "status": "UNTESTED", "verified": None, "throughput_ratio": None}
        | {"delta_pp": None, "improvement": None}
        for n in range(2, 1000)
    ]
    sweeps = [{"parameter": "--a", "standing": None, "rows": rows}]
    sweeps.append({"parameter": "--b", "standing": None, "rows": rows[50:60]})
    lines = shown(monkeypatch, 80, answer(*hypotheses, shown=[1, 2, 3, 1000], sweeps=sweeps))
    assert "  …  and 996 more (996 UNTESTED): gpudebug status --json" in lines
    assert len(lines) < 45
    assert "  … and 996 more values" in lines
    assert "Sweep of --b" not in lines


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


def on_terminal(folder: Path, columns: int, **env: str) -> str:
    """What `gpudebug status` writes to a real terminal of so many columns."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [*GPUDEBUG, "status"],
        cwd=folder,
        env=environment({"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **env}),
        stdin=child,
        stdout=child,
        stderr=child,
        start_new_session=True,
    )
    os.close(child)
    said = b""
    while select.select([parent], [], [], 30)[0]:
        try:
            data = os.read(parent, 65536)
        except OSError:  # the last writer closed its end
            break
        said += data
    os.close(parent)
    assert process.wait(30) == 0
    return said.decode().replace("\r\n", "\n")


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
