"""A training imports the tree that is tested, wherever paths and installs lead; else that is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import environment
from tests.support.trials import criteria

from gpudebug.core.change import intervention
from gpudebug.core.change.intervention import Applied
from gpudebug.core.records import Gate
from gpudebug.core.verdict.gates.case import TrialCase
from gpudebug.core.verdict.gates.conduct import effect_gate
from gpudebug.core.verdict.gates.setting import TrialSetting
from gpudebug.core.words import Result
from gpudebug.engine.run.evidence import evidence_again
from gpudebug.engine.run.import_paths import Trees, injected, mapped, placed
from gpudebug.engine.run.job import MeasuredRun, PreparedRun, RunChange, RunCode, RunLimits
from gpudebug.engine.run.measure import measure
from gpudebug.engine.run.prepare import lone_bench
from gpudebug.engine.trial.conduct import with_conduct

NAMES = ("pkg/__init__.py", "pkg/util.py")


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def trees(tmp_path: Path) -> Trees:
    """A checkout with a package in src, another one beside it, an environment, and a worktree with both."""
    checkout = tmp_path / "repo"
    tree = checkout / "runs" / "worktrees" / "test" / "h1-trial"
    for top in (checkout, tree):
        for name in NAMES:
            write(top / "src" / name, f"HERE = {str(top)!r}\n")
        write(top / "lib" / "other" / "__init__.py")
        write(top / "scripts" / "train.py", "import pkg.util\nprint(pkg.util.HERE)\n")
        write(top / "conf" / "a b.yaml")
    venv.create(checkout / ".venv", symlinks=True, with_pip=False)
    (tree / ".venv").symlink_to(checkout / ".venv")
    write(checkout / "outputs" / "old.txt")
    packages = {"pkg": (tree / "src" / "pkg",), "other": (tree / "lib" / "other",)}
    return Trees(tree=tree, checkout=checkout, runs=checkout / "runs", packages=packages)


def test_the_other_trees_are_the_checkout_and_the_campaigns_worktrees(trees: Trees) -> None:
    assert trees.others == (trees.checkout,)
    (trees.tree.parent / "h2").mkdir()
    assert replace(trees).others == (trees.checkout, trees.tree.parent / "h2")
    assert Trees(trees.checkout, trees.checkout, trees.runs).others == (trees.tree, trees.tree.parent / "h2")


# What stands in a word; {A} is the checkout, {B} the worktree. None where it stays as it is.
WORDS = [
    ("{A}/conf/a b.yaml", "{B}/conf/a b.yaml"),
    ("--config={A}/conf/a b.yaml", "--config={B}/conf/a b.yaml"),
    ("--config={A}/conf/", "--config={B}/conf/"),
    ("{A}", "{B}"),
    ("{A}/", "{B}/"),
    ("{A}/src:{A}/lib:/usr/lib", "{B}/src:{B}/lib:/usr/lib"),
    (
        "cd {A} && python '{A}/scripts/train.py' >{A}/outputs/log",
        "cd {B} && python '{B}/scripts/train.py' >{A}/outputs/log",
    ),
    ("[{A}/src,{A}/no/such]", "[{B}/src,{A}/no/such]"),
    ("{A}/outputs/old.txt", None),
    ("{A}/outputs/new/{{run}}", None),
    ("{A}/.venv/bin/python", None),
    ("{A}/runs/0001-h1", None),
    ("{A}/../repo2/src", None),
    ("{A}src", None),
    ("s3://bucket{A}/src", None),
    ("{B}/src", None),
    ("src/pkg", None),
    ("/", None),
    ("", None),
    ("--lr=0.1", None),
]


@pytest.mark.parametrize(("word", "expected"), WORDS)
def test_paths_into_the_checkout_lead_into_the_worktree(
    trees: Trees, word: str, expected: str | None
) -> None:
    names = {"A": str(trees.checkout), "B": str(trees.tree)}
    before = word.format(**names)
    after, notes = mapped([before], trees)
    assert after == ((expected or word).format(**names),)
    assert bool(notes) is (expected is not None)


def test_each_path_is_noted_once(trees: Trees) -> None:
    word = f"{trees.checkout}/src"
    assert mapped([word, f"--path={word}"], trees)[1] == (f"{word} became {trees.tree}/src",)


def test_a_path_through_a_link_to_the_checkout_is_one_into_it(trees: Trees, tmp_path: Path) -> None:
    (tmp_path / "home").symlink_to(trees.checkout)
    assert mapped([f"{tmp_path}/home/src"], trees)[0] == (f"{trees.tree}/src",)


def test_names_that_break_what_is_careless(hostile: Path) -> None:
    checkout, tree = hostile / "repo", hostile / "tree"
    for top in (checkout, tree):
        write(top / "a=b c" / "train.py")
    trees = Trees(tree, checkout, checkout / "runs")
    word = f"--file={checkout}/a=b c/train.py"
    assert mapped([word], trees)[0] == (f"--file={tree}/a=b c/train.py",)


# How the checkout was installed into its environment: files of site-packages, {A} is the checkout.
FINDER = """
import sys
from importlib.machinery import PathFinder
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, ["{A}/src"]) if name == "pkg" else None
sys.meta_path.append(Finder)
"""
INSTALLS: Mapping[str, Mapping[str, str]] = {
    "a path file": {"pkg.pth": "{A}/src\n"},
    "a finder": {"pkg.pth": "import _editable_pkg\n", "_editable_pkg.py": FINDER},
}


def install(trees: Trees, files: Mapping[str, str], source: Path) -> None:
    (site,) = (trees.checkout / ".venv").glob("lib/python*/site-packages")
    for name, text in files.items():
        write(site / name, text.replace("{A}", str(source)))


def train(trees: Trees, **more: str) -> tuple[Applied, str, Mapping[str, Any]]:
    """The command as it is placed, what it prints, and what its process tells."""
    env = environment({"PYTHONPATH": None, "PYTHONDONTWRITEBYTECODE": "1", **more})
    argv = (str(trees.checkout / ".venv" / "bin" / "python"), "scripts/train.py")
    made = placed(argv, env, (), trees.tree, trees)
    run = trees.runs / "0001-h1"
    run.mkdir()
    done = subprocess.run(
        made.argv,
        env={**injected(made.env, trees), "GPUDEBUG_RECORDS_DIR": str(run)},
        cwd=trees.tree,
        capture_output=True,
        text=True,
        check=True,
    )
    return made, done.stdout.strip(), json.loads((run / "loaded.jsonl").read_text())


@pytest.mark.parametrize("files", INSTALLS.values(), ids=INSTALLS)
def test_an_editable_install_of_the_checkout_gives_way_to_the_worktree(
    trees: Trees, files: Mapping[str, str]
) -> None:
    install(trees, files, trees.checkout)
    made, said, told = train(trees)
    assert said == str(trees.tree)
    assert made.env["PYTHONPATH"] == str(trees.tree / "src")
    assert made.notes == (
        f"{trees.tree / 'src'} put on PYTHONPATH: an editable install names another checkout",
    )
    assert (told["elsewhere"], told["files"]) == ({}, ["scripts/train.py", *(f"src/{n}" for n in NAMES)])


@pytest.mark.parametrize("files", INSTALLS.values(), ids=INSTALLS)
def test_a_baseline_in_the_checkout_does_not_import_a_worktree(
    trees: Trees, files: Mapping[str, str]
) -> None:
    """Somebody installed the worktree that they write in."""
    install(trees, files, trees.tree)
    here = Trees(trees.checkout, trees.checkout, trees.runs, {"pkg": (trees.checkout / "src" / "pkg",)})
    _, said, told = train(here)
    assert said == str(trees.checkout)
    assert told["elsewhere"] == {}


def test_without_an_install_nothing_is_put_on_the_path(trees: Trees) -> None:
    env = environment({"PYTHONPATH": f"{trees.tree}/src"})
    made = placed([sys.executable, "scripts/train.py"], env, (), trees.tree, trees)
    assert made == Applied((sys.executable, "scripts/train.py"), env)


def test_the_users_path_is_led_over_and_stays_in_front(trees: Trees) -> None:
    install(trees, INSTALLS["a path file"], trees.checkout)
    made, said, _ = train(trees, PYTHONPATH=f"{trees.checkout}/lib:/no/such")
    assert made.env["PYTHONPATH"] == f"{trees.tree}/lib:/no/such:{trees.tree}/src"
    assert made.notes[0] == f"PYTHONPATH: {trees.checkout}/lib became {trees.tree}/lib"
    assert said == str(trees.tree)


def test_only_variables_of_the_configuration_are_led_over(trees: Trees) -> None:
    env = environment(
        {"MINE": f"{trees.checkout}/src", "THEIRS": f"{trees.checkout}/src", "PYTHONPATH": None}
    )
    made = placed(["true"], env, ["MINE"], trees.tree, trees)
    assert (made.env["MINE"], made.env["THEIRS"]) == (f"{trees.tree}/src", env["THEIRS"])


def test_a_script_that_starts_python_is_led_over_too(trees: Trees) -> None:
    install(trees, INSTALLS["a path file"], trees.checkout)
    path = f"{trees.checkout}/.venv/bin{os.pathsep}{os.environ['PATH']}"
    env = environment({"PATH": path, "PYTHONPATH": None})
    made = placed(["sh", "-c", "python scripts/train.py"], env, (), trees.tree, trees)
    assert made.env["PYTHONPATH"] == str(trees.tree / "src")


def test_a_folder_that_would_hide_pythons_own_modules_is_not_put_on_the_path(trees: Trees) -> None:
    """The install stays what it is, and the process tells so."""
    install(trees, INSTALLS["a finder"], trees.checkout)
    write(trees.tree / "src" / "json" / "decoder.py")
    assert not any("Python's own" in note for note in train(trees)[0].notes)
    (trees.runs / "0001-h1" / "loaded.jsonl").unlink()
    (trees.runs / "0001-h1").rmdir()
    write(trees.tree / "src" / "queue.py")
    made, said, told = train(trees)
    assert "its queue.py would hide Python's own" in made.notes[0]
    assert (said, "PYTHONPATH" in made.env) == (str(trees.checkout), False)
    assert told["elsewhere"] == {str(trees.checkout): [f"src/{n}" for n in NAMES]}


def test_a_single_tree_needs_nothing(tmp_path: Path) -> None:
    trees = Trees(tmp_path, tmp_path, tmp_path / "runs")
    argv = ["no-such-command", f"{tmp_path}"]
    assert placed(argv, {"A": "b"}, ["A"], tmp_path, trees) == Applied(tuple(argv), {"A": "b"})


def measured(
    trees: Trees, label: str, program: str, change: RunChange | None = None, patch: bytes | None = None
) -> MeasuredRun:
    """One run of a program in the tested tree."""
    write(trees.tree / "scripts" / "train.py", program)
    env = environment({"PYTHONPATH": f"{trees.tree}/src", "PYTHONDONTWRITEBYTECODE": "1"})
    bench = lone_bench(trees.checkout, "cpu:1", env, trees.checkout, 0.2, lambda live: None)
    argv = (sys.executable, "scripts/train.py")
    code, limits = RunCode(patch=patch, trees=trees), RunLimits(timeout=30.0)
    job = PreparedRun(label, label, argv, trees.tree, env, (), False, limits, code, change or RunChange())
    return measure(bench, job)


PATCHED = b"--- a/src/pkg/util.py\n+++ b/src/pkg/util.py\n@@ -1 +1 @@\n-HERE = 1\n+HERE = 2\n"
CHANGE = "--patch hypotheses/patches/h1.patch"


def gate_of(before: MeasuredRun, after: MeasuredRun) -> Gate:
    setting = with_conduct(TrialSetting(), intervention.parse(CHANGE), (), [before], [after])
    case = TrialCase(criteria(), setting, (before.evidence,), (after.evidence,))
    return effect_gate(case)


@pytest.mark.parametrize(
    ("program", "probe", "patch", "result", "said"),
    [
        ("import pkg.util", True, PATCHED, Result.PASS, "src/pkg/util.py loaded from {B}"),
        ("import pkg", True, PATCHED, Result.SKIPPED, "no process imported src/pkg/util.py"),
        (
            "import sys; sys.path.insert(0, '{A}/src'); import pkg.util",
            True,
            PATCHED,
            Result.FAIL,
            "src/pkg/util.py was loaded from {A}/src/pkg/util.py, not from {B}/src/pkg/util.py",
        ),
        ("import pkg.util", False, PATCHED, Result.SKIPPED, "are unknown: probe: false in gpudebug.yaml"),
        (
            "import pkg.util, os; os._exit(0)",
            True,
            PATCHED,
            Result.SKIPPED,
            "unknown: no process reported it",
        ),
    ],
)
def test_what_a_run_told_decides_whether_its_patch_was_in_effect(
    trees: Trees, program: str, probe: bool, patch: bytes, result: Result, said: str
) -> None:
    program, said = (text.format(A=trees.checkout, B=trees.tree) for text in (program, said))
    before = measured(replace(trees, tree=trees.checkout, packages={}), "baseline-workload", "import os")
    after = measured(replace(trees, probe=probe), "h1", program, RunChange(1, CHANGE), patch)
    assert after.record.exit_status == 0
    gate = gate_of(before, after)
    assert (gate.result, said in f"{gate.value} {gate.note}") == (result, True), gate
    # What `verify` derives again from the folder is the same.
    assert evidence_again(after.folder, after.record) == after.evidence
    assert (after.folder.path / "loaded.jsonl").exists() is (after.evidence.loaded is not None)
