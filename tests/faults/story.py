"""Campaigns at the moments before each command that changes something, and what is true after it."""

from __future__ import annotations

import difflib
import hashlib
import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.support.campaigns import TRAINER as PROGRAM
from tests.support.campaigns import Campaign, git, make_replay_campaign, make_repository, record

from gpudebug.core.progress import parse

RECORDED_S = 12.0
SPEED = 60
CONFIG = "budget: {hypotheses: 10, device_time: 10h}\ntarget: 100\n"
FLAG = ("propose", "--title", "The loader waits", "--method", "Try it.", "--set", "--lr=0.2")
CODE = ("propose", "--title", "The loop is slow", "--method", "Write it.", "--code")
AGENT = "import subprocess, sys; subprocess.run([sys.executable, '-m', 'gpudebug', 'next'])"


class State(NamedTuple):
    """What a reader of the campaign sees: hypotheses with status and runs, accepted ones, baselines."""

    hypotheses: tuple[tuple[int, str, str, int], ...]
    accepted: tuple[str, ...]
    baselines: tuple[tuple[str, int], ...]
    config: bool


@dataclass(frozen=True)
class Scenario:
    """One command, on a campaign of the story's stage `stage`.

    Repeated it comes to an end: `settled` are the exit statuses that say so; a first call that does all there
    is to do ends with `done`. After an interruption `then` follows before the command is repeated.
    """

    name: str
    stage: str
    words: tuple[str, ...]
    done: tuple[int, ...] = (0,)
    settled: tuple[int, ...] = (0,)
    before: tuple[str, ...] | None = None
    then: tuple[str, ...] | None = None


# A command that was carried out already is refused the second time (1), and says so.
ONCE = (0, 1)
ASKED = (4, 5)
SCENARIOS = (
    Scenario("init", "bare", ("init", "--command", "python train.py --lr=0.1"), settled=ONCE),
    Scenario("propose", "begun", FLAG, settled=ONCE),
    Scenario("baseline", "begun", ("baseline", "workload")),
    Scenario("next: baseline", "begun", ("next",), settled=ASKED),
    Scenario("next: trial", "proposed", ("next",), settled=ASKED),
    Scenario("next: patch", "patched", ("next",), settled=ASKED),
    Scenario("next: asks for code", "wanted", ("next",), done=(5,), settled=(5,)),
    Scenario("next --detach", "proposed", ("next", "--detach"), settled=ASKED, then=("wait",)),
    Scenario("wait", "proposed", ("wait",), done=(0, 1), settled=(0, 1)),
    Scenario("accept", "tested", ("accept", "1"), settled=ONCE),
    Scenario("reopen", "undecided", ("reopen", "1"), settled=ONCE),
    Scenario("release", "wanted", ("release", "1"), settled=(0, 1, 2), before=("next",)),
    Scenario("export", "accepted", ("export", "-o", "out")),
    Scenario("report", "tested", ("report",)),
    Scenario(
        "loop",
        "proposed",
        ("loop", "--agent", shlex.join([sys.executable, "-c", AGENT]), "--hypotheses", "1"),
        done=(0, 1, 4),
        settled=(0, 1, 4),
    ),
)


def tell(folder: Path) -> dict[str, Path]:
    """Make the stages of the story below `folder`; the repository of each by its name."""
    recordings = folder / "recordings"
    record(recordings, "0001-baseline-workload", seconds=RECORDED_S)
    record(recordings, "0002-h1", util=60, rate=30, seconds=RECORDED_S)
    stages: dict[str, Path] = {}

    def keep(name: str, campaign: Campaign) -> None:
        stages[name] = folder / "stages" / name / "repo"
        shutil.copytree(campaign.folder, stages[name], symlinks=True)

    bare = make_repository(folder / "bare", {"train.py": PROGRAM.read_bytes(), "notes.txt": "kept\n"})
    (bare / "notes.txt").write_text("kept, and changed\n")
    keep("bare", Campaign(bare))

    campaign = _begun(folder / "repo", recordings)
    keep("begun", campaign)
    campaign.run("next").expect(0)
    keep("baselined", campaign)
    campaign.run(*FLAG).expect(0)
    keep("proposed", campaign)
    campaign.run("next").expect(0)
    keep("tested", campaign)
    record(folder / "poor recordings", "0001-baseline-workload", seconds=RECORDED_S)
    # Between the two bounds of the criteria: no verdict either way, which is what may be reopened.
    record(folder / "poor recordings", "0002-h1", util=35, rate=17, seconds=RECORDED_S)
    poor = _begun(folder / "poor", folder / "poor recordings")
    poor.run("next").expect(0)
    poor.run(*FLAG).expect(0)
    poor.run("next").expect(0)
    keep("undecided", poor)

    patched = Campaign(folder / "patched")
    shutil.copytree(stages["baselined"], patched.folder, symlinks=True)
    old = (patched.folder / "train.py").read_text().splitlines(keepends=True)
    changed = difflib.unified_diff(old, [*old, "CHANGED = True\n"], "a/train.py", "b/train.py")
    patch = patched.folder / "hypotheses" / "patches" / "fix.patch"
    patch.parent.mkdir(parents=True)
    patch.write_text("".join(changed))
    patched.run(
        "propose", "--title", "A patch", "--method", "Try it.", "--patch", "hypotheses/patches/fix.patch"
    ).expect(0)
    keep("patched", patched)
    patched.run("next").expect(0)
    patched.run("accept", "1").expect(0)
    keep("accepted", patched)

    coded = Campaign(folder / "coded")
    shutil.copytree(stages["baselined"], coded.folder, symlinks=True)
    coded.run(*CODE).expect(0)
    keep("wanted", coded)
    return stages


def _begun(folder: Path, recordings: Path) -> Campaign:
    campaign = make_replay_campaign(
        folder,
        recordings,
        SPEED,
        config=CONFIG,
        max_runs=2,
        progress="## Notes\n\nKept as it is.\n\n## Hypotheses\n",
        files={"notes.txt": "kept\n", "staged.txt": "one\n"},
    )
    (folder / "notes.txt").write_text("kept, and changed\n")
    (folder / "staged.txt").write_text("two\n")
    git(folder, "add", "staged.txt")
    (folder / "data").mkdir()
    (folder / "data" / "untracked.bin").write_bytes(b"the user's")
    return campaign


def state(folder: Path) -> State:
    """What the campaign's files say. Raises what the parser raises at a file that is not whole."""
    progress = (
        next((p for p in (folder / "progress").glob("*.md")), None)
        if (folder / "progress").exists()
        else None
    )
    config = (folder / "gpudebug.yaml").exists()
    if progress is None:
        return State((), (), (), config)
    document = parse(progress.read_bytes(), "progress.md")
    names = [name for h in document.hypotheses for name in h.runs]
    assert len(names) == len(set(names)), f"a run counts twice: {names}"
    text = progress.read_text()
    return State(
        tuple((h.number, h.title, h.status.value, len(h.runs)) for h in document.hypotheses),
        tuple(line for line in text.splitlines() if "**Accepted**" in line),
        tuple((b.role, len(b.runs)) for b in document.baselines),
        config,
    )


def foreign(folder: Path) -> dict[str, str]:
    """Digests of the user's: every file outside gpudebug's own folders, and git's HEAD and index."""
    found = {}
    ours = ("runs", "progress", "hypotheses", "out", "gpudebug.yaml", ".gitignore")
    for at, folders, files in os.walk(folder):
        here = Path(at).relative_to(folder)
        apart = (*ours, ".git") if here == Path() else ()
        folders[:] = [name for name in folders if name not in apart]
        # Beside what it replaces, a temporary lives until the next write there: `left_over` looks for it.
        for name in (n for n in files if n not in apart and ".gpudebug-" not in f"{here}/{n}"):
            path = Path(at, name)
            content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
            found[str(here / name)] = hashlib.sha256(content).hexdigest()
    for name in ("HEAD", "index", "config", "refs/heads/main", "refs/stash"):
        path = folder / ".git" / name
        found[f".git/{name}"] = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "none"
    return found


def left_over(folder: Path, temporary: Path) -> list[str]:
    """What must be gone once a command has been repeated: git's locks, temporaries, half-made worktrees."""
    found = [str(p.relative_to(folder)) for p in folder.rglob("*.tmp")]
    # A file that gpudebug locks stays: who has it is the kernel's to know.
    ours = folder / ".git" / "gpudebug" / "folders"
    locks = (p for p in (folder / ".git").rglob("*.lock") if not p.is_relative_to(ours))
    found += [str(p.relative_to(folder)) for p in locks]
    found += [p.name for p in temporary.iterdir()]
    listed = git(folder, "worktree", "list", "--porcelain")
    found += [line for line in listed.splitlines() if line.startswith("prunable")]
    return found
