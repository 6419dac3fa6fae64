"""The programs of tests/zoo as campaigns in repositories of their own, and the truth about them."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml
from tests.support.campaigns import Campaign, make_repository

ZOO = Path(__file__).resolve().parent.parent / "zoo"
HEALTHY = "none"
"""Stands for the cause of a program in which nothing is wrong."""

SHARED = ZOO / "ddp.py"
"""What the programs of several ranks share."""
_COPIED = ("train.py", "gpudebug.yaml", "progress.md")


class ZooCampaign(Campaign):
    """A campaign whose progress file lies beside its program, as in the zoo."""

    @property
    def progress(self) -> Path:
        return self.folder / "progress.md"

    def keep_candidates(self, *numbers: int) -> None:
        """Take all other hypotheses out of the progress file."""
        head, *entries = re.split(r"(?=^### Hypothesis )", self.text, flags=re.M)
        kept = [e for e in entries if int(e.split(":")[0].split()[-1]) in numbers]
        self.progress.write_text("".join([head, *kept]), encoding="utf-8")


@dataclass(frozen=True)
class Truth:
    """What is wrong with a program: ids of causes, the largest first, and the numbers of the hypotheses that
    mend it; `shows` is `cpu` or `cuda`, the device on which it is seen, or `ranks`, of a training with
    several processes: then `rank` and `straggler` say which of them is slow and why."""

    cause: tuple[str, ...]
    fix: tuple[int, ...]
    shows: str
    why: str
    rank: int | None = None
    straggler: str | None = None

    @property
    def healthy(self) -> bool:
        return self.cause == (HEALTHY,)


def names() -> list[str]:
    """The zoo's programs in alphabetical order."""
    return sorted(path.parent.name for path in ZOO.glob("*/train.py"))


def truth(name: str) -> Truth:
    """For scoring alone: nothing that diagnoses or decides may see it."""
    said = yaml.safe_load((ZOO / name / "truth.yaml").read_text(encoding="utf-8"))
    ranks = said.get("rank"), said.get("straggler")
    return Truth(tuple(said["cause"]), tuple(said["fix"]), said["shows"], said["why"].strip(), *ranks)


def files(name: str, python: str = sys.executable) -> dict[str, str]:
    """The campaign's files, relative path -> text; the truth is not among them."""
    found = {file: (ZOO / name / file).read_text(encoding="utf-8") for file in _COPIED}
    if re.search(rf"^from {SHARED.stem} import", found["train.py"], re.M):
        found[SHARED.name] = SHARED.read_text(encoding="utf-8")
    found["gpudebug.yaml"] = found["gpudebug.yaml"].replace("{python}", shlex.quote(python))
    return {**found, ".gitignore": "runs/\n__pycache__/\n"}


def make_zoo_campaign(folder: Path, name: str) -> ZooCampaign:
    """The zoo's program `name` in a new git repository at `folder`, ready for `gpudebug next`."""
    return ZooCampaign(make_repository(folder, files(name)))
