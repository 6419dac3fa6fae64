"""Run folders that are not as they were sealed: each slip and edit is named where it is."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.campaigns import PROGRESS, Campaign
from tests.support.tampering import reseal, rewrite, substitute
from tests.support.verifying import Said, answer, problems

from gpudebug import __version__

RUN = "runs/0003-h1"
Alter = Callable[[Path], object]


def busier(run: Path) -> None:
    """One digit in samples.csv: a reading of 60 % becomes one of 90 %."""
    lines = (run / "samples.csv").read_text().splitlines(keepends=True)
    index = next(i for i, line in enumerate(lines) if i > 20 and line.split(",")[1].startswith("60."))
    lines[index] = lines[index].replace(",60.", ",90.", 1)
    (run / "samples.csv").write_text("".join(lines))


def other_loss(run: Path) -> None:
    substitute(run / "train.log", "loss 1.97", "loss 1.57")


def other_figure(run: Path) -> None:
    rewrite(run / "evidence.json", utilisation=72.5)


def later_end(run: Path) -> None:
    substitute(run / "run.json", '"exit_status": 0', '"exit_status": 1')


ALTERED: dict[str, tuple[Alter, str, set[str]]] = {
    "a digit of a sample": (
        busier,
        "samples.csv",
        {"utilisation", "devices[recording of recorded].gpu_util.mean"},
    ),
    "a line of the log": (other_loss, "train.log", {"loss.first"}),
    "a figure of the evidence": (other_figure, "evidence.json", {"utilisation"}),
    "a fact of the run": (later_end, "run.json", {"exit_status"}),
}


@pytest.mark.parametrize(("alter", "name", "fields"), ALTERED.values(), ids=ALTERED)
def test_an_altered_file_is_named_and_what_does_not_follow_from_it_any_more(
    told: Campaign, alter: Alter, name: str, fields: set[str]
) -> None:
    alter(told.folder / RUN)
    first, *others = problems(told)
    assert (first.file, first.field, first.why) == (f"{RUN}/{name}", name, "altered since the run was sealed")
    assert first.expected != first.found
    assert {p.file for p in others} == {f"{RUN}/evidence.json"}
    assert {p.why for p in others} == {None if name == "evidence.json" else f"as {name} reads now"}
    assert {p.field for p in others} >= fields


@pytest.mark.parametrize(("alter", "name", "fields"), ALTERED.values(), ids=ALTERED)
def test_a_manifest_that_was_mended_as_well_hides_nothing(
    told: Campaign, alter: Alter, name: str, fields: set[str]
) -> None:
    alter(told.folder / RUN)
    reseal(told.folder / RUN)
    found = problems(told)
    assert {p.field for p in found if p.file == f"{RUN}/evidence.json"} >= fields
    if name == "evidence.json":
        assert any(p.why == "the verdict was reached by other evidence of this run" for p in found)


def test_samples_that_were_replaced_for_good_take_verdict_and_entry_with_them(told: Campaign) -> None:
    shutil.copy(told.folder / "runs/0001-baseline-workload/samples.csv", told.folder / RUN)
    reseal(told.folder / RUN)
    found = problems(told)
    assert any(p[:2] == (PROGRESS, "status") and p.found == "VALIDATED" for p in found)
    assert any(p.field == "gates[delta].result" and p.found == "pass" for p in found)


@pytest.mark.parametrize("name", ["samples.csv", "train.log", "evidence.json", "run.json"])
def test_a_missing_file_is_named_once(told: Campaign, name: str) -> None:
    (told.folder / RUN / name).unlink()
    [problem] = problems(told)
    assert (problem.file, problem.found) == (f"{RUN}/{name}", None)
    assert problem.why == "missing since the run was sealed"


BROKEN: dict[str, tuple[Alter, str, str]] = {
    "never sealed": (
        lambda run: (run / "manifest.json").unlink(),
        "manifest.json",
        "the run was never finished: an unsealed run is not evidence",
    ),
    "a manifest that is none": (
        lambda run: (run / "manifest.json").write_text("[]"),
        "manifest.json",
        "is not what gpudebug writes",
    ),
    "a manifest that is cut short": (
        lambda run: os.truncate(run / "manifest.json", 20),
        "manifest.json",
        "not readable as JSON",
    ),
    "a file that was added": (
        lambda run: (run / "probe.jsonl").write_text("{}\n"),
        "probe.jsonl",
        "added since the run was sealed",
    ),
    "a figure that is text": (
        lambda run: (rewrite(run / "evidence.json", utilisation="much"), reseal(run)),
        "evidence.json",
        "is not what gpudebug writes",
    ),
    "samples that are none": (
        lambda run: ((run / "samples.csv").write_text("a,b\n1,2\n"), reseal(run)),
        "samples.csv",
        "not a samples CSV",
    ),
    "a pattern that is none": (
        lambda run: (rewrite(run / "run.json", patterns={"loss": "("}), reseal(run)),
        "run.json",
        "log.loss: not a regular expression",
    ),
}


@pytest.mark.parametrize(("alter", "name", "why"), BROKEN.values(), ids=BROKEN)
def test_what_cannot_be_evidence_is_named(told: Campaign, alter: Alter, name: str, why: str) -> None:
    alter(told.folder / RUN)
    found = [p for p in problems(told) if p.file.startswith(RUN)]
    assert any(p.file.endswith(name) and p.why and p.why.startswith(why) for p in found), found


def test_files_that_gpudebug_does_not_read_may_be_added(told: Campaign) -> None:
    (told.folder / RUN / "notes.txt").write_text("Looks good.")
    os.mkfifo(told.folder / RUN / "pipe")
    assert answer(told).ok is True


def test_a_run_folder_that_is_gone_while_others_are_there_is_named_where_it_is_claimed(
    told: Campaign,
) -> None:
    shutil.rmtree(told.folder / RUN)
    first, second = problems(told)
    assert first == Said(PROGRESS, "runs", None, RUN, "the run folder is not here, others are")
    assert second.file.endswith("/verdict.json")
    assert (second.found, second.why) == (RUN, "a run that the verdict used is not here")


def test_another_runs_folder_under_a_new_name_is_named(told: Campaign) -> None:
    shutil.rmtree(told.folder / RUN)
    shutil.copytree(told.folder / "runs/0001-baseline-workload", told.folder / RUN)
    assert any(p.field == "run" and p.expected == "0001-baseline-workload" for p in problems(told))


def test_a_link_in_place_of_the_samples_is_not_what_was_sealed(told: Campaign, tmp_path: Path) -> None:
    samples = told.folder / RUN / "samples.csv"
    shutil.move(samples, tmp_path / "elsewhere.csv")
    samples.symlink_to(tmp_path / "elsewhere.csv")
    assert [(p.field, p.why) for p in problems(told)] == [("samples.csv", "missing since the run was sealed")]


@pytest.mark.parametrize("then", [{"gpudebug": "0.0.1"}, {"evidence_rule": None}], ids=["version", "rule"])
def test_evidence_that_was_read_otherwise_is_said_and_not_called_tampered(
    told: Campaign, then: dict[str, str | None]
) -> None:
    """An older gpudebug found another figure in the same samples, and its verdict rests on that."""
    run = told.folder / "runs" / told.runs()[-1]
    rewrite(run / "run.json", **then)
    rewrite(run / "evidence.json", peak_rss_mb=1.0)
    reseal(run)
    found = answer(told)
    version = then.get("gpudebug", __version__)
    assert any(f"gpudebug {version} read its samples and log otherwise" in line for line in found.unchecked)
    assert {p.field for p in found.problems} <= {"evidence.json"}


def test_evidence_that_another_version_worded_otherwise_is_the_same(told: Campaign) -> None:
    run = told.folder / "runs" / told.runs()[0]
    rewrite(run / "run.json", gpudebug="0.1.0")
    evidence = json.loads((run / "evidence.json").read_text())
    assert evidence["probe_reason"]
    rewrite(run / "evidence.json", probe_reason="the probe was not on")
    reseal(run)
    assert {p.field for p in problems(told)} <= {"evidence.json"}
    assert not any("otherwise than" in line for line in answer(told).unchecked)


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_file_that_one_may_not_read_is_said_and_not_called_tampered(told: Campaign) -> None:
    (told.folder / RUN / "train.log").chmod(0)
    found = answer(told)
    assert (found.ok, found.problems) == (None, ())
    assert "Permission denied" in found.unchecked[0]
