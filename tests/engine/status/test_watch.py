"""What there is to see of a campaign: each state, each fact from files, and nothing that stops the seeing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, make_campaign
from tests.support.growing import HOLDER, GrowingRun

from gpudebug.core.answers.status import NextAction
from gpudebug.core.errors import ConfigError
from gpudebug.edges import store
from gpudebug.engine.status import watch
from gpudebug.engine.status.status import status
from gpudebug.engine.status.watch import Looker, WatchState, step_rate

PROGRESS = """\
# GPU utilization debugging: test

## Baselines

### Baseline: workload
- **GPU util**: 27.4% (95% CI 26.1 to 28.6, 4 runs)
- **Throughput**: 3.2 steps/s

## Hypotheses

### Hypothesis 3: Too few workers
- **Intervention**: --set --lr=0.2
- **Status**: TESTING
"""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_campaign(tmp_path_factory.mktemp("looking") / "repo", progress=PROGRESS).folder


@pytest.fixture
def campaign(original: Path, tmp_path: Path) -> Campaign:
    return Campaign(Path(shutil.copytree(original, tmp_path / "repo")))


@contextmanager
def under_way(campaign: Campaign) -> Iterator[None]:
    workspace = store.Workspace(campaign.folder)
    workspace.runs.mkdir(exist_ok=True)
    with workspace.claim(dict(HOLDER)):
        yield


def test_a_run_that_is_under_way(campaign: Campaign) -> None:
    run = GrowingRun(campaign.folder)
    looker = Looker(campaign.folder)
    with under_way(campaign):
        for n in range(1, 6):
            run.grow(f"step {10 * n}/100 loss {2 - n / 10}\n", float(n), 40 + n, 80)
            run.beat(n, 10 * n, data_s=0.4 * n)
            seen = looker.look()
    assert (seen.state, seen.over, seen.campaign, seen.title) == (
        WatchState.RUNNING,
        False,
        "test",
        "Too few workers",
    )
    assert seen.holder is not None and (seen.holder.pid, seen.holder.session) == (5, "a")
    p = seen.progress
    assert (p.run, p.step, p.steps, p.loss, p.left_s, p.elapsed_s) == ("0001-h3", 50, 100, 1.5, 5.0, 5.0)
    assert seen.steps_per_s == pytest.approx(10) and seen.step_unit == "step"
    assert seen.data_wait_share == pytest.approx(0.4)
    assert (seen.quiet_s, seen.problems, seen.next) == (0.0, (), None)
    assert [d.now.gpu_util for d in seen.devices] == [pytest.approx(44), 80.0]
    first = seen.devices[0]
    assert (first.name, first.kind, first.power_limit_w, first.now.power_w) == (
        "NVIDIA A100",
        "nvml",
        400.0,
        212.0,
    )
    assert (
        seen.log[-1] == "step 50/100 loss 1.5" and seen.log_bytes == (run.path / "train.log").stat().st_size
    )
    assert seen.baseline is not None and seen.baseline["throughput"] == "3.2 steps/s"


def test_a_training_that_prints_no_step_tells_of_itself(campaign: Campaign) -> None:
    run = GrowingRun(campaign.folder)
    with under_way(campaign):
        for n in range(1, 4):
            run.grow("working\n", float(n))
            run.beat(n, 5 * n, data_s=0.0)
        seen = Looker(campaign.folder).look()
    assert (seen.progress.step, seen.steps_per_s, seen.step_unit) == (15, pytest.approx(5), None)
    assert seen.data_wait_share == 0.0


def test_without_a_word_from_inside_the_log_tells_of_waiting(campaign: Campaign) -> None:
    run = GrowingRun(campaign.folder)
    for n in range(1, 30):
        run.grow(f"step {n}/100 loss 1.0 data_s:0.030 updt_s:0.010\n", float(n))
    with under_way(campaign):
        assert Looker(campaign.folder).look().data_wait_share == pytest.approx(0.75)


def test_a_device_without_a_reading_yet_is_named(campaign: Campaign) -> None:
    GrowingRun(campaign.folder)
    with under_way(campaign):
        seen = Looker(campaign.folder).look()
    assert [(d.now.index, d.name, d.now.gpu_util, d.now.mem_total_mb) for d in seen.devices] == [
        (0, "NVIDIA A100", None, 81920.0),
        (1, "NVIDIA A100", None, 81920.0),
    ]
    assert (seen.progress.elapsed_s, seen.steps_per_s, seen.data_wait_share, seen.quiet_s) == (None,) * 4


def test_nothing_under_way_and_no_runs_yet(campaign: Campaign) -> None:
    campaign.progress.write_text("## Hypotheses\n")
    seen = Looker(campaign.folder).look()
    assert (seen.state, seen.over, seen.progress.run) == (WatchState.IDLE, True, None)
    assert seen.next == status(campaign.folder).next


def test_after_a_run_and_before_the_next(campaign: Campaign) -> None:
    campaign.progress.write_text("## Hypotheses\n")
    looker = Looker(campaign.folder)
    with under_way(campaign):
        assert looker.look().state is WatchState.STARTING
        starting = looker.look()
        assert starting.next is not None and starting.holder is not None
        run = GrowingRun(campaign.folder)
        run.grow("step 1/2\n", 1.0)
        assert looker.look().state is WatchState.RUNNING
        run.end()
        seen = looker.look()
        assert (seen.state, seen.outcome, seen.over) == (WatchState.BETWEEN, "COMPLETED", False)
        assert looker.look().next is not None
        other = GrowingRun(campaign.folder, "0002-h3")
        other.grow("step 2/2\n", 1.0)
        seen = looker.look()
        assert (seen.state, seen.progress.run, seen.progress.step, seen.progress.runs_done) == (
            WatchState.RUNNING,
            "0002-h3",
            2,
            1,
        )
        other.end("CRASHED", failure={"kind": "oom_gpu"})
    seen = looker.look()
    assert (seen.state, seen.outcome, seen.reason) == (WatchState.IDLE, "CRASHED", "oom_gpu")
    assert seen.log == ("step 2/2",) and seen.next is not None


def test_a_run_that_nothing_works_on_any_more_is_not_live(campaign: Campaign) -> None:
    campaign.progress.write_text("## Hypotheses\n")
    GrowingRun(campaign.folder).grow("step 1/2\n", 1.0)
    GrowingRun(campaign.folder, "0002-sample", role="sample", hypothesis=None)
    looker = Looker(campaign.folder)
    seen = looker.look()
    assert (seen.state, seen.over, seen.progress.run, seen.holder) == (
        WatchState.UNFINISHED,
        True,
        "0001-h3",
        None,
    )
    assert seen.next is not None and seen.next.action == "recover"
    again = looker.look()
    assert (again.progress, again.next) == (seen.progress, seen.next)


def test_a_run_that_is_removed_meanwhile(campaign: Campaign) -> None:
    run = GrowingRun(campaign.folder)
    run.grow("step 1/2\n", 1.0)
    looker = Looker(campaign.folder)
    with under_way(campaign):
        assert looker.look().state is WatchState.RUNNING
        shutil.rmtree(run.path)
        assert looker.look().state is WatchState.STARTING
        again = GrowingRun(campaign.folder)
        again.grow("step 9/9\n", 1.0)
        assert looker.look().progress.step == 9


def test_a_record_that_cannot_be_read_is_a_line(campaign: Campaign) -> None:
    GrowingRun(campaign.folder).grow("step 1/2\n", 1.0)
    torn = GrowingRun(campaign.folder, "0002-h3")
    (torn.path / "run.json").write_text('{"torn')
    looker = Looker(campaign.folder)
    with under_way(campaign):
        seen = looker.look()
    assert (seen.state, seen.progress.run) == (WatchState.RUNNING, "0001-h3")
    assert len(seen.problems) == 1 and "0002-h3/run.json: not readable as JSON" in seen.problems[0]
    idle = looker.look()
    assert (idle.state, idle.progress.run, idle.problems) == (WatchState.UNFINISHED, "0001-h3", seen.problems)
    for content in ("[1]", '{"devices": 5, "start": 7, "outcome": [], "failure": "x", "hypothesis": "y"}'):
        (torn.path / "run.json").write_text(content)
        with under_way(campaign):
            looker.look()
        looker.look()


def test_what_becomes_broken_while_it_is_watched_is_a_line(campaign: Campaign) -> None:
    run = GrowingRun(campaign.folder)
    looker = Looker(campaign.folder)
    whole = campaign.config.read_text()
    with under_way(campaign):
        run.grow("step 1/2\n", 1.0)
        campaign.config.write_text("campaign: [\n")
        seen = looker.look()
        assert seen.state is WatchState.RUNNING and seen.progress.step == 1
        assert "gpudebug.yaml" in seen.problems[0]
    seen = looker.look()
    assert len(seen.problems) == 1 and seen.next is None
    campaign.config.write_text(whole)
    campaign.progress.write_text(PROGRESS.replace("Too few workers", "Other title"))
    with under_way(campaign):
        seen = looker.look()
        assert (seen.problems, seen.title) == ((), "Other title")
    shutil.rmtree(campaign.folder)
    assert looker.look().problems


def test_a_folder_without_a_campaign_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        Looker(tmp_path)


def test_next_is_asked_again_only_where_something_changed(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign.progress.write_text("## Hypotheses\n")
    asked = []
    found = replace(status(campaign.folder), next=NextAction(action="test", why="w", hypothesis=1, role=None))
    monkeypatch.setattr("gpudebug.engine.status.status.status", lambda folder: asked.append(folder) or found)
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    looker = Looker(campaign.folder)
    for _ in range(3):
        assert looker.look().next == found.next
    assert len(asked) == 1
    campaign.progress.write_text("## Hypotheses\n\nAgain\n")
    looker.look()
    assert len(asked) == 2
    now += watch.NEXT_EVERY_S
    looker.look()
    assert len(asked) == 3


def test_secrets_of_the_command_are_in_nothing_that_is_seen(tmp_path: Path) -> None:
    made = make_campaign(
        tmp_path / "repo", command="python train.py --api_key=opensesame42", progress=PROGRESS
    )
    run = GrowingRun(made.folder)
    run.grow("using opensesame42\n", 1.0)
    with store.Workspace(made.folder).claim({**HOLDER, "command": "gpudebug next"}):
        seen = Looker(made.folder).look()
    assert seen.log == ("using [redacted]",) and "opensesame42" not in repr(seen)


def test_each_look_reads_little(campaign: Campaign) -> None:
    run = GrowingRun(campaign.folder)
    run.grow("step 1/9 loss 1.0\n", 1.0)
    looker = Looker(campaign.folder)
    for name in ("samples.csv", "train.log"):
        os.truncate(run.path / name, 3 << 30)
    run.grow("\nstep 5/9 loss 0.5\n", 2.0, 10)
    with under_way(campaign):
        seen = looker.look()
        run.grow("step 6/9 loss 0.4\n", 3.0, 30)
        again = looker.look()
    assert seen.log_bytes is not None and seen.log_bytes > 3 << 30
    assert seen.log[-1] == "step 5/9 loss 0.5" and again.progress.step == 6
    assert again.devices[0].now.gpu_util == 30.0


@pytest.mark.parametrize(
    ("marks", "rate"),
    [
        ([], None),
        ([(1.0, 5)], None),
        ([(1.0, 5), (3.0, 9)], 2.0),
        ([(0.0, 0), (100.0, 100), (130.0, 400)], 10.0),
        ([(0.0, 0), (100.0, 100)], 1.0),
        ([(1.0, 5), (3.0, 5)], None),
        ([(1.0, 50), (3.0, 5)], None),
        ([(3.0, 5), (3.0, 9)], None),
    ],
)
def test_the_rate_is_of_the_last_minute(marks: list[tuple[float, int]], rate: float | None) -> None:
    assert step_rate(marks) == rate
