#!/bin/sh
# pytest's own recipe for `--runslow`: a folder named like the mark skips all tests in it, also one that would fail.
#
# Expect    The recipe of pytest's documents ("Control skipping of tests according to command line option") skips the
#           tests that are marked @pytest.mark.slow, and no others.
# Happens   `"slow" in item.keywords` is true of the names of folders, files' packages, classes, functions and
#           parameters, too: an unmarked test that fails is skipped in tests/slow/, as a function named `slow`, and with a
#           parameter `slow`. The run is green. `item.get_closest_marker("slow")`, and `-m slow`, see the mark alone.
# Versions  pytest 9.2.0.
# Hurts     Repositories of trainings, whose marks are named like their folders and parameters (gpu, slow, cuda,
#           distributed): tests in tests/gpu/ that need none never run, and a parameter `cuda` skips the other half too.
set -eu
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$room/venv"
"$room/venv/bin/pip" install --quiet --disable-pip-version-check pytest==9.2.0

mkdir -p "$room/project/tests/slow" "$room/project/tests/quick"
cat >"$room/project/conftest.py" <<'PY'
import os

import pytest


def pytest_addoption(parser):
    parser.addoption("--runslow", action="store_true", default=False, help="run slow tests")


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: mark test as slow to run")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--runslow"):
        return
    skip_slow = pytest.mark.skip(reason="need --runslow option to run")
    for item in items:
        if item.get_closest_marker("slow") if os.environ.get("BY_MARK") else "slow" in item.keywords:
            item.add_marker(skip_slow)
PY
cat >"$room/project/tests/slow/test_folder.py" <<'PY'
def test_in_a_folder():
    assert False
PY
cat >"$room/project/tests/quick/test_others.py" <<'PY'
import pytest


@pytest.mark.parametrize("disk", ["slow", "fast"])
def test_of_a_parameter(disk):
    assert disk == "fast"


@pytest.mark.slow
def test_with_the_mark():
    assert False


def test_of_its_own():
    assert True
PY
cat >"$room/probe.py" <<'PY'
import os
import re
import subprocess
import sys
from importlib.metadata import version


def ran(*words, **env):
    """Return the exit status, and how many tests passed, failed, were skipped and left out."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", *words],
        capture_output=True, text=True, env={**os.environ, **env}, cwd=sys.argv[1],
    )
    counts = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|skipped|deselected)", done.stdout)}
    return done.returncode, counts


print("pytest", version("pytest"))
recipe, by_mark, marked = ran(), ran(BY_MARK="1"), ran("--runslow", "-m", "slow")
print("the recipe:", recipe)
print("by the mark:", by_mark)
print("--runslow -m slow:", marked)
assert recipe == (0, {"passed": 2, "skipped": 3}), "the recipe skips something else now"
assert by_mark == (1, {"passed": 2, "failed": 2, "skipped": 1})
assert marked == (1, {"failed": 1, "deselected": 4})
PY
"$room/venv/bin/python" "$room/probe.py" "$room/project" || {
    echo "changed: the assertion above says what"
    exit 1
}
echo "as found"
