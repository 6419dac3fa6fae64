"""The summary that `status` shows: it counts only while nothing changed, and `verify` proves it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign
from tests.support.commands import command

from gpudebug.core.answers.status import StatusAnswer
from gpudebug.edges.store.summary import encoded, read_summary
from gpudebug.engine.campaign.load import load
from gpudebug.engine.status import summary
from gpudebug.engine.status.answer import status_of
from gpudebug.engine.status.status import status
from gpudebug.engine.verify import verify

RECORDED = "gpudebug verify proves them"


@pytest.fixture
def kept(told: Campaign) -> Campaign:
    """A campaign with a verdict and a hypothesis that waits, and its summary."""
    summary.record(told.folder, None, "gpudebug next")
    assert status(told.folder).recorded is not None
    return told


def path(campaign: Campaign) -> Path:
    return campaign.private / "status" / "test" / "summary.json"


def plain(answer: StatusAnswer) -> Any:
    """An answer without ages, and without who says it."""
    return json.loads(json.dumps(summary._plain({**answer.as_json(), "recorded": None})))


def forged(campaign: Campaign, **said: Any) -> None:
    """The summary with other words in its first row, and digests that fit."""
    found = read_summary(path(campaign))
    assert found is not None
    rows = found.every_row()
    rows[0].update(said)
    found.head["listed"][0].update(said)
    path(campaign).write_bytes(encoded(found.head, found.files, rows))


def test_it_says_what_the_evidence_says(kept: Campaign) -> None:
    told = status(kept.folder)
    assert plain(told) == plain(status_of(load(kept.folder)))
    assert told.recorded is not None and (told.recorded.age_s or 0) < 600
    assert told.hypotheses[0].age_s is not None
    assert RECORDED in command(kept.folder, "status").out
    assert json.loads(command(kept.folder, "status", "--json").out)["recorded"]["when"]
    assert verify(kept.folder, also=summary.check_summary).ok


def test_changes_that_are_accepted_and_patches_are_in_it(adopted: Campaign) -> None:
    summary.record(adopted.folder, None, "gpudebug next")
    told = status(adopted.folder)
    assert told.recorded is not None
    assert plain(told) == plain(status_of(load(adopted.folder)))
    assert verify(adopted.folder, also=summary.check_summary).ok
    patch = next((adopted.folder / "hypotheses" / "patches").iterdir())
    appended(patch)
    assert status(adopted.folder).recorded is None


def test_next_writes_it(kept: Campaign) -> None:
    path(kept).unlink()
    assert status(kept.folder).recorded is None
    kept.run("next").expect(0)
    assert status(kept.folder).recorded is not None


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "altered", "link", "folder"])
def test_without_a_whole_one_the_evidence_is_read_and_nothing_is_written(kept: Campaign, damage: str) -> None:
    data = path(kept).read_bytes()
    path(kept).unlink()
    if damage == "empty":
        path(kept).write_bytes(b"")
    elif damage == "cut":
        path(kept).write_bytes(data[:-20])
    elif damage == "altered":
        path(kept).write_bytes(data.replace(b"VALIDATED", b"REJECTED "))
    elif damage == "link":
        (kept.folder / "elsewhere").write_bytes(data)
        path(kept).symlink_to(kept.folder / "elsewhere")
    elif damage == "folder":
        path(kept).mkdir()
    told = status(kept.folder)
    assert told.recorded is None
    assert told.hypotheses[0].status == "VALIDATED"
    assert told.hypotheses[0].verified
    assert RECORDED not in command(kept.folder, "status").out
    assert damage != "missing" or not path(kept).exists()


def appended(path: Path) -> None:
    path.write_text(path.read_text() + "\n")


@pytest.mark.parametrize(
    "file",
    [
        "gpudebug.yaml",
        "train.py",
        "{private}/status/test/order.json",
        "progress/test.md",
        "runs/{last}/verdict.json",
        "runs/{last}/manifest.json",
        "runs/{last}/run.json",
        "runs/{first}/evidence.json",
        ".git/info/exclude-not/",
    ],
)
def test_what_changed_since_is_read(kept: Campaign, file: str) -> None:
    names = sorted(p.name for p in (kept.folder / "runs").glob("[0-9]*"))
    changed = kept.folder / file.format(first=names[0], last=names[-1], private=kept.private)
    if file.endswith("/"):
        (kept.folder / "runs" / "0099-h9").mkdir()
    else:
        before = changed.stat()
        appended(changed)
        os.utime(changed, ns=(before.st_atime_ns, before.st_mtime_ns))
    told = status(kept.folder)
    assert told.recorded is None
    assert plain(told) == plain(status_of(load(kept.folder)))


def test_a_forged_entry_is_not_shown_as_recorded(kept: Campaign) -> None:
    kept.progress.write_text(kept.text.replace("VALIDATED", "REJECTED", 1))
    row, _ = status(kept.folder).hypotheses
    assert (row.status, row.verified) == ("REJECTED", False)


def test_evidence_that_is_gone_is_unknown(kept: Campaign) -> None:
    shutil.rmtree(next((kept.folder / "runs").glob("*-h1")))
    told = status(kept.folder)
    assert told.recorded is None
    assert told.hypotheses[0].cost_s is None


def test_another_environment_is_read_anew(kept: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    told = status(kept.folder)
    assert told.recorded is None
    assert "device changed" in str(told.baselines["workload"])


def test_a_copy_is_read_anew(kept: Campaign, tmp_path: Path) -> None:
    shutil.copytree(kept.folder, tmp_path / "copy", symlinks=True)
    told = status(tmp_path / "copy")
    assert told.recorded is None
    assert told.hypotheses[0].verified


def test_verify_names_a_forged_one(kept: Campaign) -> None:
    forged(kept, delta_pp=99.0)
    assert status(kept.folder).hypotheses[0].delta_pp == 99.0
    answer = verify(kept.folder, also=summary.check_summary)
    assert not answer.ok
    assert {p.field for p in answer.problems} == {"summary: hypotheses", "summary: listed"}
    done = command(kept.folder, "verify")
    assert done.status == 1
    assert "summary.json" in done.out
    kept.run("next")
    assert verify(kept.folder, also=summary.check_summary).ok


def test_what_changes_while_it_is_made_keeps_it_from_being_written(
    kept: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    path(kept).unlink()
    made = summary._made

    def meanwhile(loaded: Any) -> Any:
        appended(kept.progress)
        return made(loaded)

    monkeypatch.setattr(summary, "_made", meanwhile)
    summary.record(kept.folder, None, "gpudebug next")
    assert not path(kept).exists()


def test_a_session_is_shown_what_a_person_is_only_where_both_measure_the_same(
    kept: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = read_summary(path(kept))
    assert found is not None
    monkeypatch.setenv("GPUDEBUG_SESSION", "s1")
    assert (status(kept.folder).recorded is not None) == found.head["alike"]
    found.head["alike"] = False
    path(kept).write_bytes(encoded(found.head, found.files, found.every_row()))
    assert status(kept.folder).recorded is None


def test_a_folder_that_cannot_be_written_keeps_nobody_from_going_on(kept: Campaign) -> None:
    path(kept).unlink()
    path(kept).mkdir()
    summary.record(kept.folder, None, "gpudebug next")
    assert status(kept.folder).recorded is None


def test_a_text_needs_no_other_rows(told: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a long campaign the rows that a text does not list are not read."""
    monkeypatch.setattr("gpudebug.engine.status.listing.SHOWN", 1)
    summary.record(told.folder, None, "gpudebug next")
    some = status(told.folder, every=False)
    assert ([h.number for h in some.hypotheses], some.rest) == ([2], {"VALIDATED": 1})
    assert "and 1 more (1 VALIDATED): gpudebug status --json" in command(told.folder, "status").out
    assert len(status(told.folder).hypotheses) == 2


KILLED = """
import os, signal
from pathlib import Path
from gpudebug.engine.cycle.next import next_cycle
from gpudebug.engine.status import summary
summary._write = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
next_cycle(Path("."), lambda _: None)
"""


def test_one_killed_between_the_seal_and_the_summary_leaves_the_evidence_to_be_read(kept: Campaign) -> None:
    before = path(kept).read_bytes()
    done = subprocess.run([sys.executable, "-c", KILLED], cwd=kept.folder, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL
    assert path(kept).read_bytes() == before
    (sealed,) = (kept.folder / "runs").glob("*-h2/manifest.json")
    told = status(kept.folder)
    assert told.recorded is None
    assert (told.hypotheses[1].status, told.hypotheses[1].verified) != ("UNTESTED", None)
    assert sealed.parent.name in told.hypotheses[1].runs
    assert plain(told) == plain(status_of(load(kept.folder)))
    assert verify(kept.folder, also=summary.check_summary).ok
