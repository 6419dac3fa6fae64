"""Long campaigns, made of a short one: the same evidence under many numbers."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from tests.support.campaigns import Campaign

from gpudebug.core.progress import parse
from gpudebug.edges.store import RunFolder

ENTRY = re.compile(r"### Hypothesis 1: .*?(?=\n### |\Z)", re.DOTALL)


def multiply(campaign: Campaign, count: int) -> None:
    """`count` hypotheses from number 1,001 on, each with the verdict of the first and runs like its."""
    found = ENTRY.search(campaign.text)
    assert found is not None
    templates = parse(campaign.text.encode(), "x").hypothesis(1).runs
    entries = []
    for number in range(1001, 1001 + count):
        names = {
            name: f"{10 * number + at:05d}-{name.partition('-')[2].replace('h1', f'h{number}')}"
            for at, name in enumerate(templates)
        }
        text = found[0].replace("Hypothesis 1:", f"Hypothesis {number}:")
        for name, new in names.items():
            _copy(campaign.folder / "runs" / name, new, number, names)
            text = text.replace(f"runs/{name}", f"runs/{new}")
        entries.append(text.rstrip())
    campaign.add("\n" + "\n\n".join(entries) + "\n")


def _copy(template: Path, name: str, number: int, names: dict[str, str]) -> None:
    folder = template.with_name(name)
    shutil.copytree(template, folder)
    role = json.loads((folder / "run.json").read_text())["role"].replace("h1", f"h{number}")
    _change(folder / "run.json", name=name, hypothesis=number, role=role)
    _change(folder / "evidence.json", run=name, role=role)
    if (folder / "verdict.json").exists():
        used = json.loads((folder / "verdict.json").read_text())["runs"]
        runs = [{**run, "name": names.get(run["name"], run["name"])} for run in used]
        _change(folder / "verdict.json", hypothesis=number, runs=runs)
    digests = RunFolder(folder, str).digests()
    (folder / "manifest.json").write_text(json.dumps({"format": 1, "run": name, "files": digests}))


def _change(path: Path, **values: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
