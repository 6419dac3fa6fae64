"""The series that `--detailed` and `--charts` take from a training log."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpudebug.core.answers.analyze import SamplesAnswer
from gpudebug.core.answers.log import LogAnswer
from gpudebug.core.answers.sample import DeviceMemory
from gpudebug.core.errors import GpudebugError
from gpudebug.engine.tools.analyze import analyze
from gpudebug.engine.tools.analyze.logs import log
from gpudebug.engine.tools.analyze.samples import samples


def test_each_printed_loss_has_its_step(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("".join(f"step {i} loss {3 - i / 10:.1f}\n" for i in range(1, 11)))
    found = log(path)
    assert found.more["series"]["loss"] == [[i, round(3 - i / 10, 1)] for i in range(1, 11)]
    assert found.more["series"]["stepped"] is True


def test_what_is_not_finite_is_unknown_and_what_has_no_step_is_numbered(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("".join(f"loss: {'nan' if i == 2 else 3 - i / 10}\n" for i in range(4)))
    series = log(path).more["series"]
    assert series["loss"] == [[0, 3.0], [1, 2.9], [2, None], [3, 2.7]]
    assert series["stepped"] is False


@pytest.mark.parametrize("text", ["[]", "{}", "[1, 2]", '"x"', '{"a": 1, "b": [1, 2]}\n'])
def test_json_that_says_nothing_is_no_log(tmp_path: Path, text: str) -> None:
    path = tmp_path / "some.json"
    path.write_text(text)
    with pytest.raises(GpudebugError, match="is JSON, but no trace") as told:
        log(path)
    assert told.value.file == str(path)
    assert told.value.next


def test_a_log_of_one_json_line_is_a_log(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text('{"step": 1, "loss": 2.5}\n')
    assert log(path).answer.as_json()["loss"]["points"] == 1


def test_work_and_rewards_are_answered_and_what_is_wrong_with_them_is_named(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("".join(f"total_timesteps: {512 * n}\nMean reward: {n}\n" for n in range(1, 9)))
    sound = log(path).answer
    assert isinstance(sound, LogAnswer)
    assert sound.work is not None
    assert sound.reward is not None
    assert (sound.work.unit, sound.work.name, sound.work.last) == (
        "environment steps",
        "total_timesteps",
        4096,
    )
    assert (sound.reward.name, sound.reward.trend, sound.reward.last) == ("Mean reward", "CONVERGING", 8)
    assert sound.notes == ()
    path.write_text(2 * path.read_text() + "Mean reward: nan\n")
    wrong = log(path).answer
    assert isinstance(wrong, LogAnswer)
    assert wrong.work is None
    assert wrong.reward is not None
    assert (wrong.reward.trend, wrong.reward.over) == ("NAN", None)
    assert wrong.notes == (
        "total_timesteps began again at 512 after 4096: what it counts is unknown",
        "Mean reward is NaN or infinite in some of its values",
    )


def test_a_device_that_idles_for_an_hour_reads_as_idle(tmp_path: Path) -> None:
    rows = "".join(f"{i * 0.5},0,0,10,16000\n" for i in range(7200))
    path = tmp_path / "idle.csv"
    path.write_text("elapsed,gpu_util,mem_util,mem_used_mb,mem_total_mb\n" + rows)
    found = samples(path)[0].answer
    assert isinstance(found, SamplesAnswer)
    (device,) = found.devices
    assert device.gpu_util is not None
    assert (device.gpu_util.mean, device.reason) == (0.0, None)
    assert device.memory == DeviceMemory(mean_mb=10, peak_mb=10)


LOSSES = (2.5, 2.1, 1.7, 1.2, 0.9, 0.7)


def rows(template: str) -> str:
    """A line for each loss, with {i} from 0, {n} from 10 in tens."""
    return "".join(template.format(loss=loss, i=i, n=10 * i + 10) for i, loss in enumerate(LOSSES))


RECORD = '{{"main/loss": {loss}, "validation/main/loss": 5.0, "iteration": {n}, "elapsed_time": {n}.0}},\n'
FILES = (
    ("tsv", "step\tloss\tlr\n" + rows("{n}\t{loss}\t0.1\t{i}\n"), (60, "steps"), None),
    ("csv", "epoch,accuracy,loss,val_loss\n" + rows("{i},0.5,{loss},0.3\n"), (6, "epochs"), None),
    (
        "empty cells",
        "epoch,step,train_loss,val_loss\n" + rows("{i},{n},{loss},\n{i},{n},,0.4\n"),
        (60, "steps"),
        None,
    ),
    (
        "lcurve",
        "#  step   rmse_val   rmse_trn   lr\n" + rows("{n}  9.0e+00  {loss}  1e-3\n"),
        (60, "steps"),
        None,
    ),
    ("no head", rows("{n},{loss},0.05\n"), (60, "steps"), "no names"),
    ("array", "[\n" + rows(RECORD)[:-2] + "\n]\n", (60, "iterations"), None),
    ("cut array", "[\n" + rows(RECORD) + '{"main/lo', (60, "iterations"), "cut off in record 7"),
    ("state", '{\n"log_history": [\n' + rows(RECORD)[:-2] + "]}", (60, "iterations"), None),
    ("noise", rows("step {n} loss {loss}\n") + "\x00\x01\x02" * 200, (60, "steps"), "binary content"),
)


@pytest.mark.parametrize(("text", "progress", "note"), [f[1:] for f in FILES], ids=[f[0] for f in FILES])
def test_a_training_file(tmp_path: Path, text: str, progress: tuple[int, str], note: str | None) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    answer = analyze([path])
    assert isinstance(answer, LogAnswer) and answer.progress is not None
    assert (answer.loss.trend, answer.loss.last) == ("CONVERGING", 0.7)
    assert (answer.progress.done, answer.progress.unit) == progress
    assert (note or "") in " ".join(answer.notes) and bool(note) == bool(answer.notes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("".join(f"{n},{n / 100},0.1\n" for n in range(10, 90, 10)), "does not name its columns"),
        ("".join(f"{n + 0.5}\n" for n in range(9)), "does not name its columns"),
        (
            "".join(f"2026-03-09 14:05:{n:02d}, 4.6%,205,{40 + n / 9:.1f}\n" for n in range(9)),
            "does not name",
        ),
        (
            "time,cabin_pressure\n" + "".join(f"{n},{0.99 - n / 50:.2f}\n" for n in range(30)),
            "names no loss, step or figure of a GPU: time, cabin_pressure",
        ),
        (
            "Metric,Value\nProject,p\nElapsed (s),23.5\n",
            "names no loss, step or figure of a GPU: Metric, Value",
        ),
        (
            "timestamp,jobs,queued\n"
            + "".join(f"2026-03-09 14:05:{n:02d},{9 + n % 3},4\n" for n in range(9)),
            "names no loss, step or figure of a GPU: timestamp, jobs, queued",
        ),
    ],
)
def test_a_table_of_other_names_or_of_none_is_no_log(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(GpudebugError, match=said):
        analyze([path])


def test_a_table_of_rewards_is_a_log(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("timestep,reward\n" + "".join(f"{100 * n},{n / 2}\n" for n in range(9)))
    assert isinstance(analyze([path]), LogAnswer)


def test_output_of_another_program_is_refused_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "gpu.txt"
    path.write_text("Job ID: 7\nCluster: alpha\nState: COMPLETED (exit code 0)\nCPU Efficiency: 62.50%\n")
    with pytest.raises(GpudebugError, match="is output of seff: it sums up a job"):
        analyze([path])
    path.write_text('{"series": [{"metric": "dcgm.gpu_utilization", "pointlist": [[1, 2]]}]}')
    with pytest.raises(GpudebugError, match="is output of Datadog"):
        analyze([path])


def test_a_log_that_begins_with_output_of_another_program_is_read(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("Job ID: 7\nCluster: alpha\n" + rows("step {n} loss {loss}\n"))
    assert isinstance(analyze([path]), LogAnswer)


@pytest.mark.parametrize("between", ["", "step {n} loss {loss}\n"])
def test_readings_without_a_header_are_named_wherever_they_are_in_a_log(tmp_path: Path, between: str) -> None:
    path = tmp_path / "train.log"
    reading = "2026/03/09 14:05:{n:02}.412, 0, 50 %, 400 MiB\n"
    path.write_text(rows("step {n} loss {loss}\n") * 40 + rows(between + reading))
    answer = analyze([path])
    assert isinstance(answer, LogAnswer)
    assert any("readings of nvidia-smi --query-gpu are in the file too" in note for note in answer.notes)


def test_a_log_in_utf_16_is_read(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(rows("step {n} loss {loss}\n"), "utf-16")
    answer = analyze([path])
    assert isinstance(answer, LogAnswer)
    assert (answer.loss.last, answer.steps) == (0.7, 60)


def test_a_page_that_was_saved_as_a_table_is_named(tmp_path: Path) -> None:
    path = tmp_path / "progress.csv"
    path.write_text("<!DOCTYPE html>\n<html><body>loss 0.3 step 5</body></html>\n")
    with pytest.raises(GpudebugError, match="HTML page"):
        analyze([path])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("progress.png", b"\x89PNG\r\n\x1a\n" + bytes(range(256))),
        ("debug.json", b'{\n    "batch_size": "2",\n    "num_epochs": "1000"\n}\n'),
    ],
)
def test_what_holds_no_figures_is_refused_with_the_log_beside_it(
    tmp_path: Path, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    (tmp_path / "notes.txt").write_text("Bought milk.\n")
    with pytest.raises(GpudebugError) as alone:
        analyze([tmp_path / name])
    assert alone.value.next is not None and alone.value.next.startswith("give ")
    written = tmp_path / "training log.txt"
    written.write_text("".join(f"Epoch {i}\ntrain_loss {1 / (i + 1):.3f}\n" for i in range(9)))
    with pytest.raises(GpudebugError) as caught:
        analyze([tmp_path / name])
    assert caught.value.next == f"gpudebug analyze '{written}'"


TEGRA = "03-09-2026 14:05:{i:02} RAM 4100/15656MB (lfb 120x4MB) CPU [20%@1510] GR3D_FREQ 9{i}% GPU@42C\n"


def test_readings_in_a_log_are_named(tmp_path: Path) -> None:
    """Two formats in one file: the log is read, the other is not lost without a word."""
    path = tmp_path / "train.log"
    path.write_text(rows("step {n} loss {loss}\n") + rows(TEGRA))
    answer = analyze([path])
    assert isinstance(answer, LogAnswer)
    assert (answer.loss.last, answer.steps) == (0.7, 60)
    assert any("readings of tegrastats are in the file too" in note for note in answer.notes)


def test_readings_among_noise_are_no_training_log(tmp_path: Path) -> None:
    path = tmp_path / "gpu.txt"
    path.write_text("connection lost, trying again\n" * 40 + rows(TEGRA))
    with pytest.raises(GpudebugError, match="holds readings of tegrastats"):
        analyze([path])


def test_a_damaged_file_without_a_line_of_training_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "gpu.txt"
    path.write_bytes(b"# starts here: words of some kind\n" * 40 + bytes(range(256)) * 40)
    with pytest.raises(GpudebugError, match="is damaged: binary content"):
        analyze([path])


def test_lines_out_of_order_have_no_trend(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    lines = [f"step {n} loss {2.5 - n / 50:.2f}\n" for n in range(1, 41)]
    path.write_text("".join(lines[n * 17 % 40] for n in range(40)))
    answer = analyze([path])
    assert isinstance(answer, LogAnswer)
    assert (answer.loss.trend, answer.loss.points) == ("UNKNOWN", 40)
    assert any("out of order" in note for note in answer.notes)
    path.write_text(
        "".join(f"epoch {e} step {n} loss {3 - e - n / 50:.2f}\n" for e in (0, 1) for n in range(1, 21))
    )
    again = analyze([path])
    assert isinstance(again, LogAnswer)
    assert (again.loss.trend, again.notes) == ("CONVERGING", ())


def test_what_is_damaged_in_a_log_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    page = "<!doctype html>\n<html>\n<body>step 3 loss 0.5</body>\n</html>\n"
    lines = [f"2026-01-02 {15 - n // 21}:00:{n:02} step {n} loss {2.5 - n / 50:.2f}\n" for n in range(1, 41)]
    other = [f"{{'loss': {2 - n / 50:.2f}}}\n" for n in range(1, 11)]
    path.write_text("".join(other) + page + "".join(lines))
    answer = analyze([path])
    assert isinstance(answer, LogAnswer)
    assert (answer.loss.last, answer.steps, answer.steps_per_s) == (1.7, 40, None)
    assert answer.notes == (
        "its clock goes back within the log: no rate is taken from its time stamps",
        "two logs seem to follow each other in the file: the loss is that of 40 values",
        "an HTML page in the file was left out",
    )


def test_a_log_of_no_campaign_loads_only_what_reads_it(tmp_path: Path) -> None:
    """Each of these takes longer to load than a page of a log to read."""
    (tmp_path / "train.log").write_text(rows("step {n} loss {loss}\n"))
    heavy = (
        "config",
        "compare",
        "records",
        "evidence",
        "answers.analyze",
        "answers.status",
        "recordings.runs",
    )
    code = (
        "import sys, pathlib; from gpudebug.engine.tools.analyze import analyze; "
        "from gpudebug.terminal.analyze import analyze as render; "
        "found = analyze([pathlib.Path('train.log')]); render(found); "
        f"print(found.steps, [m for m in {heavy} if f'gpudebug.core.{{m}}' in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "60 []\n"
