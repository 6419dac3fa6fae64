"""CSV and JSONL as training loops write them."""

from __future__ import annotations

import json

import pytest

from gpudebug.core.trainlog import written_tables
from gpudebug.core.trainlog.logger_files import WrittenScalars
from gpudebug.core.trainlog.written_tables import head_of_csv, of_last_run, read_csv, read_jsonl, records_in

SB3 = """time/fps,time/total_timesteps,rollout/ep_rew_mean,train/loss
500,512,20.5,
490,1024,21.5,4.5
480,1536,30.0,3.5
"""
LIGHTNING = """epoch,step,train_loss,val_loss
0,9,2.5,
0,19,,2.0
1,29,1.5,
"""


def test_columns_over_the_counter_of_environment_steps() -> None:
    found = read_csv(SB3)
    assert found.values["rollout/ep_rew_mean"] == [(512, 20.5), (1024, 21.5), (1536, 30.0)]
    assert found.values["train/loss"] == [(1024, 4.5), (1536, 3.5)]


def test_columns_over_steps() -> None:
    assert read_csv(LIGHTNING).values["train_loss"] == [(9, 2.5), (29, 1.5)]


def test_a_table_that_ends_in_the_middle_of_a_line_is_named() -> None:
    found = read_csv(SB3[:-5])
    assert found.note == "ends in the middle of a line"
    assert found.values["rollout/ep_rew_mean"] == [(512, 20.5), (1024, 21.5)]


def test_objects_a_line() -> None:
    lines = ['{"step": 1, "train": {"loss": 2.0}}', '{"step": 2, "train": {"loss": NaN}}', '{"step": 3, "tr']
    found = read_jsonl("\n".join(lines))
    assert str(found.values["train.loss"]) == "[(1, 2.0), (2, nan)]"
    assert found.note == "ends in the middle of a line"
    assert read_jsonl("no\n" + lines[0]).note == "line 1 is no JSON"
    assert read_jsonl("").values == {}


def test_rows_before_a_quote_that_is_never_closed_are_read() -> None:
    found = read_csv(f'{SB3}470,2048,31.0,"{"x" * 200_000}\n')
    assert found.values["rollout/ep_rew_mean"] == [(512, 20.5), (1024, 21.5), (1536, 30.0)]
    assert found.note is not None
    assert found.note.startswith("cannot be read from line 5 on")


@pytest.mark.parametrize("step", ["Infinity", "1e999", "NaN", "-Infinity"])
def test_a_step_that_is_no_number_is_no_position(step: str) -> None:
    table = read_csv(f"step,loss\n1,3.0\n{step},2.0\n3,1.0\n")
    lines = read_jsonl("".join(f'{{"step": {at}, "loss": 2.0}}\n' for at in ("1", step, "3")))
    assert [at for at, _ in table.values["loss"]] == [1, 1, 3]
    assert [at for at, _ in lines.values["loss"]] == [1, 1, 3]


def test_whole_numbers_of_any_size_and_objects_of_any_depth() -> None:
    found = read_jsonl(f'{{"step": 1, "loss": 1{"0" * 400}}}\n{"[" * 100_000}\n{{"step": 2, "loss": 2.0}}\n')
    assert found.values["loss"] == [(2, 2.0)]
    assert found.note == "line 2 is no JSON"


def test_the_name_of_a_column_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of 20000 columns took a minute to read."""
    looked: list[str] = []
    monkeypatch.setattr(written_tables, "quantity", looked.append)
    found = read_csv("step,loss\n" + "1,2.0\n" * 50)
    assert (looked, len(found.values["loss"])) == (["step", "loss"], 50)


def as_csv(data: bytes) -> WrittenScalars:
    return read_csv(data.decode())


def test_rows_that_a_run_adds_begin_to_count_again() -> None:
    """Some programs write the head again."""
    first = b"# of a run\nstep,loss\n1,3.0\n2,2.0\n"
    assert head_of_csv(first) == b"step,loss\n"
    for added in (b"1,5.0\n2,4.0\n", b"step,loss\n1,5.0\n2,4.0\n"):
        found = of_last_run(first, added, as_csv, head_of_csv(first))
        assert found.values["loss"] == [(1, 5.0), (2, 4.0)]


def test_rows_that_count_on_are_of_one_run() -> None:
    found = of_last_run(b"step,loss\n1,3.0\n2,2.0\n", b"3,1.0\n", as_csv, b"step,loss\n")
    assert found.values["loss"] == [(1, 3.0), (2, 2.0), (3, 1.0)]


def test_the_records_of_a_document_are_those_of_a_training() -> None:
    rows = '{"a": {"loss": 2.0}, "step": 1}, {"a": {"loss": 1.0}, "step": 2}'
    assert records_in(f"[{rows}]") == ([{"a.loss": 2.0, "step": 1}, {"a.loss": 1.0, "step": 2}], None)
    cut = records_in(f'{{"best": [{{"x": 1}}], "log": [{rows}, {{"st')
    assert (len(cut[0]), cut[1]) == (2, "is cut off in record 3")
    assert records_in('[{"ph": "X", "ts": 1, "step": 2, "loss": 0.1}]') == ([], None)
    assert records_in("[]") == ([], None)


def test_a_document_of_columns_events_or_a_summary_has_records() -> None:
    columns = '{"train_losses": [2.5, 2.1], "val": [3], "name": "x"}'
    assert records_in(columns) == ([{"train_losses": 2.5, "val": 3}, {"train_losses": 2.1}], None)
    summary = '{"train": {"loss": 0.5}, "step": 9}'
    assert records_in(summary) == ([{"train.loss": 0.5, "step": 9}], None)
    events = [
        {"iter": 3, "metric": "loss", "variant": "train", "value": 2.5, "type": "scalar"},
        {"iter": 3, "metric": ":monitor:gpu", "variant": "gpu_0_utilization", "value": 90.0},
    ]
    line = json.dumps(events)
    assert records_in(f"{line}\n{line[:40]}") == (
        [{"iter": 3, "train/loss": 2.5}],
        "ends in the middle of a line",
    )
    for other in (
        '{"accuracy": 0.5, "step": 3}',
        '{"loss": "mse", "step": 3}',
        '{"loss": 0.5}',
        '{"loss": [',
    ):
        assert records_in(other) == ([], None)
