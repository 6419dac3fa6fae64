"""What a trial did beside what its hypothesis says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.rank_lines import rank
from tests.support.trials import run

from gpudebug.core.change import intervention
from gpudebug.core.records import LoadedFiles, RunRecord
from gpudebug.core.verdict.gates.setting import TrialSetting
from gpudebug.core.verdict.ranks import CORES, COUNT, DEVICE, THREADS
from gpudebug.core.words import Result
from gpudebug.edges import store
from gpudebug.engine.run.job import MeasuredRun
from gpudebug.engine.trial.conduct import with_conduct

ARGV = ("python", "train.py", "--batch_size=8", "--lr=0.1")


def measured(
    name: str,
    argv: tuple[str, ...] = ARGV,
    printed: dict[str, str] | None = None,
    loaded: LoadedFiles | None = None,
    runs: Path = Path("/repo/runs"),
    **facts: Any,
) -> MeasuredRun:
    record = RunRecord(
        **{
            "name": name,
            "campaign": "c",
            "role": name.partition("-")[2],
            "command": "python train.py",
            "argv": argv,
            "cwd": "/repo",
            "start": "now",
            **facts,
        }
    )
    folder = store.RunFolder(runs / name, str)
    return MeasuredRun(folder, record, run(printed=printed or {}, loaded=loaded))


def conduct(change: str, before: MeasuredRun, after: MeasuredRun, *locked: str) -> TrialSetting:
    return with_conduct(TrialSetting(), intervention.parse(change), locked, [before], [after])


BEFORE = measured("0001-baseline-workload", printed={"batch_size": "8", "lr": "0.1"})
HELPED = (*ARGV[:3], "--lr=0.2")


def test_a_plain_trial_did_what_it_says() -> None:
    found = conduct("--set --lr=0.2", BEFORE, measured("0002-h1", HELPED, {"batch_size": "8", "lr": "0.2"}))
    assert (found.locked, found.differences, found.elsewhere, found.other_steps) == ((), (), (), None)
    assert found.effect is not None
    assert (found.effect.result, found.effect.value) == (Result.PASS, "lr: 0.2")


def test_others_on_the_same_cores_are_marked_with_the_runs_that_they_were_beside() -> None:
    before = measured("0001-baseline-workload", shared=())
    after = measured("0002-h1", HELPED, shared=("campaign b", "campaign c"))
    found = conduct("--set --lr=0.2", before, after)
    assert found.shared == ("campaign b beside 0002-h1", "campaign c beside 0002-h1")
    assert found.differences == ()
    # Of a run before it was recorded nothing is known.
    assert conduct("--set --lr=0.2", BEFORE, measured("0002-h1", HELPED)).shared == ()


def test_an_unchanged_workload_has_no_effect_to_show() -> None:
    found = with_conduct(TrialSetting(), None, ("--lr",), [BEFORE], [BEFORE])
    assert (found.effect, found.locked) == (None, ())


def test_locked_knobs_are_named_however_they_move() -> None:
    locked = ("--batch_size", "--seed")
    touched = conduct("--set --batch_size=4", BEFORE, measured("0002-h1", (*ARGV, "--batch_size=4")), *locked)
    assert touched.locked == ("--batch_size",)
    short = conduct("--set --se=4", BEFORE, measured("0002-h1", (*ARGV, "--se=4")), *locked)
    assert short.locked == ("--seed",)
    moved = conduct("--set --lr=0.2", BEFORE, measured("0002-h1", HELPED, {"batch_size": "4"}), *locked)
    assert moved.locked == ("--batch_size (shown as 8, then 4)",)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"identity": {"command": "b"}}, "the baseline run 0001-baseline-workload was of another command"),
        (
            {"identity": {"command": "a", "tree": "x"}},
            "the baseline run 0001-baseline-workload was of another code",
        ),
        ({"host": "there", "identity": {"command": "a"}}, "host here and there"),
        (
            {"knobs": {"OMP_NUM_THREADS": "2"}, "identity": {"command": "a"}},
            "variable OMP_NUM_THREADS unset and 2",
        ),
    ],
)
def test_a_baseline_of_something_else_is_named(facts: dict[str, Any], said: str) -> None:
    before = measured("0001-baseline-workload", identity={"command": "a"}, host="here", knobs={})
    found = conduct("--set --lr=0.2", before, measured("0002-h1", HELPED, **facts))
    assert (found.differences, found.other_work) == ((said,), False)


def test_a_run_that_resumes_did_other_work() -> None:
    resumed = measured("0002-h1", HELPED)
    resumed = replace(resumed, evidence=run(resumed="Loading snapshot"))
    found = conduct("--set --lr=0.2", BEFORE, resumed)
    assert found.other_work
    assert found.differences[0].startswith("run 0002-h1: it goes on where an earlier run ended")


def of_evidence(name: str, argv: tuple[str, ...] = HELPED, **figures: Any) -> MeasuredRun:
    return replace(measured(name, argv), evidence=run(**{"run": name, **figures}))


def test_a_trials_run_is_held_against_its_first_one() -> None:
    counts = {"last_count": 100, "occasions": {"log": 20}}
    first = of_evidence("0002-h1", first_count=50, **counts)
    later = of_evidence("0003-h1", first_count=90, **counts)
    change = intervention.parse("--set --lr=0.2")
    for after, said in (([first, first], ()), ([first, later], ("run 0003-h1: it begins at step 90",))):
        found = with_conduct(TrialSetting(), change, (), [BEFORE], after)
        assert found.other_work is bool(said)
        assert len(found.differences) == len(said)
        assert all(map(str.startswith, found.differences, said))


@pytest.mark.parametrize(
    ("change", "other"),
    [("--set --lr=0.2", True), ("--set --cache=ram", False), ("--patch hypotheses/patches/a.patch", False)],
)
def test_a_cache_that_the_baseline_did_not_find_is_other_work(change: str, other: bool) -> None:
    line = "Using cached features from data/cache.npy"
    found = conduct(change, BEFORE, of_evidence("0002-h1", cached=line))
    assert found.other_work is other
    assert not other or "it found a cache that the baseline's runs did not" in found.differences[0]
    had = replace(BEFORE, evidence=run(cached=line))
    assert not conduct(change, had, of_evidence("0002-h1", cached=line)).other_work


def test_a_variable_that_the_change_sets_is_no_difference() -> None:
    before = measured("0001-baseline-workload", knobs={"OMP_NUM_THREADS": "1"})
    change = "--env OMP_NUM_THREADS=4"
    after = measured("0002-h1", knobs={"OMP_NUM_THREADS": "4"}, change=change)
    assert conduct(change, before, after).differences == ()


def test_packages_from_elsewhere_are_named() -> None:
    after = measured("0002-h1", HELPED, imports={"pkg": "/old/pkg"})
    assert conduct("--set --lr=0.2", BEFORE, after).elsewhere == ("pkg is imported from /old/pkg",)


def test_what_a_process_told_counts_before_what_was_found_before_the_launch() -> None:
    imports = {"pkg": "/old/pkg"}
    told = LoadedFiles(tree="/b", files=("pkg/util.py",))
    after = measured("0002-h1", HELPED, loaded=told, imports=imports)
    assert conduct("--set --lr=0.2", BEFORE, after).elsewhere == ()
    after = measured("0002-h1", HELPED, loaded=LoadedFiles(tree="/b", files=("train.py",)), imports=imports)
    assert conduct("--set --lr=0.2", BEFORE, after).elsewhere == ("pkg is imported from /old/pkg",)


def test_files_of_another_checkout_are_named_whichever_side_imported_them() -> None:
    stray = measured("0001-baseline-workload", loaded=LoadedFiles(tree="/b", elsewhere={"/a": ("x.py",)}))
    clean = measured("0002-h1", HELPED, loaded=LoadedFiles(tree="/b", files=("x.py",)))
    said = ("x.py was loaded from /a/x.py, not from /b/x.py",)
    assert conduct("--set --lr=0.2", stray, clean).elsewhere == said
    assert conduct("--set --lr=0.2", clean, stray).elsewhere == said
    assert conduct("--set --lr=0.2", clean, clean).elsewhere == ()


PATCHED = "--- a/pkg/util.py\n+++ b/pkg/util.py\n@@ -1 +1 @@\n-x\n+y\n"


def test_the_patch_in_the_run_folder_says_what_was_touched(tmp_path: Path) -> None:
    (tmp_path / "0002-h1").mkdir()
    told = LoadedFiles(tree="/b", files=("pkg/util.py", "train.py"))
    after = measured("0002-h1", loaded=told, runs=tmp_path)
    change = "--patch hypotheses/patches/a.patch"
    without = conduct(change, BEFORE, after).effect
    assert without is not None
    assert (without.result, without.note) == (
        Result.SKIPPED,
        "no process imported a file that the change touches",
    )
    (tmp_path / "0002-h1" / "change.patch").write_text(PATCHED)
    found = conduct(change, BEFORE, after).effect
    assert found is not None
    assert (found.result, found.value) == (Result.PASS, "pkg/util.py loaded from /b")


@pytest.mark.parametrize(
    ("change", "printed", "why"),
    [
        ("--set --batch-size=4", {}, "the trial changes --batch-size"),
        ("--set --lr=0.2", {"batch_size": "4"}, "the programs show another batch_size (shown as 8, then 4)"),
        ("--set --seed=4", {}, "the trial changes --seed"),
        ("--set --lr=0.2", {"batch_size": "8"}, None),
    ],
)
def test_another_batch_makes_other_steps(change: str, printed: dict[str, str], why: str | None) -> None:
    found = conduct(change, BEFORE, measured("0002-h1", (*ARGV, *change.split()[1:]), printed))
    assert found.other_steps == why


@pytest.mark.parametrize(
    ("path", "key", "explained"),
    [("ppo.yml", "n_envs", True), ("ppo.py", "n_envs", False), ("ppo.yml", "lr", False)],
)
def test_a_patch_of_settings_that_size_a_step_is_no_code(path: str, key: str, explained: bool) -> None:
    patch = f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{key}: 1\n+{key}: 8\n".encode()
    after = replace(measured("0002-h1"), patch=patch)
    found = conduct("--patch hypotheses/patches/1.patch", measured("0001-baseline-workload"), after)
    assert found.explained is explained


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("--set --lr=0.2", set()),
        ("--env OMP_NUM_THREADS=4", {THREADS}),
        ("--env CUDA_VISIBLE_DEVICES=1,0", {COUNT, DEVICE}),
        ("--set server:--gpus=2", set()),
    ],
)
def test_what_a_change_may_set_of_ranks(change: str, what: set[str]) -> None:
    assert conduct(change, BEFORE, measured("0002-h1", HELPED)).of_ranks == what


def test_what_a_patch_may_set_of_ranks_is_in_its_lines(tmp_path: Path) -> None:
    line = b"    os.sched_setaffinity(0, own)"
    patch = b"--- a/train.py\n+++ b/train.py\n@@ -1,2 +1,1 @@\n import os\n-%s\n" % line
    (tmp_path / "0002-h1").mkdir()
    (tmp_path / "0002-h1" / "change.patch").write_bytes(patch)
    after = measured("0002-h1", runs=tmp_path)
    assert conduct("--patch hypotheses/patches/cores.patch", BEFORE, after).of_ranks == {CORES}


def test_a_flag_that_did_not_reach_a_rank_has_no_effect() -> None:
    def of(argv: tuple[str, ...], *workers: str) -> MeasuredRun:
        ranks = tuple(rank(n, loader={"workers": (w,)}) for n, w in enumerate(workers))
        m = measured("0002-h1", argv)
        return replace(m, evidence=m.evidence.model_copy(update={"ranks": ranks}))

    change = "--set --num_workers=4"
    effect = conduct(change, of(ARGV, "0", "0"), of((*ARGV, "--num_workers=4"), "4", "0")).effect
    assert effect is not None and effect.result is Result.FAIL
    assert effect.value is not None and "rank 1 has workers: 0" in effect.value


def test_of_a_change_with_several_hypotheses_the_cause_of_the_newest_run_counts() -> None:
    cause = "dl-redundant-frames"
    named, plain = (measured(f"000{n}-h{n}", HELPED, redundant=c) for n, c in ((2, cause), (3, None)))
    change = intervention.parse("--set --lr=0.2")
    assert with_conduct(TrialSetting(), change, (), [BEFORE], [plain, named]).redundant == cause
    assert with_conduct(TrialSetting(), change, (), [BEFORE], [named, plain]).redundant is None
