"""The pages about Slurm: their examples are read, and what they say of it is what the code does."""

from __future__ import annotations

import re

from tests.support.documents import ROOT, page

from gpudebug.core import config
from gpudebug.core.cluster.jobs import ASK_S
from gpudebug.core.cluster.slurm_requests import NO_FOLDER, NO_PROGRAM, NO_SETUP
from gpudebug.core.config import SlurmSettings

USERS, ADMINS = ROOT / "docs" / "slurm.md", ROOT / "docs" / "slurm-admin.md"


def test_the_template_of_a_clusters_defaults_is_read() -> None:
    (template,) = [block.text for block in page(ADMINS).blocks if block.mark == "checked: cluster"]
    found = config.cluster_defaults(template, "cluster.yaml")
    assert SlurmSettings.model_validate(dict(found)).setup == "module load cuda"


def test_the_example_is_read() -> None:
    example = next(block.text for block in page(USERS).blocks if block.text.startswith("runner:"))
    found = config.load("workload: {command: python train.py}\n" + example, "gpudebug.yaml").runner
    assert found is not None and found.slurm is not None
    assert (found.slurm.partition, found.slurm.time) == ("gpu", 14400.0)


def test_every_setting_is_listed() -> None:
    rows = [line.split("|")[1] for line in USERS.read_text().splitlines() if line.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert listed == set(SlurmSettings.model_fields)


def test_the_figures_are_those_of_the_code() -> None:
    text = " ".join(USERS.read_text().split())
    assert f"status {NO_FOLDER} or {NO_PROGRAM} if the node does not see the folder or the Python" in text
    assert f"with {NO_SETUP} if `setup` fails" in text
    assert f"at most every {ASK_S:g} s" in ADMINS.read_text()
    assert f"comes after {2 * ASK_S:g} s" in ADMINS.read_text()
