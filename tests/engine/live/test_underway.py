"""How far a run is: from its folder alone, whatever the size of its log, and never a guess."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.campaigns import make_campaign

from gpudebug.core.samples.row import COLUMNS
from gpudebug.edges import store
from gpudebug.engine.live import underway
from gpudebug.engine.live.underway import (
    Follower,
    RunningCommand,
    RunProgress,
    read_parts,
    running,
    time_left,
)

SINCE = "2026-11-21T10:00:00.500000+00:00"


def row(**cells: object) -> str:
    known = {"gpu_index": 0, "gpu_uuid": "CPU", "new_samples": 1, **cells}
    return ",".join(str(known.get(c, "")) for c in COLUMNS) + "\n"


class Run:
    """A run folder that grows."""

    def __init__(self, root: Path, name: str = "0001-h3", **facts: Any) -> None:
        self.path = root / "runs" / name
        self.path.mkdir(parents=True)
        record = {
            "format": 1,
            "campaign": "test",
            "role": "h3",
            "hypothesis": 3,
            "start": "2026-11-21T10:00:00+00:00",
            **facts,
        }
        (self.path / "run.json").write_text(json.dumps(record))
        (self.path / "samples.csv").write_text(",".join(COLUMNS) + "\n")
        (self.path / "train.log").write_text("")

    def grow(self, text: str, at: float, util: float | str = 50) -> None:
        with (self.path / "train.log").open("a") as f:
            f.write(text)
            size = f.tell()
        with (self.path / "samples.csv").open("a") as f:
            f.write(row(elapsed=at, gpu_util=util, log_bytes=size))

    def seal(self) -> None:
        (self.path / "manifest.json").write_text("{}")


def look(root: Path) -> RunProgress:
    return Follower(store.Workspace(root), SINCE).look()


def test_nothing_is_known_of_nothing(tmp_path: Path) -> None:
    assert look(tmp_path) == RunProgress()


def test_a_run_that_has_printed_nothing_has_no_figures(tmp_path: Path) -> None:
    Run(tmp_path)
    assert look(tmp_path) == RunProgress(run="0001-h3", role="h3", hypothesis=3)


def test_a_run_is_followed(tmp_path: Path) -> None:
    run = Run(tmp_path)
    follower = Follower(store.Workspace(tmp_path), SINCE)
    run.grow("step 10/100 loss 2.0\n", 1.0, 40)
    run.grow("step 20/100 loss 1.9\n", 2.0, 60)
    found = follower.look()
    assert (found.step, found.steps, found.loss) == (20, 100, 1.9)
    assert (found.elapsed_s, found.gpu_util) == (2.0, 50.0)
    assert found.left_s == pytest.approx(8.0)
    run.grow("step 70/100 loss 1.0\n", 7.0, 50)
    run.grow("", 8.0, 50)
    found = follower.look()
    assert found.step == 70 and found.left_s == pytest.approx(2.0)
    assert look(tmp_path) == found
    (run.path / "train.log").unlink()
    assert follower.look().step == 70


def test_of_several_devices_the_least_busy_one_is_known(tmp_path: Path) -> None:
    run = Run(tmp_path)
    with (run.path / "samples.csv").open("a") as f:
        for at in (1.0, 2.0):
            for index, util in enumerate((99.0, 4.0, 98.0)):
                f.write(row(elapsed=at, gpu_util=util, gpu_index=index, gpu_uuid=f"GPU-{index}"))
    found = look(tmp_path)
    assert found.gpu_util == pytest.approx(67)
    assert found.least is not None
    assert (found.least.index, found.least.value) == (1, 4.0)


def test_a_sealed_run_has_nothing_left(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.grow("step 10/100\n", 1.0)
    run.grow("step 20/100\n", 2.0)
    run.seal()
    assert look(tmp_path).left_s is None and look(tmp_path).runs_done == 1


def test_the_runs_of_this_command_are_counted(tmp_path: Path) -> None:
    Run(tmp_path, "0001-baseline-workload", start="2026-11-21T09:59:59+00:00").seal()
    Run(tmp_path, "0002-h3").seal()
    Run(tmp_path, "0003-baseline-workload", role="baseline-workload").seal()
    Run(tmp_path, "0004-h3")
    Run(tmp_path, "0005-sample", role="sample", campaign=None, hypothesis=None)
    (tmp_path / "runs" / "0006-h3").mkdir()
    (tmp_path / "runs" / "0007-h3").mkdir()
    (tmp_path / "runs" / "0007-h3" / "run.json").write_text("{torn")
    follower = Follower(store.Workspace(tmp_path), SINCE)
    found = follower.look()
    assert (found.run, found.runs_done) == ("0004-h3", 2)
    assert follower.seen == ["0002-h3", "0003-baseline-workload", "0004-h3"]


def test_a_total_that_only_the_beginning_tells(tmp_path: Path) -> None:
    run = Run(tmp_path)
    lines = [f"step: {n} loss: 1.0 {'.' * 80}\n" for n in range(1, 8001)]
    run.grow("Total optimization steps = 9000\n" + "".join(lines[:7000]), 700.0)
    run.grow("".join(lines[7000:7500]), 750.0)
    run.grow("".join(lines[7500:]), 800.0)
    assert (run.path / "train.log").stat().st_size > 4 * (underway._HEAD + underway._TAIL)
    found = look(tmp_path)
    assert found.step == 8000 and found.steps == 9000
    assert found.left_s == pytest.approx(100.0)


def test_each_look_reads_little(tmp_path: Path) -> None:
    run = Run(tmp_path)
    follower = Follower(store.Workspace(tmp_path), SINCE)
    follower.look()
    fed = []
    reader = follower._log.reader  # type: ignore[union-attr]
    original = reader.feed
    reader.feed = lambda data, time=None: (fed.append(len(data)), original(data, time))[1]  # type: ignore[method-assign, assignment, func-returns-value]
    for part in range(3):
        run.grow("step 5/10 loss 1.0\n" * 100_000, part + 1.0)
        follower.look()
    assert sum(fed) <= 3 * (underway._TAIL + underway._HEAD + 1)
    assert follower.look().step == 5


def test_a_flood_without_steps_is_unknown(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.grow("evaluating the model again and again\n" * 10_000, 5.0, "")
    found = look(tmp_path)
    assert (found.step, found.steps, found.left_s, found.gpu_util) == (None, None, None, None)
    assert found.elapsed_s == 5.0


@pytest.mark.parametrize("rows", [10, 500, 20_000])
def test_a_long_table_is_read_in_parts(tmp_path: Path, rows: int) -> None:
    path = tmp_path / "samples.csv"
    table = [row(elapsed=f"{n / 5:.1f}", gpu_util=100 * n / rows, log_bytes=n) for n in range(rows)]
    path.write_text(",".join(COLUMNS) + "\n" + "".join(table) + table[-1][:7])
    found = read_parts(path)
    assert len(found.rows) <= underway._SLICES * underway._SLICE / 20
    values = [r.gpu_util for r in found.rows if r.gpu_util is not None]
    assert sum(values) / len(values) == pytest.approx(50, abs=6)
    assert found.rows[-1].elapsed == round((rows - 1) / 5, 1)
    assert [r.elapsed for r in found.rows] == sorted(r.elapsed for r in found.rows)


@pytest.mark.parametrize("content", ["", "garbage\n", "elapsed,gpu_util\nx,y\n", "elapsed"])
def test_a_table_that_is_none_has_no_rows(tmp_path: Path, content: str) -> None:
    path = tmp_path / "samples.csv"
    path.write_text(content)
    assert read_parts(path).rows == []


@pytest.mark.parametrize(
    "marks, total, elapsed, left",
    [
        ([], 100, 5.0, None),
        ([(2.0, 20)], None, 2.0, None),
        ([(2.0, 20)], 100, None, None),
        ([(2.0, 20)], 100, 2.0, 8.0),
        ([(2.0, 20)], 100, 5.0, 5.0),
        ([(2.0, 20)], 100, 500.0, None),
        ([(2.0, 20), (4.0, 60)], 100, 4.0, 2.0),
        ([(2.0, 120)], 100, 4.0, None),
        ([(2.0, 100)], 100, 2.0, None),
        ([(0.0, 0)], 100, 1.0, None),
        ([(2.0, 60), (4.0, 10)], 100, 4.0, 36.0),
    ],
)
def test_time_left(
    marks: list[tuple[float, int]], total: int | None, elapsed: float | None, left: float | None
) -> None:
    assert time_left(marks, total, elapsed) == (left if left is None else pytest.approx(left))


@given(
    rate=st.floats(0.01, 1000),
    began=st.floats(0, 1e5),
    first=st.integers(0, 10_000),
    steps=st.integers(1, 10_000),
    rest=st.integers(1, 10_000),
)
def test_at_an_even_rate_the_time_left_is_exact(
    rate: float, began: float, first: int, steps: int, rest: int
) -> None:
    at = began + steps / rate
    left = time_left([(began, first), (at, first + steps)], first + steps + rest, at)
    assert left == pytest.approx(rest / rate, rel=1e-6, abs=1e-6 * (1 + at))


def test_who_runs_something(tmp_path: Path) -> None:
    workspace = store.Workspace(tmp_path)
    assert underway.underway(workspace) is None
    assert underway.progress_of(workspace) is None
    holder = {"pid": 5, "command": "gpudebug next", "since": SINCE, "session": "a"}
    with workspace.claim(holder):
        assert underway.underway(workspace) == RunningCommand(5, "gpudebug next", "a", SINCE)
        with store.Detached(workspace.private).take({**holder, "pid": 6, "session": None, "id": "7"}):
            assert underway.underway(workspace) == RunningCommand(6, "gpudebug next", None, SINCE, "7")
            assert underway.progress_of(workspace) == RunProgress()
        with store.Detached(workspace.private).take({"pid": "?"}):
            assert underway.underway(workspace) == RunningCommand(None, "gpudebug", None, "")
    assert underway.underway(workspace) is None


def test_the_answer_says_what_runs_and_what_to_do(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "repo")
    workspace = store.Workspace(campaign.folder)
    found = RunningCommand(5, "gpudebug next --detach", "a", SINCE, "7")
    empty = running(workspace, found, RunProgress()).as_json()
    assert (empty["action"], empty["campaign"], empty["run"]) == ("running", "test", None)
    assert "the cycle is under way" in empty["why"] and "session a" in empty["why"]
    Run(campaign.folder, "0001-baseline-reference", role="baseline-reference", hypothesis=None, campaign="x")
    of_run = running(workspace, found, Follower(workspace, SINCE).look()).as_json()
    assert of_run["campaign"] == "x" and "the baseline reference is under way" in of_run["why"]
    assert of_run["next_command"] == "gpudebug wait --for 9m" and of_run["detached"] is True
    assert [Path(f).name for f in of_run["files"]] == ["train.log", "7.log"]
    assert json.loads(json.dumps(of_run)) == of_run


def test_the_live_line_shows_the_same() -> None:
    shown = underway.live(
        RunProgress(run="0001-h3", step=5, steps=10, elapsed_s=3.0, gpu_util=20.0, left_s=3.0, loss=1.0)
    )
    assert (shown.label, shown.step, shown.total_steps, shown.left) == ("0001-h3", 5, 10, 3.0)
    assert underway.live(RunProgress()).label == "starting"
