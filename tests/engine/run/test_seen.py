"""`sample -o F.csv`, `diagnose F.csv` and `analyze F.csv` show one evidence."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.support.campaigns import environment, gpudebug

from gpudebug.edges.store import file_digest

SECRET = "hf_" + "a" * 34
PROGRAM = """\
import time, torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
end = time.time() + 7
step = 0
while time.time() < end:
    time.sleep(0.02)
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    step += 1
    print(f"step {step} loss {1 / step:.4f}", flush=True)
"""


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sampled")
    (folder / "train.py").write_text(PROGRAM)
    words = (
        "sample",
        "-o",
        "F.csv",
        "--device=cpu:1",
        "--",
        sys.executable,
        "train.py",
        "--token=hf_" + "a" * 34,
    )
    (folder / "sampled.json").write_text(gpudebug(folder, "--json", *words).expect(0).out)
    return folder


def test_what_sample_shows_is_shown_of_its_file(sampled: Path) -> None:
    shown = json.loads((sampled / "sampled.json").read_text())
    analyzed = gpudebug(sampled, "--json", "analyze", "F.csv").expect(0).json
    assert shown["probe"] is not None
    for key in ("window", "devices", "throughput", "probe", "sections", "stacks"):
        assert analyzed[key] == shown[key], key
    facts = gpudebug(sampled, "--json", "diagnose", "F.csv").expect(0).json["facts"]
    assert facts["probe_steps"] == shown["probe"]["steps"]
    assert sorted(p.name for p in sampled.iterdir()) == ["F.csv", "F.log", "sampled.json", "train.py"]


def test_samples_that_were_altered_show_themselves_alone(sampled: Path, tmp_path: Path) -> None:
    lines = (sampled / "F.csv").read_text().splitlines(keepends=True)
    (tmp_path / "F.csv").write_text("".join(lines[:-1]))
    (tmp_path / "F.log").write_bytes((sampled / "F.log").read_bytes())
    assert gpudebug(tmp_path, "--json", "analyze", "F.csv").expect(0).json["probe"] is None
    missing = gpudebug(tmp_path, "--json", "diagnose", "F.csv").expect(0).json["missing"]
    assert any("only samples and log are left of this run" in one["why"] for one in missing)


def test_no_secret_of_the_command_is_kept(sampled: Path) -> None:
    kept = Path(environment()["XDG_CACHE_HOME"], "gpudebug", "seen", f"{file_digest(sampled / 'F.csv')}.json")
    assert "train.py" in kept.read_text()
    assert SECRET not in kept.read_text()
