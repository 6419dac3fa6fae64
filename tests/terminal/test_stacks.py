"""Where the threads were, as people read it."""

from __future__ import annotations

from tests.support.stack_lines import evidence, told

from gpudebug.terminal.stacks import places


def test_the_hottest_lines_of_each_kind_of_thread() -> None:
    worker = told(2, of="workers", s=0.75, cpu=0.0)
    found = evidence(told() + worker + worker.replace('"frames"', '"why": "an error", "x"'))
    assert places(found.model_dump(mode="json")) == [
        "Where the training thread is (40 samples, running in 50% of the time):",
        "   50%  runs   data       train.py:7 main  image.resize(size)",
        "   25%  waits  other      train.py:9 main  time.sleep(1)",
        "Where loader workers are (40 samples, running in 0% of the time):",
        "   67%  runs   data       train.py:7 main  image.resize(size)",
        "   33%  waits  other      train.py:9 main  time.sleep(1)",
        "  note: stacks end early: an error",
    ]


def test_long_names_and_lines_are_cut_and_little_is_left_out() -> None:
    frames = ["job/train.py:" + "f" * 90, "job/train.py:g"]
    stacks = [["other", [0], 7, 0.995, 0, 1], ["other", [1], 9, 0.005, 0, 1]]
    found = evidence(told(frames=frames, stacks=stacks, code={"0:7": "x" * 100, "1:9": "y"}))
    heading, only = places(found.model_dump(mode="json"))
    assert "50%" in heading
    assert only == f"  100%  waits  other      train.py:7 {'f' * 28}…  {'x' * 59}…"


def test_nothing_is_said_of_nothing() -> None:
    assert places(None) == []
    assert places({"training": None, "workers": None, "notes": []}) == []


def test_evaluation_is_shown_as_a_whole() -> None:
    frames = ["job/train.py:main", "job/train.py:estimate_loss", "job/model.py:Net.forward"]
    rows = [["forward", [0, 2], 7, 0.6, 0.6, 20], ["eval", [0, 1, 2], 7, 0.4, 0.4, 10]]
    found = evidence(told(frames=frames, stacks=rows, code={"2:7": "x = self.one(x)"}))
    lines = places(found.model_dump(mode="json"))
    assert lines[1] == "   40%  of it in evaluation, called by train.py estimate_loss"
    assert "model.py:7" in lines[2]
