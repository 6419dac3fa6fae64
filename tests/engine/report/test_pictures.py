"""`show H --plot F.png`, and the pictures of a report's data, on campaigns of recordings."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.campaign_data import a_hypothesis, campaign_data
from tests.support.campaigns import Campaign, contents
from tests.support.commands import command
from tests.support.pictures import painted, size, without_matplotlib

from gpudebug.edges import charts
from gpudebug.edges.charts import canvas, hypothesis, marks


def test_pictures_of_the_data_are_png_files() -> None:
    data = campaign_data(a_hypothesis(1, "UNTESTED"))
    assert size(charts.campaign_picture(data))[0] > 1000
    assert size(charts.hypothesis_picture(data, 1))[0] > 1000


def test_the_command_draws_both_sides_and_says_where(told: Campaign) -> None:
    done = told.run("show", "1", "--plot", "h1.png").expect(0)
    assert done.out.splitlines()[-1].strip() == str(told.folder / "h1.png")
    picture = (told.folder / "h1.png").read_bytes()
    assert size(picture)[0] == hypothesis.WIDTH * canvas.DPI
    for side in (marks.BEFORE, marks.AFTER):
        assert painted(picture, side) > 500
    answer = command(told.folder, "show", "1", "--plot", "again.png", "--json").expect(0).json
    assert answer.pop("plot") == answer.pop("files")[-1] == str(told.folder / "again.png")
    plain = command(told.folder, "show", "1", "--json").expect(0).json
    changing = {"files", "age_s"}
    assert {k: v for k, v in answer.items() if k not in changing} == {
        k: v for k, v in plain.items() if k not in changing
    }


def test_what_was_not_tested_is_drawn_without_runs(told: Campaign) -> None:
    command(told.folder, "show", "2", "--plot", "h2.png").expect(0)
    assert painted((told.folder / "h2.png").read_bytes(), marks.AFTER) == 0


REFUSED = {
    "no PNG": (("1", "--plot", "h1.svg"), 2, "the picture is a PNG"),
    "no such hypothesis": (("9", "--plot", "h9.png"), 2, "no hypothesis 9"),
    "a folder": (("1", "--plot", "taken.png"), 1, "not a regular file"),
    "below a file": (("1", "--plot", "train.py/h1.png"), 1, "train.py"),
    "nobody may write": (("1", "--plot", "/proc/h1.png"), 1, "cannot write"),
    "a sealed run": (("1", "--plot", "runs/0001-baseline-workload/h1.png"), 1, "run folder"),
}


@pytest.mark.parametrize(("words", "status", "says"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_written_is_said_in_one_line(
    told: Campaign, words: tuple[str, ...], status: int, says: str
) -> None:
    (told.folder / "taken.png").mkdir()
    before = contents(told.folder)
    done = command(told.folder, "show", *words).expect(status)
    assert done.out == ""
    (line,) = done.err.splitlines()
    assert says in line
    assert "; next: " in line
    assert contents(told.folder) == before


def test_only_a_person_replaces_what_gpudebug_did_not_write(told: Campaign) -> None:
    mine, session = told.folder / "mine.png", {"GPUDEBUG_SESSION": "one"}
    mine.write_bytes(b"\x89PNG of another program")
    draw = ("show", "1", "--plot", "mine.png", "--force")
    done = told.run(*draw, env=session).expect(1)
    assert "replacing mine.png, which gpudebug did not write, is for a person" in done.err
    assert mine.read_bytes() == b"\x89PNG of another program"
    command(told.folder, *draw).expect(0)
    # One of its own is anybody's.
    told.run(*draw[:-1], env=session).expect(0)


def test_without_matplotlib_it_says_how_to_get_it(told: Campaign, tmp_path: Path) -> None:
    env = without_matplotlib(tmp_path / "hooks")
    done = told.run("show", "1", "--plot", "h1.png", env=env).expect(1)
    assert done.err == (
        "gpudebug: charts need matplotlib, which is not installed; next: pip install 'gpudebug[charts]'\n"
    )
    assert not (told.folder / "h1.png").exists()
