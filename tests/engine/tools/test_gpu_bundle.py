"""The bundle of `doctor --gpu`: complete, anonymous, and refused if it is anything else."""

from __future__ import annotations

import getpass
import json
import platform
import tarfile
from pathlib import Path

import pytest
from tests.support import gpu_recordings as made
from tests.support.gpu_bundles import members, read_bundle
from tests.support.places import DATA

from gpudebug.core.answers.setup import DoctorCheck
from gpudebug.core.errors import StoreError
from gpudebug.core.hardware.table import checks_of
from gpudebug.engine.tools.gpu_bundle import NAME, RunTexts, place_in, write_bundle

BUNDLES = sorted((DATA / "gpu_bundles").glob("*.tar.gz"))
CHECKS = (DoctorCheck("load", "failed", "cannot read /home/anna/x", "see `ls -l /dev/nvidia*`"),)


@pytest.mark.parametrize("path", BUNDLES, ids=lambda path: path.name)
def test_a_bundle_of_a_report_gives_its_table_again(path: Path) -> None:
    with tarfile.open(path) as archive:
        stored = json.load(archive.extractfile("gpudebug-gpu/checks.json") or pytest.fail("no checks"))
    again = [(check.name, check.result) for check in checks_of(*read_bundle(path))]
    # What was run after the loads is not in the recording.
    after = {"probe", "campaign"}
    assert again == [(c["name"], c["result"]) for c in stored if c["name"] not in after]


def test_nothing_in_it_names_card_person_path_or_time(tmp_path: Path) -> None:
    samples, log, notes = made.texts(2, notes={"written": ["/home/anna/events"], "lost": "at /home/anna/x"})
    log = "Traceback of /home/anna/train.py\n" + log
    machine = made.machine(2, outcome="SAMPLER_LOST", reason="no /home/anna/samples.csv")
    write_bundle(tmp_path / NAME, machine, RunTexts(samples, log, notes), CHECKS)
    with tarfile.open(tmp_path / NAME) as archive:
        members = archive.getmembers()
        text = "".join((archive.extractfile(m) or pytest.fail(m.name)).read().decode() for m in members)
    assert len(members) == 6
    assert {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in members} == {(0, 0, "", "", 0)}
    assert "anna" not in text and "5ca1ab1" not in text
    assert "/dev/nvidia" in text and "NVIDIA Stand-in 100" in text


def test_no_host_or_user_and_no_words_of_an_exception(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "node", lambda: "node17.lab.example")
    monkeypatch.setattr(getpass, "getuser", lambda: "anna")
    for name, value in (
        ("SLURM_JOB_NODELIST", "ampere[01-02]"),
        ("MASTER_ADDR", "10.1.2.3"),
        ("HEAD_ADDR", "curie"),
    ):
        monkeypatch.setenv(name, value)
    found = "CRASHED, torch.distributed.DistNetworkError: secret at db-4:29500"
    check = DoctorCheck("probe", "unknown", found, "ask anna about node17 and node18.lab.example: /srv/a/b")
    notes = {"lost": "RuntimeError: secret", "interval": 0.1, "missing": {"power_w": "ask curie, ampere07"}}
    log = '{"kind": "failed", "message": "10.1.2.3 and ampere02 are gone"}\n'
    machine = made.machine(outcome="CRASHED", reason="node17: RuntimeError: secret")
    write_bundle(tmp_path / NAME, machine, RunTexts(log=log, notes=json.dumps(notes)), (check,))
    files = members(tmp_path / NAME)
    text = "".join(files.values())
    assert not [word for word in ("ampere", "10.1.2.3", "curie", "node18") if word in text]
    assert not [word for word in ("anna", "node17", "lab.example", "secret", "db-4", "/srv") if word in text]
    (stored,) = json.loads(files["gpudebug-gpu/checks.json"])
    assert stored["found"] == "CRASHED, torch.distributed.DistNetworkError"
    assert stored["next"].startswith("ask (a name) about (a name) and ")


def test_a_campaign_gets_it_into_its_runs(tmp_path: Path) -> None:
    """An untracked file beside the code would be part of the base that its worktrees are made of."""
    inner = tmp_path / "src"
    inner.mkdir()
    assert place_in(inner) == inner / NAME
    (tmp_path / "gpudebug.yaml").touch()
    assert place_in(inner) == place_in(tmp_path) == tmp_path / "runs" / NAME
    write_bundle(place_in(tmp_path), made.machine(), RunTexts(), ())
    assert read_bundle(tmp_path / "runs" / NAME)


def test_what_is_read_back_gives_the_same_checks(tmp_path: Path) -> None:
    texts, machine = RunTexts(*made.texts(2)), made.machine(2)
    write_bundle(tmp_path / NAME, machine, texts, ())
    assert checks_of(*read_bundle(tmp_path / NAME)) == checks_of(machine, texts.parsed())


def test_a_run_that_never_was_has_a_bundle_too(tmp_path: Path) -> None:
    write_bundle(tmp_path / NAME, made.machine(outcome="NOT_STARTED"), RunTexts(), CHECKS)
    machine, recording = read_bundle(tmp_path / NAME)
    assert (machine.outcome, recording.rows) == ("NOT_STARTED", ())


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("mine")
    with pytest.raises(StoreError, match="is there already"):
        write_bundle(tmp_path / NAME, made.machine(), RunTexts(), ())
    assert (tmp_path / NAME).read_text() == "mine"
