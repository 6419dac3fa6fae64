"""A sample of each series of faults, drawn anew at each run from the seed that is printed.

`python -m tests.faults` runs the whole series, and one again by its `--seed`.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults import malformed, rig, story

SCENARIOS = 5
POINTS = 14
INPUTS = 500


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The stages of the story, told once for all processes that share the tests."""
    shared = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        shared = shared.parent
    folder = shared / "faults"
    folder.mkdir(exist_ok=True)
    index = folder / "stages.json"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not index.exists():
            told = {name: str(path) for name, path in story.tell(folder).items()}
            index.write_text(json.dumps(told))
    return {name: Path(path) for name, path in json.loads(index.read_text()).items()}


@pytest.fixture
def seed() -> Iterator[int]:
    drawn = random.SystemRandom().randrange(10**6)
    print(f"seed {drawn}")
    yield drawn


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("faults", [rig.KILLS, rig.FAILURES], ids=["killed", "failing"])
def test_nothing_is_lost_doubled_or_left(
    faults: tuple[str, ...], stages: dict[str, Path], tmp_path: Path, seed: int
) -> None:
    try:
        tracer = rig.build(tmp_path)
    except rig.Unavailable as e:
        pytest.skip(str(e))
    draw = random.Random(seed)
    bench = rig.Bench(tmp_path / "bench", tracer, stages)
    chosen = draw.sample(story.SCENARIOS, SCENARIOS)
    points = rig.points(bench, chosen, faults)
    by_name = {scenario.name: scenario for scenario in chosen}
    results = [bench.run(by_name[p.scenario], p) for p in draw.sample(points, min(POINTS, len(points)))]
    wrong = [result.as_json() for result in results if result.problems]
    assert not wrong, json.dumps({"seed": seed, "wrong": wrong}, indent=1)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_malformed_files_get_one_line(stages: dict[str, Path], tmp_path: Path, seed: int) -> None:
    count, found = malformed.run(stages["tested"], tmp_path, INPUTS, seed, minutes=4)
    assert count >= INPUTS // 4
    assert not found, "\n".join(
        f"seed {seed}, {f.kind}, {f.number}, {f.words}: {f.problem}" for f in found[:5]
    )
