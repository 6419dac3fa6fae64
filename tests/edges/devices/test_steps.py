"""What a scheduler started of a run is the run's: here it is a child of the test, not of the tree."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpudebug.edges.devices.proctree import ProcessTree
from gpudebug.edges.devices.steps import VARIABLE, marked

WAIT = "import subprocess, sys\nprint(flush=True)\nsys.stdin.read()"


@contextmanager
def process(**variables: str) -> Iterator[int]:
    started = subprocess.Popen(
        [sys.executable, "-c", WAIT],
        env={**os.environ, **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert started.stdout is not None
    started.stdout.readline()
    try:
        yield started.pid
    finally:
        started.communicate()


def test_the_mark_is_the_whole_of_a_variable(tmp_path: Path) -> None:
    mark = str(tmp_path)
    with (
        process(**{VARIABLE: mark}) as step,
        process(**{VARIABLE: f"{mark}-2"}),
        process(X=f"{VARIABLE}={mark}"),
    ):
        assert marked(mark, ()) == [step]
        assert marked(mark, {step}) == []


def test_a_step_that_carries_the_mark_is_in_the_tree_until_it_ends(tmp_path: Path) -> None:
    mark = str(tmp_path)
    with process() as root:
        trees = ProcessTree(root), ProcessTree(root, marker=mark)
        with process(**{VARIABLE: mark}) as step:
            for tree in trees:
                tree.read()
            assert [list(tree.members) for tree in trees] == [[], [step]]
        trees[1].read()
        assert trees[1].members == {}
