"""Source code that a traceback or a warning quotes is no reading."""

# ruff: noqa: E501 - printed lines are as long as they are

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.trainlog import LogReader, LogSummary
from gpudebug.core.trainlog.sources import MAX_HEADS, SourceLines

STEPS = "".join(f"step {i} loss {2 / i + 0.1:.4f}\n" for i in range(1, 11))


def read(text: str, status: int | None = 1, patterns: dict[str, str] | None = None) -> LogSummary:
    reader = LogReader(patterns)
    reader.feed(text.encode())
    return reader.summary(status)


def readings(summary: LogSummary) -> tuple[object, ...]:
    return (
        summary.first,
        summary.last,
        summary.points,
        str(summary.trend),
        summary.steps,
        summary.data_s,
        summary.update_s,
        summary.steps_per_s,
    )


EXPECTED = readings(read(STEPS, 0))

SOURCE = [
    "    print(f'step {i+1} loss {2/(i+1)+.1:.4f}')",
    "    loss = 100.0 * criterion(out, y)",
    "    log(step=4000, loss=0.5)",
    "    data_time: float = 3.0; update_time = 9.0",
]
PLAIN = (
    "Traceback (most recent call last):\n"
    '  File "/w/t.py", line 12, in <module>\n'
    "    main(step=900, loss=8.0)\n"
    "    ~~~~^^^^^^^^^^^^^^^^^^^^\n"
    '  File "/w/t.py", line 7, in f\n'
    "{source}\n"
    "    ~~~~~~^^^^^~~~\n"
    "ValueError: bad sample\n"
)


@pytest.mark.parametrize("source", SOURCE)
@pytest.mark.parametrize(
    "head", ["", "[rank0]: ", "[default1]:[rank1]: ", "(train_fn pid=812) ", "worker-1  | ", "10:02:31.5 "]
)
def test_source_lines_are_no_readings(source: str, head: str) -> None:
    text = "".join(f"{head}{line}\n" for line in PLAIN.format(source=source).splitlines())
    summary = read(STEPS + text)
    assert readings(summary) == EXPECTED
    assert summary.failure is not None


def test_source_lines_are_still_quoted() -> None:
    summary = read(STEPS + PLAIN.format(source=SOURCE[1]))
    assert summary.failure is not None
    assert summary.failure.lines[-2:] == (SOURCE[1], "ValueError: bad sample")


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.format(source="    total = (\n        loss = 5.0,\n    ...<2 lines>...\n    loss = 6.0,\n    )"),
        '  File "/w/t.py", line 3\n    loss = 4.0 * (\n               ^\nSyntaxError: \'(\' was never closed\n',
        "Traceback (most recent call last):\n\n> File \"/w/t.py\", line 3, in f\n    loss = 7.0 * g(x)\n           |   -> loss = 9.0\n\nValueError: x\n",
        "  + Exception Group Traceback (most recent call last):\n"
        '  |   File "/w/t.py", line 3, in f\n  |     loss = 7.0 * g(x)\n  | ExceptionGroup: x (1 sub-exception)\n',
        "╭───── Traceback (most recent call last) ─────╮\n│ /w/t.py:12 in main                          │\n"
        "│   11 │   step = 500                         │\n│ ❱ 12 │   loss = 100.0 * criterion(out, y)     │\n"
        "│ ╭─ locals ─╮ │\n│ │ loss = 9.0 │ │\n│ ╰──────────╯ │\n╰─────────────────────────────────────────────╯\nValueError: x\n",
        "+---- Traceback (most recent call last) ----+\n| > 12     loss = 100.0 * f(y)              |\n+-------------------------------------------+\nValueError: x\n",
        "ValueError                                Traceback (most recent call last)\nCell In[1], line 3\n"
        "      1 for step in range(900):\n      2     loss = 100.0 * f(step)\n----> 3     print('step 4000 loss 8.0')\n\nValueError: x\n",
        "/w/t.py:31: UserWarning: target size differs\n  loss = 2.0 * F.mse_loss(out, y)\n",
        "[rank0]: /w/t.py:31: FutureWarning: old\n[rank0]:   loss = 2.0 * F.mse_loss(out, y)\n",
    ],
    ids=["3.13", "syntax", "loguru", "group", "rich", "rich ascii", "ipython", "warning", "warning of a rank"],
)  # fmt: skip
def test_forms_of_quotation(text: str) -> None:
    assert readings(read(STEPS + text)) == EXPECTED


def test_a_users_pattern_reads_no_source_either() -> None:
    summary = read(STEPS + PLAIN.format(source=SOURCE[1]), 1, {"loss": r"loss[ =]+(?P<value>[\d.]+)"})
    assert (summary.last, summary.points) == (EXPECTED[1], EXPECTED[2])


def test_frames_of_two_processes_among_each_other_and_among_steps() -> None:
    frame = '  File "/w/t.py", line 7, in f\n'
    text = frame + frame + "step 11 loss 0.25\n" + SOURCE[1] + "\n" + SOURCE[1] + "\nValueError: x\n"
    summary = read(STEPS + text)
    assert (summary.last, summary.points, summary.steps) == (0.25, 11, 11)


@pytest.mark.parametrize(
    "end",
    [
        "",
        PLAIN.format(source=SOURCE[0]),
        '  File "/w/t.py", line 7, in f\n    f()\n' * 3,
        '  File "/w/t.py", line 7 in f\n',
        "/w/t.py:31: UserWarning: old\n",
        "╭── Traceback (most recent call last) ──╮\n│ x │\n╰──╯\nValueError: x\n",
        "ValueError      Traceback (most recent call last)\n----> 1 f()\nValueError: x\n",
    ],
    ids=["nothing", "traceback", "stack", "dump", "warning", "rich", "ipython"],
)
@pytest.mark.parametrize(
    "form", ["step {} loss {}", "  step {} loss {}", "| step {} | loss {} |", "{} {} 0 1"]
)
def test_a_log_that_goes_on_is_read_on(end: str, form: str) -> None:
    head = "step  loss  lr  time\n" if form[0] == "{" else ""
    after = "".join(form.format(i, round(3 - i / 10, 2)) + "\n" for i in range(1, 13))
    summary = read(end + head + after, 0)
    assert (summary.last, summary.points) == (1.8, 12)


def test_an_indented_log_is_lost_for_a_few_lines_at_most() -> None:
    stack = '  File "/w/t.py", line 7, in f\n    f()\n'
    after = "".join(f"      step {i} loss {3 - i / 100:.2f}\n" for i in range(1, 101))
    summary = read(stack + after, 0)
    assert summary.last == 2.0 and summary.points >= 80


def test_the_interpreters_own_traceback(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "for i in range(10):\n"
        "    print(f'step {i+1} loss {2/(i+1)+.1:.4f}', flush=True)\n"
        "loss = 100.0 * len([]) / 0\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    summary = read(done.stdout.decode(), done.returncode)
    assert readings(summary) == EXPECTED
    assert summary.failure is not None and summary.failure.lines[-1].startswith("ZeroDivisionError")


def test_options_that_a_parser_refuses_are_no_readings() -> None:
    text = "usage: t.py [-h] [--loss LOSS]\nt.py: error: unrecognized arguments: --loss=1 --step 50\n"
    assert (read(text, 2).points, read(text, 2).steps) == (0, None)


@given(st.lists(st.sampled_from([
    b'  File "x", line 0, in f', b'[r]:   File "x", line 0', b"    loss = 0.0", b"step 0 loss 0", b"ValueError: x",
    b"/x.py:0: UserWarning: y", b"  f(0)", b"", b"> 0", b"----> 0 f()", b"| x |", b'File "', b'", line 0File "',
])))  # fmt: skip
def test_a_line_at_the_margin_without_marks_is_never_source(lines: list[bytes]) -> None:
    sources = SourceLines()
    for line in lines:
        sources.quotes(line, line)
    assert not sources.quotes(b"step 00 loss 0.0", b"step 12 loss 0.5")


def test_heads_are_bounded() -> None:
    sources = SourceLines()
    for i in range(100):
        line = b"w" * i + b'   File "x", line 0, in f'
        assert sources.quotes(line, line)
    assert len(sources._frames) <= MAX_HEADS
