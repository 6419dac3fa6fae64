"""The variable that times the methods of named classes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpudebug.training.profiling.methods import parse

MODULE = """
class Policy:
    kind = property(lambda self: 1)
    def __init__(self): self.calls = 0
    def forward(self, x): return self._inner(x) + self.twice(x)
    def _inner(self, x): self.calls += 1; return x
    @staticmethod
    def twice(x): return 2 * x
class Other:
    def run(self): return 1
"""
PROGRAM = """
import {first}
from pkg.policy import Policy, Other
p = Policy()
assert [p.forward(1) for _ in range(3)] == [3] * 3 and p.calls == 3 and p.kind == 1 and Other().run() == 1
"""


def sections(
    tmp_path: Path, variable: str, first: str = "gpudebug.training.profiling"
) -> tuple[dict[str, int], list[str]]:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "policy.py").write_text(MODULE)
    env = {**os.environ, "GPUDEBUG_PROFILE": str(tmp_path / "r.json"), "GPUDEBUG_PROFILE_METHODS": variable}
    command = [sys.executable, "-c", PROGRAM.format(first=first)]
    subprocess.run(command, cwd=tmp_path, env=env, check=True)
    report = json.loads((tmp_path / "r.json").read_text())
    return {s["name"]: s["calls"] for s in report["sections"]}, report["notes"]


def test_every_method_of_a_class_private_ones_too(tmp_path: Path) -> None:
    found, _ = sections(tmp_path, "pkg.policy:Policy")
    assert found == {"Policy.forward": 3, "Policy._inner": 3, "Policy.twice": 3}


@pytest.mark.parametrize("first", ["gpudebug.training.profiling", "pkg.policy, gpudebug.training.profiling"])
def test_a_module_is_all_its_classes_imported_before_or_after(tmp_path: Path, first: str) -> None:
    found, _ = sections(tmp_path, "pkg.policy", first)
    assert found == {"Policy.forward": 3, "Policy._inner": 3, "Policy.twice": 3, "Other.run": 1}


def test_a_name_that_is_not_there_is_a_note(tmp_path: Path) -> None:
    found, notes = sections(tmp_path, "pkg.policy:Polisy, nowhere.at.all:X")
    assert found == {}
    assert "GPUDEBUG_PROFILE_METHODS: pkg.policy has no class Polisy" in notes


def test_what_the_variable_names() -> None:
    assert parse(" a.b:C , a.b:D,e,, ") == {"a.b": ["C", "D"], "e": []}
