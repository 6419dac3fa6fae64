"""`verify` on the code that was measured: a trial's patch must have gone onto the code of its baseline."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, git


def trial_with_patch(campaign: Campaign) -> Path:
    runs = [campaign.folder / "runs" / name for name in campaign.runs()]
    return next(run for run in runs if (run / "change.patch").exists())


def changed(run: Path, **fields: Any) -> None:
    """The record with other fields, sealed again as if it had been like this."""
    path = run / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["files"]["run.json"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (run / "manifest.json").write_text(json.dumps(manifest))


def problems(campaign: Campaign) -> list[dict[str, Any]]:
    found = campaign.run("verify", "--json").json["problems"]
    return [p for p in found if p["field"] == "checked_out"]


def onto(campaign: Campaign, base: str) -> str:
    """A commit that came from `base`."""
    return git(campaign.folder, "commit-tree", "-p", base, "-m", "x", f"{base}^{{tree}}").strip()


def of_other_code(campaign: Campaign, parent: str) -> str:
    """A commit with another loader.py, that came from `parent`."""
    (campaign.folder / "loader.py").write_text("workers = 64\n")
    git(campaign.folder, "add", "loader.py")
    tree = git(campaign.folder, "write-tree").strip()
    git(campaign.folder, "checkout", "--quiet", "--force", "HEAD", "--", "loader.py")
    return git(campaign.folder, "commit-tree", "-p", parent, "-m", "Tree", tree).strip()


def without_patch(run: Path) -> None:
    """As if the trial had changed no more than flags."""
    (run / "change.patch").unlink()
    manifest = json.loads((run / "manifest.json").read_text())
    del manifest["files"]["change.patch"]
    (run / "manifest.json").write_text(json.dumps(manifest))


def test_a_patch_on_other_code_than_the_baselines_is_a_problem(judged: Campaign) -> None:
    run = trial_with_patch(judged)
    assert problems(judged) == []
    here = git(judged.folder, "rev-parse", "HEAD").strip()
    changed(run, commit=onto(judged, here))
    assert problems(judged) == []
    changed(run, commit=onto(judged, of_other_code(judged, here)))
    (problem,) = problems(judged)
    assert problem["run"] == run.name
    assert problem["found"] == "loader.py of its base"
    assert problem["why"] == "its patch went onto other code than the baseline measured"


def test_flags_on_other_code_than_the_baselines_are_a_problem(judged: Campaign) -> None:
    """Without a patch the commit itself is what was measured, whatever it came from."""
    run = trial_with_patch(judged)
    without_patch(run)
    here = git(judged.folder, "rev-parse", "HEAD").strip()
    other = of_other_code(judged, here)
    changed(run, commit=onto(judged, here))
    assert problems(judged) == []
    tree = git(judged.folder, "rev-parse", f"{here}^{{tree}}").strip()
    changed(run, commit=git(judged.folder, "commit-tree", "-p", other, "-m", "x", tree).strip())
    assert problems(judged) == []
    changed(run, commit=other)
    (problem,) = problems(judged)
    assert problem["why"] == "its flags ran other code than the baseline measured"


def test_the_patch_of_a_trial_is_that_of_its_change(judged: Campaign) -> None:
    run = trial_with_patch(judged)
    record = json.loads((run / "run.json").read_text())
    patch = (run / "change.patch").read_text()
    (run / "change.patch").write_text(patch.replace("+", "+#", 1))
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["files"]["change.patch"] = hashlib.sha256((run / "change.patch").read_bytes()).hexdigest()
    (run / "manifest.json").write_text(json.dumps(manifest))
    named = {"written.change.patch", "change.patch"}

    def found() -> set[str]:
        return named & {p["field"] for p in judged.run("verify", "--json").json["problems"]}

    assert found() == named
    del record["written"]["change.patch"]
    changed(run, written=record["written"])
    assert found() == {"change.patch"}
    changed(run, written=None)
    assert found() == set()


@pytest.mark.parametrize("commit", ["0" * 40, "HEAD~1", "--output=x", ""])
def test_a_commit_that_is_not_there_is_unknown(judged: Campaign, commit: str) -> None:
    changed(trial_with_patch(judged), commit=commit)
    assert problems(judged) == []


def test_runs_of_one_commit_ran_one_tree(judged: Campaign) -> None:
    run = trial_with_patch(judged)
    record = json.loads((run / "run.json").read_text())
    others = [judged.folder / "runs" / name for name in judged.runs()]
    other = next(o for o in others if o.name.endswith("-h4"))
    changed(other, commit=record["commit"])
    (problem,) = problems(judged)
    assert (problem["run"], problem["why"]) == (other.name, f"runs/{run.name} ran the same commit")
