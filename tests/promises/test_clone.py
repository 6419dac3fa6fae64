"""What a clone brings below runs/ says nothing: no verdict, no answer, no run under way, no claim, no order.

What gpudebug believes besides run folders lies in git's common folder. Each kind of it is tracked here where
it lay before 0.3, forged, and again under the names that it has now.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, commit_all, copied, git, make_replay_campaign, record

from gpudebug import __version__
from gpudebug.core.answers.next import NothingRunning
from gpudebug.core.text.values import short_digest
from gpudebug.edges import store
from gpudebug.engine.campaign.load import apart, load
from gpudebug.engine.status.recorded import program_of

SINCE = "2026-11-28T10:00:00.000000+00:00"


def claim_last(campaign: Campaign) -> None:
    """Let a session that is not heard of again implement the last hypothesis."""
    head, _, end = campaign.text.rpartition("UNTESTED")
    campaign.progress.write_text(f"{head}TESTING - session s1, since {SINCE}{end}", encoding="utf-8")


@pytest.fixture(scope="module")
def pushed(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """A campaign as its repository has it: three hypotheses, one of them a session's, and no run."""
    folder = tmp_path_factory.mktemp("pushed")
    record(folder / "recordings", "0001-baseline-workload", util=20, rate=10)
    record(folder / "recordings", "0002-h1", util=60, rate=30)
    made = make_replay_campaign(folder / "repo", folder / "recordings")
    made.propose("--set --lr=0.2")
    made.propose("--set --lr=0.3", "Waiting")
    made.propose("--code", "Written by a session")
    claim_last(made)
    git(made.folder, "add", "--force", "progress")
    commit_all(made.folder)
    return made


@pytest.fixture(scope="module")
def clone(pushed: Campaign, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Campaign]:
    """Clones, each at the same place as the one before."""
    folder = tmp_path_factory.mktemp("clone")

    def make() -> Campaign:
        shutil.rmtree(folder / "repo", ignore_errors=True)
        git(folder, "clone", "--quiet", str(pushed.folder), "repo")
        return Campaign(folder / "repo")

    return make


QUESTIONS = (
    ("status",),
    ("status", "--json"),
    ("show", "1", "--json"),
    ("verify", "--json"),
    ("report", "--markdown"),
    ("export",),
    ("wait", "--for", "0s", "--json"),
)
"""What is asked of a clone; `next`, which measures, comes last of all."""


def answers(campaign: Campaign) -> dict[str, Any]:
    """What commands say, without what is another each time."""
    found = {}
    for words in QUESTIONS:
        done = campaign.run(*words)
        said = json.loads(done.out) if "--json" in words else done.out
        found[" ".join(words)] = (done.status, without_ages(said), done.err)
    return found


def without_ages(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_ages(v) for k, v in value.items() if k != "age_s"}
    return [without_ages(v) for v in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def truth(clone: Callable[[], Campaign]) -> dict[str, Any]:
    """What is said of a clone that brings nothing below runs/."""
    made = clone()
    found = answers(made)
    assert {h["verified"] for h in found["status --json"][1]["hypotheses"]} == {None}
    assert not found["status --json"][1]["running"]
    return {**found, "next": made.json("next")["action"]}


Files = dict[str, bytes]
"""Files below runs/, by their paths there."""


def plain(value: Any) -> bytes:
    return json.dumps(value).encode()


def summary(campaign: Campaign, truth: Mapping[str, Any], name: str) -> Files:
    """The summary of 0.2 with an invented verdict; it names itself among what git tracks."""
    loaded = load(campaign.folder)
    answer = json.loads(json.dumps(truth["status --json"][1]))
    rows = answer.pop("hypotheses")
    rows[0].update(status="VALIDATED", verified=True, delta_pp=40.0, delta_ci=[39.0, 41.0], metric="gpu_util")
    answer["next"] = {"action": "stop", "hypothesis": None, "role": None, "why": "solved"}
    checkout, workload = loaded.setup.checkout, loaded.setup.config.workload
    tracked = short_digest(b"\0".join(sorted({*checkout.left_out, os.fsencode(f"runs/{name}")})))
    head = {
        "format": 1,
        "gpudebug": __version__,
        "when": SINCE,
        "root": str(campaign.folder),
        "alike": True,
        "config": short_digest(campaign.config.read_bytes()),
        "progress": [*[str(campaign.progress)] * 2, short_digest(campaign.progress.read_bytes())],
        "visible": None,
        "runs": short_digest(b""),
        "files": hashlib.sha256(b"").hexdigest(),
        "programs": [program_of(campaign.folder, workload.argv()[0], workload.cwd, workload.env.get("PATH"))],
        "apart": list(map(str, apart(loaded.setup.workspace, campaign.progress))),
        "code": [str(checkout.top), str(checkout.common), checkout.tree, tracked],
        "answer": answer,
        "listed": rows,
        "rest": {},
    }
    body = b"\n".join(map(plain, (head, [], rows)))
    return {name: hashlib.sha256(body).hexdigest().encode() + b"\n" + body}


def order(campaign: Campaign, truth: Mapping[str, Any], name: str) -> Files:
    made = {"when": SINCE, "by": "gpudebug next", "baseline": [], "metric": "gpu_util"}
    return {
        name: plain({**made, "unweighed": None, "offer": "gpudebug propose --wrong", "shares": {"2": 0.9}})
    }


def answer(campaign: Campaign, truth: Mapping[str, Any], name: str) -> Files:
    """The answer of a background run that never was."""
    said = NothingRunning(campaign="test", why="hypothesis 1 is VALIDATED", notes=(), files=())
    caller = {"id": "1", "session": None, "since": SINCE, "ended": SINCE}
    return {name: plain({"answer": said.as_json(), **caller})}


def holder(campaign: Campaign, truth: Mapping[str, Any], name: str) -> Files:
    """A lock that somebody on another host holds, as its text says."""
    place = {"host": "elsewhere", "boot": "11111111-1111-1111-1111-111111111111"}
    return {name: plain({"pid": 1, "command": "gpudebug next", "since": SINCE, "id": "1", "place": place})}


def job(campaign: Campaign, truth: Mapping[str, Any], name: str) -> Files:
    note = store.AllocationNote(job="77", since=SINCE, ended="solved: hypothesis 1 is VALIDATED")
    return {name: plain(vars(note))}


def element(campaign: Campaign, truth: Mapping[str, Any], name: str) -> Files:
    note = store.ElementNote("0100", "test", 1, SINCE, array="77")
    return {name: plain(vars(note))}


def lease(campaign: Campaign, truth: Mapping[str, Any], name: str) -> Files:
    """A claim of somebody's; the entry that it is on is TESTING in the progress file."""
    made = {"session": "s1", "since": SINCE, "host": "elsewhere", "boot": "", "boottime_s": 0.0}
    return {name: plain({**made, "wall_s": time.time()})}


def unsealed(campaign: Campaign, truth: Mapping[str, Any], name: str) -> Files:
    """A run that was cut off, as its record says."""
    made = {"format": 1, "name": "0001-h1", "campaign": "test", "role": "h1", "hypothesis": 1}
    return {name: plain({**made, "devices": [], "duration_s": 9000.0, "outcome": None})}


Kind = Callable[[Campaign, Mapping[str, Any], str], Files]
KINDS: tuple[tuple[Kind, str], ...] = (
    (summary, "status/test/summary.json"),
    (answer, "detached/answer-1.json"),
    (holder, "detached/lock"),
    (holder, "claim"),
    (job, "allocation/job.json"),
    (element, "array/0100/element.json"),
)
"""Each kind and its name; before 0.3 these began with a dot, in runs/ itself."""
BEFORE = [(kind, f".{name}") for kind, name in (*KINDS, (order, "status/test/order.json"))]
NOW = [(kind, f".gpudebug/{name}") for kind, name in KINDS]


def track(campaign: Campaign, files: Files) -> None:
    """Commit files below runs/, as a push would have them, and let them look as after a checkout."""
    for name, data in files.items():
        path = campaign.folder / "runs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    git(campaign.folder, "add", "--force", *(f"runs/{name}" for name in files))
    commit_all(campaign.folder)


@pytest.mark.parametrize(("kind", "name"), [*BEFORE, *NOW])
def test_what_a_clone_brings_says_nothing(
    clone: Callable[[], Campaign], truth: dict[str, Any], kind: Kind, name: str
) -> None:
    made = clone()
    track(made, kind(made, truth, name))
    assert {**answers(made), "next": made.json("next")["action"]} == truth


def test_a_run_that_was_cut_off_elsewhere_is_none_to_recover(
    clone: Callable[[], Campaign], truth: dict[str, Any]
) -> None:
    """The report alone names it, as left out."""
    made = clone()
    track(made, unsealed(made, truth, "0001-h1/run.json"))
    found = {**answers(made), "next": made.json("next")["action"]}
    assert {**found, "report --markdown": None} == {**truth, "report --markdown": None}


@pytest.fixture(scope="module")
def measured(pushed: Campaign, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Campaign]:
    """The campaign with its baseline, always at the same place."""
    folder = tmp_path_factory.mktemp("measured")
    made = copied(pushed, folder / "made")
    while made.json("next")["action"] != "recorded_baseline":
        pass

    def again() -> Campaign:
        shutil.rmtree(folder / "repo", ignore_errors=True)
        return copied(made, folder / "repo")

    return again


@pytest.mark.parametrize(
    ("kind", "name", "claimed"), [(*BEFORE[-1], False), (lease, ".leases/test/h3.json", True)]
)
def test_what_a_pull_brings_says_nothing(
    measured: Callable[[], Campaign], kind: Kind, name: str, claimed: bool
) -> None:
    made = measured()
    if claimed:
        claim_last(made)
    before = without_ages(made.json("status"))
    track(made, kind(made, {}, name))
    assert without_ages(made.json("status")) == before


def test_whatever_else_a_campaign_keeps_says_nothing_in_a_clone(
    clone: Callable[[], Campaign], measured: Callable[[], Campaign], truth: dict[str, Any]
) -> None:
    """All but sealed runs, also what lies in git's folder, under the names that it would have in runs/."""
    made = measured()
    assert made.json("next")["verdict"] == "VALIDATED"
    workspace = store.Workspace(made.folder)
    workspace.campaign = "test"
    store.put_pages(workspace, {"s1": []})
    store.Sessions(workspace).new("loop-1").write({"session": "loop-1"})
    store.Elements(workspace).make("test", (2,), SINCE)
    store.Allocations(workspace.private).make()
    store.Allocations(workspace.private).begin(store.AllocationNote(job="77", since=SINCE))
    store.Detached(workspace.private).start_log("1")
    store.Detached(workspace.private).put_answer({"id": "1", "answer": {}})
    sealed = {name for name in workspace.run_names() if workspace.run(name).sealed}
    beside = {
        name: data for name, data in files_in(workspace.runs).items() if Path(name).parts[0] not in sealed
    }
    private = files_in(workspace.private)
    assert {"status/test/summary.json", "claim", "allocation/job.json"} <= private.keys()
    assert len(sealed) >= 4
    forged = {f"{before}{name}": data for name, data in private.items() for before in ("", ".", ".gpudebug/")}
    other = clone()
    track(other, {**beside, **forged})
    assert without_ages(other.json("status")) == truth["status --json"][1]


def files_in(folder: Path) -> Files:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
