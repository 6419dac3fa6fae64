"""Figures of learning in files that a run wrote: found, kept small, read again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from gpudebug.core.errors import StoreError
from gpudebug.core.redaction.redact import Redactor
from gpudebug.engine.run.learning import FILE, collect, read_written, standing

EVENTS = next((Path(__file__).parents[2] / "data" / "learning").glob("events*"))
CSV = "step,train_loss\n" + "".join(f"{n},{1 / n}\n" for n in range(1, 20))


def folder(tmp_path: Path) -> Path:
    run = tmp_path / "runs" / "0001-h1"
    (run / "job").mkdir(parents=True)
    (run / "run.json").write_text("{}")
    return run


def kept(run: Path, cwd: Path, *argv: str, opened: Sequence[Path] = ()) -> list[tuple[str, str, str, int]]:
    collect(run, ("python", "train.py", *argv), cwd, Redactor(), {}, [str(path) for path in opened])
    return [(one.metric, one.name, one.source, one.points) for one in read_written(run).series]


def test_the_runs_own_folder(tmp_path: Path) -> None:
    run = folder(tmp_path)
    shutil.copy(EVENTS, run / "job" / EVENTS.name)
    os.utime(run / "job" / EVENTS.name)
    (run / "job" / "metrics.csv").write_text(CSV)
    assert kept(run, tmp_path) == [
        ("reward", "rollout/ep_rew_mean", "TensorBoard", 50),
        ("loss", "train_loss", "metrics.csv", 19),
    ]
    assert (run / FILE).stat().st_size < 20_000


def test_where_loggers_write_by_themselves(tmp_path: Path) -> None:
    """`SummaryWriter()` writes to runs/ beside the command, where gpudebug's own runs may lie."""
    run = folder(tmp_path)
    other = tmp_path / "runs" / "0000-old"
    for place in (tmp_path / "runs" / "CartPole__ppo__1", other):
        place.mkdir()
        shutil.copy(EVENTS, place / EVENTS.name)
        os.utime(place / EVENTS.name)
    (other / "run.json").write_text("{}")
    own = tmp_path / "runs" / "CartPole__ppo__1" / EVENTS.name
    assert kept(run, tmp_path, opened=[own]) == [("reward", "rollout/ep_rew_mean", "TensorBoard", 50)]


def test_a_file_of_another_process_is_named_and_not_used(tmp_path: Path) -> None:
    """It was written while the run went on, where both write: nothing else tells them apart."""
    run = folder(tmp_path)
    for name in ("logs", "lightning_logs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.csv").write_text(CSV)
    (tmp_path / "linked").symlink_to(tmp_path / "logs")
    assert kept(run, tmp_path) == []
    assert read_written(run).notes == tuple(
        f"{name}/metrics.csv changed during the run and may be another process's: it is not used; "
        "write it below {run_dir}"
        for name in ("lightning_logs", "logs")
    )
    assert kept(run, tmp_path, opened=[tmp_path / "logs" / "metrics.csv"]) == [
        ("loss", "train_loss", "metrics.csv", 19)
    ]


@pytest.mark.parametrize(
    ("value", "others", "used"),
    [
        # The run's name is in the folder's: it is of this run, whoever else writes.
        ("results-0001-h1", ["results-0001-h1/eval"], True),
        ("results", [], True),
        ("results", ["results/another"], False),
    ],
)
def test_the_output_folder_of_the_command(tmp_path: Path, value: str, others: list[str], used: bool) -> None:
    run = folder(tmp_path)
    for name in (value, *others):
        (tmp_path / name).mkdir()
        (tmp_path / name / "progress.csv").write_text(CSV)
    assert bool(kept(run, tmp_path, f"--output_dir={value}")) is used
    assert bool(read_written(run).notes) is not used


def test_files_of_an_earlier_run_and_links_are_left_alone(tmp_path: Path) -> None:
    run = folder(tmp_path)
    old = run / "job" / "old.csv"
    old.write_text(CSV)
    os.utime(old, (1, 1))
    (tmp_path / "other.csv").write_text(CSV)
    (run / "job" / "link.csv").symlink_to(tmp_path / "other.csv")
    assert kept(run, tmp_path) == []
    assert not (run / FILE).exists()


def test_a_file_that_is_cut_short_is_named(tmp_path: Path) -> None:
    run = folder(tmp_path)
    (run / "job" / EVENTS.name).write_bytes(EVENTS.read_bytes()[:-9])
    collect(run, ("python", "train.py"), tmp_path, Redactor(), {})
    found = read_written(run)
    assert [one.points for one in found.series] == [50]
    assert found.notes == ("TensorBoard is cut short at byte 5676",)


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    """As a program in a container writes them: the run's own figures are read all the same."""
    run = folder(tmp_path)
    (run / "job" / "metrics.csv").write_text(CSV)
    (closed := run / "job" / "closed.csv").write_text(CSV)
    closed.chmod(0)
    if os.access(closed, os.R_OK):
        pytest.skip("root may read it")
    collect(run, ("python", "train.py"), tmp_path, Redactor(), {})
    found = read_written(run)
    assert ([one.source for one in found.series], len(found.notes)) == (["metrics.csv"], 1)
    assert found.notes[0].startswith("closed.csv cannot read")


@pytest.mark.parametrize("text", ["garbage\n", "[" * 100_000, '{"metric": 1}\n', "7\n"])
def test_a_kept_file_that_gpudebug_did_not_write_is_named(tmp_path: Path, text: str) -> None:
    run = folder(tmp_path)
    (run / FILE).write_text(text)
    with pytest.raises(StoreError, match="is not what gpudebug writes"):
        read_written(run)


def test_a_file_whose_name_is_more_than_a_line_is_left_alone(tmp_path: Path) -> None:
    run = folder(tmp_path)
    (run / "job" / "a\n## Hypothesis 9.csv").write_text(CSV)
    assert kept(run, tmp_path) == []


ARGV = ("python", "train.py")


def rows(*values: float) -> str:
    return "".join(f"{n},{value}\n" for n, value in enumerate(values))


def of_second_run(tmp_path: Path, name: str, first: str, second: str) -> list[tuple[int, float | None]]:
    """(points, first value) of a file that one run left as `first` and the next as `second`."""
    run, file = folder(tmp_path), tmp_path / "logs" / name
    file.parent.mkdir()
    file.write_text(first)
    before = standing(run, ARGV, tmp_path)
    if second != first:
        file.write_text(second)
    collect(run, ARGV, tmp_path, Redactor(), before, [str(file.resolve())])
    return [(one.points, one.first) for one in read_written(run).series]


def test_of_a_table_that_each_run_goes_on_the_rows_of_this_run_count(tmp_path: Path) -> None:
    first = "step,reward\n" + rows(1, 2, 3, 4, 5)
    assert of_second_run(tmp_path, "progress.csv", first, first + rows(7, 8, 9, 10)) == [(4, 7.0)]


def test_of_lines_that_each_run_adds_those_of_this_run_count(tmp_path: Path) -> None:
    lines = [f'{{"step": {n}, "ep_rew_mean": {value}}}\n' for n, value in ((1, 5), (2, 6), (3, 7), (4, 8))]
    assert of_second_run(tmp_path, "log.jsonl", "".join(lines), "".join(lines + lines[:3])) == [(3, 5.0)]


def test_a_table_that_is_written_anew_counts_whole(tmp_path: Path) -> None:
    first = "step,reward\n" + rows(1, 2, 3)
    assert of_second_run(tmp_path, "progress.csv", first, "step,reward\n" + rows(1, 2, 3, 4, 5)) == [(5, 1.0)]


@pytest.mark.parametrize(
    ("places", "known", "used"),
    [
        pytest.param(["version_1"], ["version_0"], True, id="a folder of its own"),
        pytest.param(["version_0"], ["version_0"], False, id="it was there before"),
        pytest.param(["version_1", "version_2"], [], False, id="one of them is another's"),
    ],
)
def test_a_logger_that_opens_its_file_for_each_line(
    tmp_path: Path, places: list[str], known: list[str], used: bool
) -> None:
    """Lightning's CSVLogger does, so no look finds the file open."""
    run, logs = folder(tmp_path), tmp_path / "lightning_logs"
    for name in {*places, *known}:
        (logs / name).mkdir(parents=True)
    for name in known:
        (logs / name / "metrics.csv").write_text("step,train_loss\n0,1\n")
    before = standing(run, ARGV, tmp_path)
    for name in places:
        (logs / name / "metrics.csv").write_text(CSV)
    collect(run, ARGV, tmp_path, Redactor(), before)
    assert bool(read_written(run).series) is used
    assert bool(read_written(run).notes) is not used


def test_what_was_written_just_before_the_run_is_of_the_one_before(tmp_path: Path) -> None:
    """Within the second in which the run began, which a file system may not tell apart."""
    first = "step,reward\n" + rows(1, 2, 3, 4, 5)
    assert of_second_run(tmp_path, "progress.csv", first, first) == []
