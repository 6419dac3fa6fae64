"""Whose line it is."""

# ruff: noqa: E501 - printed lines are as long as they are

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.excerpts import course

from gpudebug.core.trainlog.origin import (
    MAX_HEADS,
    NumberedLines,
    SourceLines,
    find_ranks,
    order_of,
    rank_of,
    recognise,
)
from gpudebug.core.trainlog.reader import LogReader, LogSummary
from gpudebug.core.trainlog.text import skeleton

LOSSES = course("falls", 5.0, 0.0, "ranks")[:12]


def rank(line: str) -> str:
    return rank_of(line.encode(), find_ranks(skeleton(line.encode()).decode())[1])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("[default3]:step 10 loss 2.5", "3"),
        ("[rank10]: step 10 loss 2.5", "10"),
        ("[trainer1]:step 10 loss 2.5", "1"),
        ("[1,2]<stdout>:step 10 loss 2.5", "2"),
        ("[2024-01-01 10:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, loss=2.5", "0"),
        ("2022-02-08 11:02:01,303 INFO [train.py:529] (1/2) Epoch 11, batch 50, loss[loss=0.45]", "1"),
        ("2023-01-30 18:47:07,107 DEBUG TRAIN Batch 4/203700 loss 12.6 lr 0.0003 rank 2", "2"),
        ('{"rank": 1, "step": 10, "loss": 2.5}', "1"),
        ("GPU 1 | step 10 loss 2.5", "1"),
        ("Rank 3, step 10, loss 2.5", "3"),
        ("0: [rank0]: step 10 loss 2.5", "0"),
        ("1: [default0]: step 10 loss 2.5", "1/0"),
        ("[default1]:[rank1]: Traceback", "1"),
        ("(RayTrainWorker pid=1234, ip=10.0.0.2) step 10 loss 2.5", "pid 1234"),
        ("(RayTrainWorker pid=1234) [rank2] step 10 loss 2.5", "2"),
        ("step 10 loss 2.5", ""),
        ("image_to_text_mean_rank: 2.3 loss 0.5", ""),
        ("mean rank 12, loss 0.5", ""),
        ("Epoch: [3] (5/10) Loss: 2.5", ""),
        ("3: iter 10: loss 2.5", ""),  # It may be a step: only the lines together tell.
    ],
)
def test_labels(line: str, expected: str) -> None:
    assert rank(line) == expected


def test_labels_are_no_numbers_of_the_line() -> None:
    text, _ = find_ranks("0: [rank0]: step 00 loss 0.0 rank 0")
    assert text == "            step 00 loss 0.0 ~~~~~~"


def test_the_lowest_rank_comes_first() -> None:
    assert sorted(["10", "1/0", "0/1", "2"], key=order_of) == ["0/1", "1/0", "2", "10"]


@pytest.mark.parametrize(
    ("numbers", "labels"),
    [
        ([0, 1] * 6, True),
        ([2, 0, 1, 1, 0, 2, 0, 2, 1], True),
        ([3] * 9, False),
        (list(range(30)), False),
        ([*range(20)] * 3, False),  # Iterations of three folds.
        ([0, 10, 20, 30] * 3, False),
        ([10, 10, 20, 20, 30, 30], False),
    ],
)
def test_numbers_ahead_of_lines(numbers: list[int], labels: bool) -> None:
    lines = NumberedLines()
    for number in numbers:
        lines.add(number)
    assert lines.labels is labels


def read(template: str, apart: float = 3.0, count: int = 3) -> LogSummary:
    random, reader = Random(7), LogReader()
    for step, loss in enumerate(LOSSES):
        for one in random.sample(range(count), count):
            line = template.format(rank=one, step=step, loss=loss * (1 + apart * one))
            reader.feed(f"{line}\n".encode())
    return reader.summary()


@pytest.mark.parametrize(
    "label",
    [
        "[rank{rank}]: ",
        "[default{rank}]:",
        "{rank}: ",
        " {rank}: [rank{rank}]: ",
        "[RANK {rank}] ",
        "{rank}: [default0]: ",
    ],
)
def test_rank_0_is_judged_by_its_own_losses(label: str) -> None:
    found = read(label + "step {step} loss {loss:.4f}")
    assert (found.first, found.last, found.points) == (round(LOSSES[0], 4), round(LOSSES[-1], 4), 12)
    assert (found.loss_of, str(found.trend), found.steps) == ("rank 0 of 3", "CONVERGING", 12)
    assert [point.step for point in found.loss] == list(range(12))


def test_without_rank_0_the_lowest_one_is_judged() -> None:
    found = read("[rank{rank}]: step {step} loss {loss:.4f}".replace("{rank}", "1{rank}"))
    assert found.loss_of == "rank 10 of 3"


def test_a_rank_that_prints_little_does_not_speak_for_all() -> None:
    reader = LogReader()
    reader.feed(b"[rank0]: step 1 loss 9.0\n")
    for step, loss in enumerate(LOSSES):
        reader.feed(f"[rank1]: step {step} loss {loss:.4f}\n".encode())
    assert (reader.summary().loss_of, reader.summary().points) == ("rank 1 of 2", 12)


def test_without_labels_the_mean_is_judged() -> None:
    found = read("step {step} loss {loss:.4f}", count=2)
    assert found.loss_of == "2 ranks without labels: their mean is judged"
    assert [round(p.value, 2) for p in found.loss] == [round(2.5 * loss, 2) for loss in LOSSES]


def test_a_rank_that_loses_its_loss_is_told_whoever_speaks() -> None:
    reader = LogReader()
    for step, loss in enumerate(LOSSES):
        reader.feed(f"[rank0]: step {step} loss {loss:.4f}\n[rank1]: step {step} loss nan\n".encode())
    assert str(reader.summary().trend) == "NAN"


def test_one_process_needs_no_word() -> None:
    assert read("[rank{rank}]: step {step} loss {loss:.4f}", count=1).loss_of is None


def test_many_ranks_do_not_push_the_first_one_out() -> None:
    reader = LogReader()
    for one in range(200, -1, -1):
        reader.feed(f"[rank{one}]: step 1 loss 2.5\n[rank{one}]: step 2 loss 1.5\n".encode())
    assert (reader.summary().loss_of or "").startswith("rank 0 of ")


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("`Trainer.fit` stopped: `max_epochs=0` reached.", "lightning"),
        ("[0]\ttrain-logloss:0.00000\teval-logloss:0.00000", "xgboost"),
        ("iter 00: loss 0.0000, time 00.00ms, mfu 0.00%", "nanogpt"),
        ("SPS: 0000", "cleanrl"),
        ("step 0 loss 0.0", None),
        ("paddle supports more examples now and is recommended", None),
        ("Other supported backends: tensorflow, jax, paddle.", None),
        ("/v/site-packages/paddle/tensor/creation.py:0000: UserWarning: x", "paddle"),
        ("", None),
    ],
)
def test_marks(line: str, label: str | None) -> None:
    assert recognise(line) == label


def test_the_label_changes_nothing_that_is_read() -> None:
    plain, marked = LogReader(), LogReader()
    body = b"step 1 loss 2.0\nstep 2 loss 1.0\n"
    plain.feed(body)
    marked.feed(b"[lightning] hello\n" + body)
    one, other = plain.summary(), marked.summary()
    assert (one.framework, other.framework) == (None, "lightning")
    assert (one.loss, one.steps, one.trend) == (other.loss, other.steps, other.trend)


STEPS = "".join(f"step {i} loss {2 / i + 0.1:.4f}\n" for i in range(1, 11))


def quoted(text: str, status: int | None = 1, patterns: dict[str, str] | None = None) -> LogSummary:
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


EXPECTED = readings(quoted(STEPS, 0))

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
    summary = quoted(STEPS + text)
    assert readings(summary) == EXPECTED
    assert summary.failure is not None


def test_source_lines_are_still_quoted() -> None:
    summary = quoted(STEPS + PLAIN.format(source=SOURCE[1]))
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
    assert readings(quoted(STEPS + text)) == EXPECTED


def test_a_users_pattern_reads_no_source_either() -> None:
    summary = quoted(STEPS + PLAIN.format(source=SOURCE[1]), 1, {"loss": r"loss[ =]+(?P<value>[\d.]+)"})
    assert (summary.last, summary.points) == (EXPECTED[1], EXPECTED[2])


def test_frames_of_two_processes_among_each_other_and_among_steps() -> None:
    frame = '  File "/w/t.py", line 7, in f\n'
    text = frame + frame + "step 11 loss 0.25\n" + SOURCE[1] + "\n" + SOURCE[1] + "\nValueError: x\n"
    summary = quoted(STEPS + text)
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
    summary = quoted(end + head + after, 0)
    assert (summary.last, summary.points) == (1.8, 12)


def test_an_indented_log_is_lost_for_a_few_lines_at_most() -> None:
    stack = '  File "/w/t.py", line 7, in f\n    f()\n'
    after = "".join(f"      step {i} loss {3 - i / 100:.2f}\n" for i in range(1, 101))
    summary = quoted(stack + after, 0)
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
    summary = quoted(done.stdout.decode(), done.returncode)
    assert readings(summary) == EXPECTED
    assert summary.failure is not None and summary.failure.lines[-1].startswith("ZeroDivisionError")


def test_options_that_a_parser_refuses_are_no_readings() -> None:
    text = "usage: t.py [-h] [--loss LOSS]\nt.py: error: unrecognized arguments: --loss=1 --step 50\n"
    assert (quoted(text, 2).points, quoted(text, 2).steps) == (0, None)


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
