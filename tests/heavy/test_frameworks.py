"""Programs of real frameworks, unchanged, seen from inside: the truth is known by how they were made.

Opt in with --run-heavy. GPUDEBUG_HEAVY_PYTHON names a Python with torch, transformers and accelerate,
GPUDEBUG_LIGHTNING_PYTHON one with torch and lightning; without them they are installed.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, gpudebug, make_repository
from tests.support.environments import python_with

HERE = Path(__file__).parent
TORCH = "torch==2.13.0"
STEPS = 200
READS = 3
"""What waiting.py reads of its tensors in every step; a framework reads more of its own."""
SETTINGS = "device: cpu:1\nprotocol: {max_runs: 2}\n"

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1800)]

FRAMEWORKS = {
    "plain": ("GPUDEBUG_TORCH_PYTHON", (TORCH,), ("torch",)),
    "lightning": ("GPUDEBUG_LIGHTNING_PYTHON", (TORCH, "lightning"), ("lightning",)),
    "trainer": (
        "GPUDEBUG_HEAVY_PYTHON",
        (TORCH, "transformers", "accelerate"),
        ("transformers", "accelerate"),
    ),
}


@pytest.fixture(scope="module", params=FRAMEWORKS)
def framework(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The framework's name and a Python that has it."""
    variable, packages, modules = FRAMEWORKS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    return request.param, python_with(folder, variable, packages, ("torch", *modules))


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def sampled(folder: Path, *words: str, **variables: str) -> dict[str, Any]:
    """What `gpudebug sample` tells of a command of this folder's programs."""
    for name in HERE.glob("*.py"):
        shutil.copy(name, folder)
    done = gpudebug(folder, "sample", "--json", "-o", "run.csv", "--", *words, env=variables).expect(0)
    answer = done.json
    assert isinstance(answer, dict)
    return answer


def truth(log: str) -> dict[str, float]:
    """What the loader itself did, as waiting.py says at the end."""
    (told,) = re.findall(r"truth (\{.*\})", log)
    found = json.loads(told)
    assert isinstance(found, dict)
    return found


def check(probe: dict[str, Any], known: dict[str, float]) -> None:
    assert probe["data_wait_share"] == pytest.approx(known["share"], abs=0.02)
    assert probe["steps_per_s"] == pytest.approx(known["steps_per_s"], rel=0.03)
    own = [s for s in probe["sites"] if re.search(r"waiting\.py:\d+$", s["site"])]
    assert [(s["kind"], s["count"]) for s in own] == [("item", READS * STEPS)]
    assert probe["blocking_reads_per_step"] >= READS
    assert probe["off"] is None
    if abs(known["share"] - 0.6) > 0.02:
        pytest.skip(f"the loader slept {known['share']:.0%} of the step: too busy here to judge figures")
    assert probe["data_wait_share"] == pytest.approx(0.6, abs=0.03)


def test_sample_sees_what_the_loader_did(framework: tuple[str, str], tmp_path: Path) -> None:
    name, python = framework
    answer = sampled(tmp_path, python, f"{name}_train.py", f"--steps={STEPS}")
    log = (tmp_path / "run.log").read_text(errors="replace")
    assert answer["probe"]["steps"] == STEPS
    # One read of the loss beside the three of the model; the frameworks' own are theirs to change.
    if name == "plain":
        assert answer["probe"]["blocking_reads_per_step"] == pytest.approx(READS + 1, abs=0.01)
    check(answer["probe"], truth(log))


def test_a_campaign_shows_it_and_profiles_it(framework: tuple[str, str], tmp_path: Path) -> None:
    name, python = framework
    programs = {p: (HERE / p).read_bytes() for p in ("waiting.py", f"{name}_train.py")}
    command = f"{shlex.quote(python)} {name}_train.py --steps={STEPS} --lr=0.1"
    config = f"campaign: test\nworkload: {{command: {json.dumps(command)}}}\n{SETTINGS}"
    files = {"gpudebug.yaml": config, ".gitignore": "runs/\noutputs/\n", **programs}
    campaign = Campaign(make_repository(tmp_path / "repo", files))
    campaign.run("baseline", timeout=600).expect(0)
    campaign.json("propose", "--title", "It learns too fast", "--method", "Halve it.", "--set", "--lr=0.05")
    campaign.run("next", timeout=600).expect(0)
    shown = campaign.json("show", "1")
    evidence = shown["evidence"][-1]
    log = campaign.folder / "runs" / evidence["run"] / "train.log"
    assert {side["part"] for side in shown["probe"]} == {"baseline", "trial"}

    words = ("baseline", "--torch-profile", "wait=3,warmup=1,active=5")
    profiled = campaign.json(*words, timeout=600)
    trace = profiled["trace"]
    assert trace["steps"] == 5
    found = campaign.json("analyze", trace["path"])
    assert found["steps"]["count"] == 5
    assert [row["step"] for row in found["steps"]["table"]] == [4, 5, 6, 7, 8]
    campaign.run("verify").expect(0)
    assert campaign.json("status")["baselines"]["workload"]["runs"] == ["0001-baseline-workload"]
    check(evidence["probe"], truth(log.read_text(errors="replace")))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_loader_workers_are_no_trainings(tmp_path: Path, method: str) -> None:
    pytest.importorskip("torch")
    answer = sampled(tmp_path, sys.executable, "workers_train.py", f"--method={method}")
    probe = answer["probe"]
    assert probe["data_wait_share"] == pytest.approx(0.6, abs=0.03)
    assert probe["steps_per_s"] == pytest.approx(10, rel=0.03)
    assert probe["blocking_reads_per_step"] == pytest.approx(1, abs=0.01)
    (loader,) = probe["facts"]["loaders"]
    assert (loader["workers"], loader["method"], loader["batch_size"]) == (2, method, 4)
    assert probe["ranks"] == []


def test_each_rank_tells_of_itself(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    run = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
    probe = sampled(tmp_path, *run, "ranks_train.py")["probe"]
    assert (probe["rank"], probe["world_size"]) == (0, 2)
    assert [rank["rank"] for rank in probe["ranks"]] == [0, 1]
    for rank in probe["ranks"]:
        assert rank["data_wait_share"] == pytest.approx(0.6, abs=0.03)
        assert rank["steps_per_s"] == pytest.approx(20, rel=0.05)
    assert probe["samples_per_s"] == pytest.approx(2 * 4 * probe["steps_per_s"], rel=0.05)


def test_a_python_path_and_a_sitecustomize_of_the_users_own_stay(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "sitecustomize.py").write_text("import builtins\nbuiltins.theirs = 'mine'\n")
    (theirs / "settings.py").write_text("import builtins\nprint('settings', builtins.theirs)\n")
    words = (sys.executable, "-c", "import settings, plain_train; plain_train.main()", f"--steps={STEPS}")
    answer = sampled(tmp_path, *words, PYTHONPATH=f"{theirs}:{tmp_path}")
    log = (tmp_path / "run.log").read_text(errors="replace")
    assert "settings mine" in log
    check(answer["probe"], truth(log))
