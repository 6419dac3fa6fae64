"""A training's sections in its run's evidence: what the code named, and reports that are broken."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, copied, gpudebug, make_campaign
from tests.support.section_reports import node, report, section

from gpudebug.engine.run.sections import outline_of, sections_of

# What a user's own training looks like: sections named with the library, no option and no file of gpudebug's.
PROGRAM = """\
import argparse, time
from gpudebug import profile_section

parser = argparse.ArgumentParser()
parser.add_argument("--wait", type=float, default=0.03)
parser.add_argument("--duration", type=float, default=6.5)
options = parser.parse_args()
began, step = time.monotonic(), 0
while time.monotonic() - began < options.duration:
    step += 1
    with profile_section("training_step"):
        with profile_section("data_loading"):
            time.sleep(options.wait)
        with profile_section("forward"):
            time.sleep(0.01)
    print(f"step {step} loss {1 + 1 / step:.4f}", flush=True)
"""


def put(folder: Path, name: str, document: Any) -> None:
    (folder / name).write_text(document if isinstance(document, str) else json.dumps(document))


def test_no_report_is_no_evidence(tmp_path: Path) -> None:
    assert sections_of(tmp_path) is None


def test_the_outline_is_that_of_the_same_report(tmp_path: Path) -> None:
    assert outline_of(tmp_path) == []
    put(tmp_path, "sections.rank0.json", report(section("a"), tree=[node("b", 1, 1.0)]))
    put(tmp_path, "sections.json", report(section("a"), tree=[node("a", 1, 1.0, node("c", 1, 0.5))]))
    assert [line["name"] for line in outline_of(tmp_path)] == ["a", "c"]
    put(tmp_path, "sections.json", "rubbish")
    assert outline_of(tmp_path) == []


def test_the_main_process_counts_and_the_others_are_named(tmp_path: Path) -> None:
    put(tmp_path, "sections.json", report(section("main")))
    put(tmp_path, "sections.rank1.json", report(section("other"), rank=1))
    put(tmp_path, "sections.rank2.json", "rubbish")
    found = sections_of(tmp_path)
    assert found is not None
    assert [s.name for s in found.sections] == ["main"]
    assert found.notes == ("2 more ranks reported: gpudebug analyze sections*.json",)


def test_without_a_main_process_it_is_the_lowest_rank(tmp_path: Path) -> None:
    for rank in (10, 9):
        put(tmp_path, f"sections.rank{rank}.json", report(section(f"of {rank}"), rank=rank))
    found = sections_of(tmp_path)
    assert found is not None
    assert [s.name for s in found.sections] == ["of 9"]


BROKEN: dict[str, tuple[Any, str]] = {
    "cut off": (json.dumps(report(section("x")))[:-40], "sections.json is cut off: its JSON has no end"),
    "empty": ("", "sections.json is cut off: its JSON has no end"),
    "negative": (report(section("x", total_s=-1)), "sections.json section 'x': total_s is negative: -1"),
    "newer": (report(version=9), "sections.json is a section report of version 9, this gpudebug reads 1"),
}


@pytest.mark.parametrize(("document", "says"), BROKEN.values(), ids=BROKEN)
def test_a_broken_report_is_a_note(tmp_path: Path, document: Any, says: str) -> None:
    put(tmp_path, "sections.json", document)
    found = sections_of(tmp_path)
    assert found is not None
    assert (found.count, found.notes) == (0, (says,))


def test_what_is_no_file_is_no_report(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "sections.json")
    (tmp_path / "sections.rank1.json").mkdir()
    assert sections_of(tmp_path) is None


def test_a_sampled_program_tells_its_sections(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    words = ("sample", "--interval=0.05", "--", sys.executable, "train.py", "--wait=0.03", "--duration=0.5")
    found = gpudebug(tmp_path, "--json", *words).expect(0).json["sections"]
    assert [s["name"] for s in found["sections"]] == ["training_step", "data_loading", "forward"]
    assert found["sections"][1]["mean_s"] >= 0.03
    text = gpudebug(tmp_path, *words).expect(0).out
    assert "sections 3, " in text
    assert "data_loading" in text


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """A campaign that is judged by a section, with its baseline and one hypothesis that shortens it."""
    made = make_campaign(
        tmp_path_factory.mktemp("sections") / "repo",
        command=f"{shlex.quote(sys.executable)} train.py --wait=0.03",
        files={"train.py": PROGRAM},
        max_runs=2,
        config="metric: section:data_loading\ncriteria: {success: 1.5x, failure: 1.1x, throughput: any}\n",
    )
    made.json("next")
    made.propose("--set --wait=0.01", "Samples are waited for")
    return made


@pytest.mark.slow
def test_a_campaign_is_judged_by_a_section(measured: Campaign) -> None:
    means_ms = []
    for run in measured.runs():
        evidence = json.loads((measured.folder / "runs" / run / "evidence.json").read_text())
        means_ms += [
            1000 * s["mean_s"] for s in evidence["sections"]["sections"] if s["name"] == "data_loading"
        ]
    # It sleeps for 30 ms, and on a busy machine for longer.
    assert len(means_ms) == 2 and min(means_ms) >= 30
    (told,) = re.findall(r"section:data_loading ([0-9.]+) ms", measured.text)
    assert min(means_ms) - 0.1 <= float(told) <= max(means_ms) + 0.1
    answer = measured.json("next")
    # On a machine that others use too there is no verdict, and the gate all the same.
    delta = next(g for g in answer["gates"] if g["name"] == "delta")
    assert delta["result"] == "pass", answer
    ratio = float(delta["value"].split("x")[0])
    assert 2.0 < ratio < 3.5
    entry = measured.text.split("### Hypothesis 1")[1]
    ((before, after),) = re.findall(r"section:data_loading ([0-9.]+) to ([0-9.]+) ms", entry)
    assert float(before) / float(after) == pytest.approx(ratio, rel=0.02)
    show = measured.json("show", "1")
    rows = {r["name"]: r for r in show["sections"]}
    assert rows["data_loading"]["ratio"] == pytest.approx(ratio, rel=0.2)
    assert 0.7 < rows["forward"]["ratio"] < 1.4
    assert "speed of trial over baseline" in measured.run("show", "1").expect(0).out
    assert measured.json("verify")["ok"]
    runs = measured.runs()[1:3]
    compared = measured.json("compare", *runs)
    assert compared["sections"][0]["name"] == "training_step"
    assert "sections, mean a call" in measured.run("compare", *runs).expect(0).out


def test_a_section_that_is_not_there_is_named(measured: Campaign, tmp_path: Path) -> None:
    other = copied(measured, tmp_path / "other")
    other.config.write_text(other.config.read_text().replace("section:data_loading", "section:load"))
    other.pin().propose("--set --wait=0.02", "Something else")
    error = other.json("next", status=1)["error"]
    says = "no section 'load' was recorded, but training_step, data_loading, forward; put "
    assert says in error["message"]
    assert f"did not yield section:load: {says}" in error["next"]
