"""A verdict is of the code that its baseline measured: none swapped, hidden from git, or beside it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, commit_all, copied, killed_at_the_end, make_campaign, wait_for
from tests.support.patches import write_patch
from tests.support.tampering import reseal, rewrite

# As long as there is a file `held` it waits, after it told that it is there.
PROGRAM = """\
import os, sys, time
from pathlib import Path
BEFORE
(Path(os.environ["GPUDEBUG_RUN_DIR"]) / "began").touch()
while Path("held").exists():
    time.sleep(0.01)
work, ends, step = (0.8 if "--lr=0.2" in sys.argv else 0.2), time.monotonic() + (SECONDS), 0
while time.monotonic() < ends:
    busy = time.process_time() + 0.05 * work
    while time.process_time() < busy:
        pass
    time.sleep(0.05 * (1 - work))
    step += 1
    print(f"step {step} loss {1 + 1 / step:.4f}", flush=True)
AFTER
"""
CONFIG = """\
campaign: test
goal: Keep the device busy.
workload: {{command: "{python} train.py --lr=0.1", timeout: 60s}}
protocol: {{max_runs: 2}}
criteria: {{success: 10, failure: 5, loss: any, throughput: any}}
device: cpu:1
"""


def campaign_of(
    folder: Path, *, before: str = "", after: str = "", seconds: str = "7", **files: str
) -> Campaign:
    program = PROGRAM.replace("BEFORE", before).replace("AFTER", after).replace("SECONDS", seconds)
    texts = {"train.py": program, "gpudebug.yaml": CONFIG.format(python=sys.executable)}
    return make_campaign(folder / "repo", files={**texts, **files})


def started(campaign: Campaign, name: str) -> None:
    wait_for((campaign.folder / "runs" / name / "job" / "began").exists)


def record_of(campaign: Campaign, name: str) -> Any:
    return json.loads((campaign.folder / "runs" / name / "run.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("program", ["train.py", "settings.yaml"])
def test_code_swapped_for_a_moment_while_a_run_starts(tmp_path: Path, program: str) -> None:
    brief = "7 if '--lr=0.1' in sys.argv else 0.5"
    campaign = campaign_of(tmp_path, seconds=brief, **{"settings.yaml": "workers: 1\n"})
    campaign.json("next")
    campaign.propose("--set --lr=0.2")
    held = campaign.folder / "held"
    held.touch()
    path = campaign.folder / program
    whole = path.read_bytes()
    process = campaign.start("next")
    with killed_at_the_end(process):
        wait_for((campaign.folder / "runs" / "0003-h1").exists)
        path.write_bytes(whole + b"# swapped\n")
        started(campaign, "0003-h1")
        path.write_bytes(whole)
        held.unlink()
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    said = f"{program} was written while run 0003-h1 was under way, so it does not count"
    assert said in err.decode().splitlines()[-1]
    assert record_of(campaign, "0003-h1")["set_aside"] == said
    assert campaign.statuses() == ["UNTESTED"]
    assert campaign.json("verify")["ok"]


@pytest.mark.slow
def test_a_training_that_writes_its_own_code_in_each_trial_costs_its_hypothesis(tmp_path: Path) -> None:
    after = 'if "--lr=0.2" in sys.argv: Path(__file__).write_bytes(Path(__file__).read_bytes())'
    campaign = campaign_of(tmp_path, after=after, seconds="7 if '--lr=0.1' in sys.argv else 0.5")
    campaign.json("next")
    campaign.propose("--set --lr=0.2")
    said = campaign.json("next", "--overwrite", status=1)["error"]["message"]
    assert said == "train.py was written while run 0003-h1 was under way, so it does not count"
    second = campaign.json("next", "--overwrite")
    run = second["files"][0].rpartition("/")[2]
    assert (second["hypothesis"], second["verdict"]) == (1, "INVALID")
    assert second["why"] == (
        f"the training changed the code that it ran: train.py was written while run {run} was under way"
    )
    assert campaign.json("verify")["problems"] == []


@pytest.mark.slow
def test_a_tracked_file_that_every_run_rewrites_and_notes_spoil_nothing(tmp_path: Path) -> None:
    campaign = campaign_of(
        tmp_path,
        before='Path("metrics.json").write_text("{}")',
        **{"metrics.json": "{}", "hypotheses/notes.md": "a\n", "AGENTS.md": "a\n"},
    )
    campaign.json("next", "--overwrite")
    assert record_of(campaign, "0001-baseline-workload")["rewritten"] == ["metrics.json"]
    campaign.propose("--set --lr=0.2")
    process = campaign.start("next", "--json")
    with killed_at_the_end(process):
        started(campaign, "0003-h1")
        for name in ("hypotheses/notes.md", "AGENTS.md", "progress/more.md"):
            (campaign.folder / name).write_text("b\n")
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    gates = {gate["name"]: gate["result"] for gate in json.loads(out)["gates"]}
    assert gates["environment_parity"] == "pass", out
    assert record_of(campaign, "0003-h1")["rewritten"] == ["metrics.json"]
    assert campaign.json("verify")["ok"]


# A module of Python's own, taken for a moment by one that makes the program sleep less and hides itself.
SHADOW = """\
import os, sys, time
path = sys.path[:]
here = os.path.dirname(os.path.abspath(__file__))
base = os.path.dirname(here) if os.path.basename(here) == "random" else here
sys.path = [entry for entry in path if os.path.abspath(entry or ".") != base]
del sys.modules["random"]
import random
sys.path = path
sleep = time.sleep
time.sleep = lambda seconds: sleep(seconds / 10)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """A campaign with its baseline; an ignored module is part of it. Its trials take a moment."""
    campaign = campaign_of(
        tmp_path_factory.mktemp("code"),
        before="import random, _version",
        seconds="7 if '--lr=0.1' in sys.argv and _version.full else 0.5",
        **{".gitignore": "runs/\n_version.py\n__pycache__/\n"},
    )
    with campaign.config.open("a") as f:
        f.write("worktree: {link: [_version.py]}\n")
    commit_all(campaign.folder)
    (campaign.folder / "_version.py").write_text("full = True\n")
    campaign.json("next")
    return campaign


def package(folder: Path) -> None:
    (folder / "random").mkdir()
    (folder / "random" / "__init__.py").write_text(SHADOW)


def ignored(folder: Path) -> None:
    (folder / "random.py").write_text(SHADOW)
    with (folder / ".gitignore").open("a") as f:
        f.write("random.py\n")


def generated(folder: Path) -> None:
    (folder / "_version.py").write_text("full = True  # another\n")


@pytest.mark.parametrize(
    ("hide", "named"),
    [(package, "random/__init__.py"), (ignored, "random.py"), (generated, "_version.py")],
)
def test_code_that_is_not_counted_gets_no_verdict(
    made: Campaign, tmp_path: Path, hide: Callable[[Path], None], named: str
) -> None:
    campaign = copied(made, tmp_path / "repo")
    campaign.propose("--set --lr=0.2")
    hide(campaign.folder)
    answer = campaign.json("next")
    assert (answer["action"], answer["verdict"]) == ("tested", "INVALID"), answer
    assert f"{named} was imported, is not part of the measured code" in answer["why"]
    checked = campaign.json("verify")
    assert checked["ok"], checked
    # Without what the record says of it, the verdict does not follow.
    for name in campaign.runs()[1:]:
        rewrite(campaign.folder / "runs" / name / "run.json", uncounted={})
        reseal(campaign.folder / "runs" / name)
    assert not campaign.json("verify", status=1)["ok"]


def test_a_module_that_baseline_and_trial_import_alike_is_nothing(made: Campaign, tmp_path: Path) -> None:
    campaign = copied(made, tmp_path / "repo")
    assert [*record_of(campaign, "0001-baseline-workload")["uncounted"]] == ["_version.py"]
    campaign.propose("--set --lr=0.2")
    answer = campaign.json("next")
    assert {g["name"]: g["result"] for g in answer["gates"]}["environment_parity"] == "pass", answer
    assert campaign.json("verify")["ok"]


def test_a_module_that_a_patch_adds_is_counted(made: Campaign, tmp_path: Path) -> None:
    campaign = copied(made, tmp_path / "repo")
    program = (campaign.folder / "train.py").read_text().replace("7 if", "0.5 if", 1)
    program = program.replace("import random", "import random, more.new", 1)
    text = write_patch(campaign, "hypotheses/patches/x.patch", {"train.py": program})
    new = "diff --git a/more/new.py b/more/new.py\nnew file mode 100644\n--- /dev/null\n+++ b/more/new.py\n"
    (campaign.folder / "hypotheses/patches/x.patch").write_text(f"{text}{new}@@ -0,0 +1 @@\n+x = 1\n")
    campaign.json("propose", "--title", "More", "--method", "It.", "--patch", "hypotheses/patches/x.patch")
    answer = campaign.json("next")
    assert {g["name"]: g["result"] for g in answer["gates"]}["environment_parity"] == "pass", answer
    # The baseline of all these tests may be long ago: then one more run of it comes first.
    trial = next(name for name in campaign.runs() if name.endswith("-h1"))
    assert [*record_of(campaign, trial)["uncounted"]] == ["_version.py"]
    evidence = json.loads((campaign.folder / "runs" / trial / "evidence.json").read_text())
    assert "more/new.py" in evidence["loaded"]["files"]


def test_a_record_that_says_nothing_of_it_is_sound(made: Campaign, tmp_path: Path) -> None:
    """As 0.1.0 left them."""
    campaign = copied(made, tmp_path / "repo")
    campaign.propose("--set --lr=0.2")
    campaign.json("next")
    for run in (campaign.folder / "runs").glob("0*"):
        old = json.loads((run / "run.json").read_text())
        old = {key: value for key, value in old.items() if key not in ("rewritten", "uncounted")}
        (run / "run.json").write_text(json.dumps(old))
        reseal(run)
    assert campaign.json("verify")["ok"]
