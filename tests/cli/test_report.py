"""`gpudebug report` as a user runs it: what it writes, what it prints, what it refuses."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_disk import drop_privileges, fill, mount, one_line
from tests.support.campaigns import Campaign, contents, copied, make_replay_campaign, record
from tests.support.many import multiply

__all__ = ["mount"]
ENTRIES = "".join(
    f"### Hypothesis {n}: {title}\n- **Intervention**: --set --lr=0.{n + 1}\n- **Status**: UNTESTED\n\n"
    for n, title in ((1, "The loader <script>alert(1)</script> waits"), (2, "Waiting"))
)
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    folder = tmp_path_factory.mktemp("reported")
    record(folder / "recordings", "0001-baseline-workload")
    record(folder / "recordings", "0002-h1", util=60, rate=30)
    made = make_replay_campaign(folder / "repo", folder / "recordings", progress=ENTRIES)
    made.json("next")
    made.json("next")
    return made


@pytest.fixture
def campaign(original: Campaign, tmp_path: Path) -> Campaign:
    """A campaign with its baseline, a VALIDATED hypothesis and an untested one."""
    return copied(original, tmp_path / "repo")


def embedded(page: str) -> dict[str, Any]:
    """The machine-readable copy of the data inside a page."""
    found = re.search(r'<script[^>]*id="gpudebug-data"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_the_page_goes_into_runs_and_touches_nothing_else(campaign: Campaign) -> None:
    before = contents(campaign.folder)
    answer = campaign.json("report")
    page = campaign.folder / "runs" / "report" / "report.html"
    assert answer["page"] == str(page)
    assert answer["bytes"] == page.stat().st_size < 10e6
    assert (answer["markdown"], answer["skipped"]) == (None, [])
    assert (answer["runs"], answer["next_command"]) == (5, "gpudebug next")
    changed = {n for n, found in contents(campaign.folder).items() if before.get(n) != found}
    assert changed == {"runs/report", "runs/report/report.html"}
    data = embedded(page.read_text("utf-8"))
    assert data["format"] == 1
    assert "<script>alert(1)</script>" not in page.read_text("utf-8")
    # The baseline is as valid as before, and a second report replaces the first.
    assert campaign.json("status")["baselines"]["workload"]["valid"]
    assert campaign.run("report").expect(0).out.startswith(f"wrote {page} (")
    assert [p.name for p in page.parent.iterdir()] == ["report.html"]


def test_markdown_is_all_that_is_printed_and_no_page_is_written(campaign: Campaign) -> None:
    done = campaign.run("report", "--markdown").expect(0)
    assert done.out.startswith("## ")
    answer = campaign.json("report", "--markdown")
    assert answer["markdown"].rstrip("\n") + "\n" == done.out
    assert (answer["page"], answer["files"]) == (None, [])
    assert not (campaign.folder / "runs" / "report").exists()


def test_one_run_of_a_campaign_has_a_page_of_its_own(campaign: Campaign) -> None:
    answer = campaign.json("report", "0001-baseline-workload")
    page = campaign.folder / "runs" / "report" / "0001-baseline-workload.html"
    assert (answer["page"], answer["files"], answer["runs"]) == (str(page), [str(page)], 1)
    assert answer["campaign"] == campaign.json("status")["campaign"]
    data = embedded(page.read_text("utf-8"))
    assert [*data["runs"]] == ["0001-baseline-workload"]
    assert data["replayed"]
    assert "## 0001-baseline-workload" in campaign.run("report", "0001-baseline-workload", "--markdown").out
    assert campaign.json("verify")["ok"]


def test_paths_are_as_seen_from_the_chosen_folder(campaign: Campaign, tmp_path: Path) -> None:
    made = Campaign(tmp_path).json("-C", str(campaign.folder), "report", "-o", "../out/deep")
    assert (tmp_path / "out" / "deep" / "report.html").samefile(made["page"])


def test_before_anything_ran_it_says_what_to_do(original: Campaign, tmp_path: Path) -> None:
    new = copied(original, tmp_path / "repo")
    shutil.rmtree(new.folder / "runs")
    new.progress.unlink()
    text = new.run("report").expect(0).out
    assert "0 runs): open it in a browser" in text
    assert "Next: gpudebug next" in text


def test_a_broken_run_is_named(campaign: Campaign) -> None:
    run = campaign.folder / "runs" / "0009-h2"
    shutil.copytree(campaign.folder / "runs" / "0003-h1", run)
    (run / "evidence.json").write_text("{")
    text = campaign.run("report").expect(0).out
    assert "5 runs): open it in a browser\n" in text
    assert "skipped run 0009-h2: evidence.json: not readable as JSON" in text


def test_what_cannot_be_written_is_one_line_and_nothing_is_left(campaign: Campaign, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    closed = outside / "closed"
    outside.mkdir()
    (outside / "file").write_text("mine")
    closed.mkdir(mode=0o555)
    before = contents(outside), contents(campaign.folder)
    for words, says in (
        (("-o", str(outside / "file")), "is a file, not a folder"),
        (("-o", "runs/0003-h1"), "is in the run folder 0003-h1"),
        (("-o", str(closed / "deeper")), "Permission denied"),
    ):
        one_line(campaign.run("report", *words, preexec_fn=drop_privileges), says)
    assert (contents(outside), contents(campaign.folder)) == before
    error = campaign.run("report", "-o", str(outside / "file"), "--json").expect(1).json["error"]
    assert error["file"] == str(outside / "file" / "report.html")


@pytest.mark.slow
def test_a_full_disk_leaves_the_page_that_was_there(
    campaign: Campaign, tmp_path: Path, mount: Callable[..., None]
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount(small, "-t", "tmpfs", "-o", "size=64k", "tmpfs")
    (small / "report.html").write_text("the one before")
    fill(small, 8 << 10)
    page = str(small / "report.html")
    one_line(campaign.run("report", "-o", page, "--force"), "No space left on device", "free some disk space")
    assert (small / "report.html").read_text() == "the one before"
    assert sorted(p.name for p in small.iterdir()) == ["filler", "report.html"]


@pytest.mark.slow
def test_a_read_only_campaign_can_be_reported_elsewhere(
    campaign: Campaign, tmp_path: Path, mount: Callable[..., None]
) -> None:
    mount(campaign.folder, "--bind", str(campaign.folder))
    subprocess.run(["mount", "-o", "remount,ro,bind", campaign.folder], check=True)
    one_line(campaign.run("report"), "Read-only file system", "writable")
    assert campaign.json("report", "-o", str(tmp_path / "out"))["runs"] == 5


@pytest.mark.slow
def test_a_campaign_of_a_thousand_hypotheses(campaign: Campaign) -> None:
    multiply(campaign, 1000)
    answer = campaign.json("report")
    assert (answer["hypotheses"], answer["skipped"]) == (1002, [])
    assert answer["bytes"] < 10e6
    assert any(f"of {len(campaign.runs())} runs are not on the page" in note for note in answer["notes"])
    data = embedded(Path(answer["page"]).read_text("utf-8"))
    assert len(data["hypotheses"]) == 1002
    assert all(h["verified"] for h in data["hypotheses"] if h["status"] == "VALIDATED")
    assert data["hypotheses"][0]["trial_runs"] == ["0003-h1", "0004-h1"]
