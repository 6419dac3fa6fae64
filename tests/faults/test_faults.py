"""A sample of each series of faults, drawn anew at each run from the seed that is printed.

`python -m tests.faults` runs the whole series, and one again by its `--seed`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.faults import malformed, rig, story, worst


@pytest.fixture(scope="module")
def stages(made_once: Callable[..., dict[str, str]]) -> dict[str, Path]:
    """The stages of the story."""
    told = made_once("faults", lambda folder: {name: str(path) for name, path in story.tell(folder).items()})
    return {name: Path(path) for name, path in told.items()}


@pytest.fixture
def seed() -> Iterator[int]:
    drawn = random.SystemRandom().randrange(10**6)
    print(f"seed {drawn}")
    yield drawn


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("scenarios", "count"),
    [
        pytest.param(1, 3, marks=pytest.mark.slow, id="3 points"),
        pytest.param(10, 50, marks=pytest.mark.heavy, id="50 points"),
    ],
)
@pytest.mark.parametrize("faults", [rig.KILLS, rig.FAILURES], ids=["killed", "failing"])
def test_nothing_is_lost_doubled_or_left(
    faults: tuple[str, ...], stages: dict[str, Path], tmp_path: Path, seed: int, scenarios: int, count: int
) -> None:
    try:
        tracer = rig.build(tmp_path)
    except rig.Unavailable as e:
        pytest.skip(str(e))
    draw = random.Random(seed)
    bench = rig.Bench(tmp_path / "bench", tracer, stages)
    chosen = draw.sample(story.SCENARIOS, scenarios)
    points = rig.points(bench, chosen, faults)
    by_name = {scenario.name: scenario for scenario in chosen}
    results = [bench.run(by_name[p.scenario], p) for p in draw.sample(points, min(count, len(points)))]
    wrong = [result.as_json() for result in results if result.problems]
    assert not wrong, json.dumps({"seed": seed, "wrong": wrong}, indent=1)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "inputs",
    [
        pytest.param(80, marks=pytest.mark.slow, id="80 inputs"),
        pytest.param(2000, marks=pytest.mark.heavy, id="2000 inputs"),
    ],
)
def test_malformed_files_get_one_line(
    stages: dict[str, Path], tmp_path: Path, seed: int, inputs: int
) -> None:
    count, found = malformed.run(stages["tested"], tmp_path, inputs, seed, minutes=4)
    assert count >= inputs // 4
    assert not found, "\n".join(
        f"seed {seed}, {f.kind}, {f.number}, {f.words}: {f.problem}" for f in found[:5]
    )


_EACH = sorted(worst.shapes())


@pytest.mark.heavy
@pytest.mark.parametrize("name", _EACH)
def test_every_worst_file_costs_what_follows_from_its_size(tmp_path: Path, name: str) -> None:
    line, wrong = worst.problems(tmp_path, name)
    if name in worst.BEYOND and wrong:
        pytest.xfail(f"{worst.BEYOND[name]}: {line}")
    assert wrong == [], line
