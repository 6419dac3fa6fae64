"""The report of one run: what it shows, and that words of others stay words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.engine.report.test_page import Reading
from tests.support.looks import look
from tests.support.reports import HOSTILE
from tests.support.trials import crashed, run

from gpudebug.core.errors import GpudebugError, StoreError, UsageError
from gpudebug.engine.report import report_run
from gpudebug.engine.report.look import gather_run, run_folder, summary_of_run
from gpudebug.engine.report.page import run_page


def test_the_page_names_causes_with_what_to_try_and_where_a_step_goes(tmp_path: Path) -> None:
    answer = report_run(tmp_path, look(tmp_path).name, markdown=False)
    assert answer.page == str(tmp_path / "gpudebug-why-1.html")
    assert (answer.campaign, answer.runs, answer.hypotheses) == (None, 1, 0)
    assert answer.next_command == "gpudebug init --from gpudebug-why-1"
    shown = Reading(Path(answer.page).read_text("utf-8"))
    for text in ("dl-no-workers", "training waits 70% of its time for batches", "num_workers=", "data wait"):
        assert text in shown.text
    assert "./gpudebug-why-1/samples.csv" not in shown.attributes("href")
    assert "./gpudebug-why-1/evidence.json" in shown.attributes("href")
    # Written again, it is the same file of ours; the run's folder is as it was sealed.
    report_run(tmp_path, "gpudebug-why-1")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["gpudebug-why-1", "gpudebug-why-1.html"]


def test_markdown_is_written_without_a_page(tmp_path: Path) -> None:
    look(tmp_path)
    answer = report_run(tmp_path, "gpudebug-why-1", markdown=True)
    assert answer.markdown is not None and answer.markdown.startswith("## gpudebug-why-1\n")
    assert "(`dl-no-workers`)" in answer.markdown
    assert "A step of 100 ms: data wait 70%, forward 10%, backward 15%" in answer.markdown
    assert "Next: `gpudebug init --from gpudebug-why-1`" in answer.markdown
    assert (answer.page, answer.files) == (None, ())


def test_a_run_that_failed_says_so_and_names_no_cause(tmp_path: Path) -> None:
    folder = look(tmp_path, crashed("oom_gpu", "CUDA out of memory", devices=()))
    data = gather_run(tmp_path, folder.path)
    assert data["causes"] == []
    assert "CUDA out of memory" in data["abstains"]
    assert "CUDA out of memory" in Reading(run_page(data, tmp_path)).text
    assert "CUDA out of memory" in summary_of_run(data)


def test_unknown_is_not_zero(tmp_path: Path) -> None:
    data = gather_run(tmp_path, look(tmp_path, run(None, None)).path)
    assert data["headline"] == "unknown of a program; how busy the device was is unknown."
    assert "0.0%" not in Reading(run_page(data, tmp_path)).text
    assert "0%" not in summary_of_run(data)


def test_words_of_others_make_no_markup(tmp_path: Path) -> None:
    seen = crashed("exception", HOSTILE, devices=())
    data = gather_run(tmp_path, look(tmp_path, seen, command=f"python {HOSTILE}").path)
    page = Reading(run_page(data, tmp_path))
    assert not [tag for tag, found in page.elements if tag == "img" or "onerror" in found]
    assert not page.open
    # What is left of the text outside of code.
    assert "<" not in re.sub("`+[^`]*`+", "", summary_of_run(data))


@pytest.mark.parametrize("name", ["nothing", "train.py"])
def test_what_is_no_run_is_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "train.py").write_text("")
    with pytest.raises(UsageError, match=f"{name} is not a run") as e:
        run_folder(tmp_path, name)
    assert e.value.next


def test_an_unfinished_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GpudebugError, match="unfinished"):
        report_run(tmp_path, look(tmp_path, sealed=False).name)


def test_the_page_never_goes_into_a_sealed_run(tmp_path: Path) -> None:
    folder = look(tmp_path)
    with pytest.raises(StoreError, match="whose manifest it would break"):
        report_run(tmp_path, folder.name, folder.path)
