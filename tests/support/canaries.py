"""Secrets planted wherever a campaign could pick one up, and the search for them in all that it leaves."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.campaigns import Campaign, Done, git, gpudebug, make_replay_campaign, record
from tests.support.patches import write_patch

# Values that no shape gives away are known by their name alone; the others by what they look like.
INHERITED = {
    "WANDB_API_KEY": "0123canary4567ofwandb89abcdef0123456789ab",
    "HF_TOKEN": "canary-inherited-hub",
    "AWS_SECRET_ACCESS_KEY": "Canary/Inherited+Aws/0000",
    "DATABASE_URL": "postgres://trainer:canary-database-pw@db.example/x",
}
CONFIGURED = {
    "SERVICE_PASSWORD": "canary-configured-pw",
    "PIP_INDEX_URL": "https://me:canary-index-pw@pypi.example",
}
FLAGS = {"--wandb.api_key": "canary-workload-flag", "--hub_token": "canary-separate-flag"}
REFERENCE_FLAG = ("--auth.password", "canary-reference-flag")
IN_GOAL = "ghp_CanaryGoal0000000000000000000000"
IN_GUIDELINES = "glpat-CanaryGuideline00000"
IN_CONTEXT = "hf_CanaryContext000000000000000"
PRINTED = "sk-proj-CanaryPrinted000000000000"
IN_TRACEBACK = "AKIACANARYTRACEBACK0"
IN_PRINTED_CONFIG = "canary-printed-config"
IN_SAVED_CONFIG = "canary-saved-config"
IN_TITLE = "github_pat_CanaryTitle00000000000"
IN_DESCRIPTION = "canary-description"
IN_METHOD = "xoxb-Canary-Method-000000"
IN_HAND_WRITTEN = "npm_CanaryHandWritten0000000000000000"
SAID_BY_AGENT = "nvapi-CanaryAgent000000000000000000000"
AGENT_FLAG = "canary-agent-flag"
IN_PATCH = "canary-in-a-patch"
IN_WORKTREE = "canary-in-a-worktree"
IN_SESSION = "hf_CanarySession00000000000000"
IN_REMOTE = "canary-remote-pw"
IN_DOTENV = "canary-dotenv"

CANARIES = (
    *("0123canary4567ofwandb89abcdef0123456789ab", "canary-inherited-hub", "Canary/Inherited+Aws/0000"),
    *("canary-database-pw", "canary-configured-pw", "canary-index-pw"),
    *FLAGS.values(),
    REFERENCE_FLAG[1],
    *(IN_GOAL, IN_GUIDELINES, IN_CONTEXT, PRINTED, IN_TRACEBACK, IN_PRINTED_CONFIG, IN_SAVED_CONFIG),
    *(IN_TITLE, IN_DESCRIPTION, IN_METHOD, IN_HAND_WRITTEN, SAID_BY_AGENT, AGENT_FLAG, IN_PATCH),
    *(IN_WORKTREE, IN_SESSION, IN_REMOTE, IN_DOTENV),
)

_CONFIG_LINE = json.dumps({"width": 3, "api_key": IN_PRINTED_CONFIG, "hub": FLAGS["--hub_token"]})
_TALK = (
    f"config: {_CONFIG_LINE}",
    f"connecting with {PRINTED}",
    *(f"{name}={value}" for name, value in {**INHERITED, **CONFIGURED}.items()),
    f"connected to {INHERITED['HF_TOKEN']} and {FLAGS['--wandb.api_key']} by {REFERENCE_FLAG[1]}",
)
CRASH = (
    "step 1/60 loss 2.0\nTraceback (most recent call last):\n  File 'train.py', line 1, in main\n"
    f"    client({IN_TRACEBACK!r}, {INHERITED['WANDB_API_KEY']!r})\n"
    f"ValueError: {IN_TRACEBACK} was refused for {CONFIGURED['SERVICE_PASSWORD']}\n"
)


def _talking(share: float) -> str:
    """The loss at a share of a run, and something that the program says with it."""
    return f"{2 - 1.5 * share:.4f}\n{_TALK[round(share * 60) % len(_TALK)]}"


# Saves its configuration beside its output, as trainers do.
SAVES = f"""\
import json, os, sys
folder = os.environ["GPUDEBUG_RUN_DIR"]
config = {{"lr": 0.1, "wandb_api_key": {IN_SAVED_CONFIG!r}}}
open(os.path.join(folder, "config.json"), "w").write(json.dumps(config))
print("using", {PRINTED!r}, os.environ["HF_TOKEN"], *sys.argv)
"""


@dataclass
class Planted:
    """A campaign full of secrets, and everything that gpudebug said in it."""

    campaign: Campaign
    temporary: Path
    env: Mapping[str, str]
    said: list[tuple[str, str]] = field(default_factory=list)

    def run(self, *words: str, env: Mapping[str, str] | None = None) -> Done:
        """One command; what it said is kept for the search."""
        done = gpudebug(self.campaign.folder, *words, env={**self.env, **(env or {})})
        shown = "gpudebug " + " ".join(words)
        self.said += [(f"standard output of {shown}", done.out), (f"standard error of {shown}", done.err)]
        return done

    def both(self, *words: str, status: int = 0, env: Mapping[str, str] | None = None) -> Done:
        """One command that only reads, for people and as JSON."""
        self.run(*words, env=env).expect(status)
        return self.run(*words, "--json", env=env).expect(status)

    def spilled(self) -> list[tuple[str, str]]:
        """Where which canary stands, of all that gpudebug wrote or said."""
        texts = [*self.said, *_written(self.campaign.folder), *_files(self.temporary)]
        texts += [("git's own objects", _objects(self.campaign.folder))]
        return [(where, canary) for where, text in texts for canary in CANARIES if _holds(text, canary)]


def plant(folder: Path) -> Planted:
    """The campaign `folder`/repo: baselines, a flag that helps, code that helps, and one that crashes."""
    recordings = folder / "recordings"
    # Two before the flag's trial and the one that ends it; what comes later has the flag.
    for number in (1, 2, 3):
        record(recordings, f"{number:04}-baseline-workload", util=20, rate=10, losses=_talking)
    record(recordings, "0009-baseline-workload", util=50, rate=30, losses=_talking)
    record(recordings, "0003-baseline-reference", util=99, rate=90, losses=_talking)
    record(recordings, "0004-h1", util=50, rate=30, losses=_talking)
    record(recordings, "0005-h2", util=80, rate=60, losses=_talking)
    record(recordings, "0006-h3", log=CRASH, seconds=3, exit_status=1)
    record(recordings, "0007-h4", util=80, rate=60, losses=_talking)
    record(recordings, "0008-aa", util=50, rate=30, losses=_talking)
    flags = f"--wandb.api_key={FLAGS['--wandb.api_key']} --hub_token {FLAGS['--hub_token']}"
    train = f"{shlex.quote(sys.executable)} train.py --lr=0.1 --work=0.2"
    campaign = make_replay_campaign(
        folder / "repo",
        recordings,
        command=f"{train} {flags}",
        config=f"reference:\n  command: {json.dumps(f'{train} {REFERENCE_FLAG[0]}={REFERENCE_FLAG[1]}')}\n"
        f"guidelines: never use {IN_GUIDELINES}\ncontext: [notes/{IN_CONTEXT}.md]\n",
        files={"data.py": "READERS = 1\n", "saves.py": SAVES, f"notes/{IN_CONTEXT}.md": "read me\n"},
    )
    text = campaign.config.read_text()
    text = text.replace("Keep the device busy.", f"use {IN_GOAL}")
    text = text.replace("  timeout:", f"  env: {json.dumps(CONFIGURED)}\n  timeout:")
    campaign.config.write_text(text)
    git(campaign.folder, "commit", "--quiet", "--all", "--message", "Configure")
    git(campaign.folder, "remote", "add", "origin", f"https://me:{IN_REMOTE}@git.example/x.git")
    (campaign.folder / ".env").write_text(f"PASSPHRASE={IN_DOTENV}\n")
    temporary = folder / "tmp"
    temporary.mkdir()
    return Planted(campaign, temporary, {**INHERITED, "TMPDIR": str(temporary)})


def plant_patch(planted: Planted, name: str) -> str:
    """A patch of hypotheses/patches with a secret in it; its path."""
    path = f"hypotheses/patches/{name}"
    write_patch(planted.campaign, path, {"data.py": f'READERS = 8\nPASSPHRASE = "{IN_PATCH}"\n'})
    return path


def _holds(text: str, canary: str) -> bool:
    """Whether a canary stands in a text, also in pieces that a line break or an escape made of it."""
    return canary in text or canary in re.sub(r"\\u00..|[\s\\]", "", text)


def _written(folder: Path) -> Iterator[tuple[str, str]]:
    """What gpudebug wrote in a repository: all but its user's own files and the logs of trainings."""
    for where, text in _files(folder):
        name = os.path.relpath(where, folder)
        users = name.startswith((".git/", "notes/", "hypotheses/patches/secret")) or name in _USERS
        # A training's own log and what it wrote itself into its run folder are as it wrote them.
        trainings = re.fullmatch(r"runs/[^/]+/(train\.log|job/.*)|runs/compare/.*/(train\.log|job/.*)", name)
        if not users and not trainings and not name.startswith("runs/worktrees/"):
            yield name, text


_USERS = ("gpudebug.yaml", "saves.py", ".env", "train.py", "data.py")


def _files(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        yield str(path), path.name + (path.read_bytes().decode("latin-1") if path.is_file() else "")


def _objects(folder: Path) -> str:
    """Every file of every commit that gpudebug keeps, but for what is in the user's own commits."""
    refs = git(folder, "for-each-ref", "--format=%(refname)", "refs/gpudebug").split()
    names = "".join(git(folder, "ls-tree", "-r", "--name-only", ref) for ref in refs)
    changed = "".join(git(folder, "diff", "--no-ext-diff", "HEAD", ref) for ref in refs)
    messages = "".join(git(folder, "log", "-1", "--format=%B%an%ae", ref) for ref in refs)
    return changed + messages + "".join(n for n in names.splitlines(True) if IN_CONTEXT not in n)
