"""What ranks had otherwise on two sides: each against itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.support.rank_lines import rank
from tests.support.trials import BASE, GOOD, crashed, gate, verdict

from gpudebug.core.change import intervention
from gpudebug.core.records import Evidence, ProbeEvidence, RankEvidence
from gpudebug.core.verdict.gates.setting import TrialSetting
from gpudebug.core.verdict.ranks import (
    CORES,
    COUNT,
    DEVICE,
    THREADS,
    confirmed,
    lagging,
    ranks_apart,
    set_by_code,
    set_by_flags,
)
from gpudebug.core.verdict.took_effect import ChangeEffect, ShownConfiguration, effect_of
from gpudebug.core.words import Result, Status

WHERE = {"python": "3.11.2", "affinity": "0-3", "cores": 4.0}


def job(count: int = 4, **more: Any) -> tuple[RankEvidence, ...]:
    return tuple(rank(n, world_size=count, **{**WHERE, **more}) for n in range(count))


def but(which: int, **more: Any) -> tuple[RankEvidence, ...]:
    """A job of four of which one rank is otherwise; None in its place if it never reported."""
    return tuple(rank(n, world_size=4, **{**WHERE, **(more if n == which else {})}) for n in range(4))


def side(runs: Sequence[Evidence], ranks: tuple[RankEvidence, ...]) -> list[Evidence]:
    return [e.model_copy(update={"ranks": ranks}) for e in runs]


FOUR = side(BASE, job())
GPU = {"device": "cuda:0", "uuid": "GPU-aa", "visible": "0"}


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({}, None),
        ({"node": "node2"}, "node node1 and node2 (rank 2)"),
        ({"torch": "2.4.0"}, "PyTorch 2.13.0 and 2.4.0 (rank 2)"),
        ({"python": "3.12.1"}, "Python 3.11.2 and 3.12.1 (rank 2)"),
        ({"cores": 1.0, "affinity": "0"}, "cores 4 and 1 (rank 2); affinity 0-3 and 0 (rank 2)"),
        ({"affinity": "4-7"}, "affinity 0-3 and 4-7 (rank 2)"),
        ({"omp": "8"}, "OMP_NUM_THREADS unset and 8 (rank 2)"),
        (GPU, "device cpu and GPU-aa (rank 2)"),
        # What a rank did is no surrounding of it.
        ({"loader_workers": 8, "threads": 9, "steps": 3, "cpu_cores": 0.1, "pid": 9, "start_s": 30.0}, None),
    ],
)
def test_a_rank_in_other_surroundings_is_named_and_invalid(other: dict[str, Any], said: str | None) -> None:
    found = verdict(FOUR, side(GOOD, but(2, **other)))
    shown = gate(found, "environment_parity")
    assert (shown.value, shown.result) == (said or "as in the baseline", Result.FAIL if said else Result.PASS)
    assert found.status is (Status.INVALID if said else Status.VALIDATED)
    assert found.why == f"environment differs: {said}" if said else True


def test_a_change_of_all_ranks_is_one_line() -> None:
    found = ranks_apart(FOUR, side(GOOD, job(node="b")))
    assert found.differences == ("node node1 and b (ranks 0, 1, 2, 3)",)


def test_ranks_that_changed_their_devices_are_each_named() -> None:
    def on(*uuids: str) -> tuple[RankEvidence, ...]:
        return tuple(rank(n, **{**GPU, "uuid": f"GPU-{uuid}"}) for n, uuid in enumerate(uuids))

    found = ranks_apart(side(BASE, on("a", "b")), side(GOOD, on("b", "a")))
    assert found.differences == ("device GPU-a and GPU-b (rank 0)", "device GPU-b and GPU-a (rank 1)")
    # PyTorch reports no prefix, and writes in small letters.
    bare = tuple(r.model_copy(update={"uuid": str(r.uuid).removeprefix("GPU-")}) for r in on("A", "B"))
    assert ranks_apart(side(BASE, on("a", "b")), side(GOOD, bare)) == ((), None)


def test_a_device_is_its_number_where_no_run_knows_its_uuid() -> None:
    by_number = {"device": "cuda:0", "uuid": None}
    first, other = job(2, visible="3", **by_number), job(2, visible="5", **by_number)
    found = ranks_apart(side(BASE, first), side(GOOD, other))
    assert found.differences == ("device GPU 3 and GPU 5 (ranks 0, 1)",)
    found = ranks_apart(side(BASE, job(2, **GPU)), side(GOOD, other))
    assert found == (
        (),
        "the record lacks the device of ranks 0, 1 on one side; run `gpudebug baseline` to record the "
        "baseline again",
    )


@pytest.mark.parametrize("part", ["trial", "baseline"])
def test_a_rank_that_is_missing_in_one_arm_is_named(part: str) -> None:
    three = tuple(one for one in job() if one.rank != 3)
    sides = (FOUR, side(GOOD, three)) if part == "trial" else (side(BASE, three), side(GOOD, job()))
    found = verdict(*sides)
    assert found.status is Status.INVALID
    assert f"rank 3 missing in {part} run 0001-x" in found.why


def test_another_number_of_ranks_is_invalid_unless_the_change_is_about_it() -> None:
    two = side(GOOD, job(2))
    assert verdict(FOUR, two).why == "environment differs: 4 and 2 ranks"
    assert verdict(FOUR, two, TrialSetting(of_ranks=frozenset({COUNT}))).status is Status.VALIDATED
    alone = [e.model_copy(update={"probe": ProbeEvidence(pid=1, steps=9)}) for e in GOOD]
    assert verdict(FOUR, alone).why == "environment differs: 4 and 1 ranks"


def test_ranks_that_only_one_side_reported_leave_it_unknown() -> None:
    found = verdict(FOUR, [e.model_copy(update={"probe_reason": "probe: false"}) for e in GOOD])
    assert found.status is Status.INCONCLUSIVE
    assert "the ranks of trial run 0001-x are unknown: probe: false" in found.why
    found = verdict(BASE, side(GOOD, job()))
    assert found.status is Status.INCONCLUSIVE
    assert found.why.endswith("run `gpudebug baseline` to record the baseline again")


@pytest.mark.parametrize("name", ["cores", "affinity", "python", "torch", "node", "device"])
def test_a_record_that_lacks_something_of_a_rank_is_unknown_by_rank(name: str) -> None:
    found = verdict(FOUR, side(GOOD, but(1, **{name: None})))
    assert (found.status, gate(found, "environment_parity").value) == (Status.INCONCLUSIVE, "unknown")
    assert "of rank 1 on one side" in found.why
    # What both sides lack does not differ.
    assert ranks_apart(side(BASE, job(**{name: None})), side(GOOD, job(**{name: None}))) == ((), None)


def test_a_rank_that_died_in_a_trial_that_crashed_is_the_trials_failure() -> None:
    dead = crashed("oom_gpu", "CUDA out of memory")
    found = verdict(FOUR, side([dead], tuple(one for one in job() if one.rank != 3)))
    assert found.status is Status.REJECTED
    assert verdict(FOUR, [dead]).status is Status.REJECTED


def test_a_crash_on_another_node_is_no_word_on_the_change() -> None:
    found = verdict(FOUR, side([crashed("cuda", "RuntimeError: CUDA error")], but(2, node="node2")))
    assert found.status is Status.INVALID
    assert "node node1 and node2 (rank 2)" in found.why


def test_cores_that_the_launcher_chooses_anew_for_each_run_are_no_difference() -> None:
    before = [*side(BASE[:2], job()), *side(BASE[2:], job(affinity="4-7"))]
    assert ranks_apart(before, side(GOOD, job(affinity="8-11"))) == ((), None)
    assert ranks_apart(before, side(GOOD, job(affinity="8", cores=1.0))).differences == (
        "cores 4 and 1 (ranks 0, 1, 2, 3)",
    )


def test_devices_that_the_launcher_hands_out_anew_for_each_run_are_no_difference() -> None:
    def on(order: str) -> tuple[RankEvidence, ...]:
        return tuple(one.model_copy(update={"uuid": f"GPU-{d}"}) for one, d in zip(job(), order, strict=True))

    before = [*side(BASE[:2], on("abcd")), *side(BASE[2:], on("badc"))]
    assert ranks_apart(before, side(GOOD, on("cdab"))) == ((), None)
    same = side(BASE, on("abcd"))
    assert "device GPU-a and GPU-c (rank 0)" in ranks_apart(same, side(GOOD, on("cdab"))).differences


def test_a_difference_within_the_baseline_is_named() -> None:
    before = [*side(BASE[:3], job()), *side(BASE[3:], but(0, node="node9"))]
    found = ranks_apart(before, side(GOOD, job()))
    assert found.differences == ("node node1 or node9 and node1 (rank 0)",)


@pytest.mark.parametrize(
    ("meant", "other"),
    [
        (DEVICE, GPU),
        (CORES, {"cores": 1.0, "affinity": "0"}),
        (CORES, {"omp": "1"}),
        (THREADS, {"omp": "1"}),
    ],
)
def test_what_the_change_is_about_is_no_difference(meant: str, other: dict[str, Any]) -> None:
    after = side(GOOD, but(1, **other))
    assert ranks_apart(FOUR, after).differences
    assert ranks_apart(FOUR, after, {meant}) == ((), None)
    # Software and nodes are none of that.
    assert ranks_apart(FOUR, side(GOOD, but(1, torch="1")), {DEVICE, CORES, THREADS, COUNT}).differences


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--set", "--num_workers=4"], set()),
        (["--set", "--dataset_num_proc=4"], set()),
        (["--set", "--n_layers=4"], set()),
        (["--set", "--score=2", "--env", "NCCL_ALGO=Ring"], set()),
        (["--set", "--nproc_per_node=4"], {COUNT}),
        (["--set", "-n=4"], {COUNT}),
        (["--set", "-np=4"], {COUNT}),
        (["--set", "--trainer.devices=4"], {COUNT, DEVICE}),
        (["--env", "CUDA_VISIBLE_DEVICES=1,0"], {COUNT, DEVICE}),
        (["--set", "--cpus-per-task=8"], {CORES}),
        (["--env", "OMP_NUM_THREADS=4"], {THREADS}),
        (["--env", "OMP_PROC_BIND=close"], {CORES, THREADS}),
    ],
)
def test_what_flags_set_of_ranks(words: list[str], what: set[str]) -> None:
    assert set_by_flags(words) == what


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("batch = batch.to(device)", set()),
        ("torch.cuda.set_device(local_rank)", {DEVICE}),
        ("os.sched_setaffinity(0, own)", {CORES}),
        ("mp.spawn(train, nprocs=4)", {COUNT}),
        ("torch.set_num_threads(4)", {THREADS}),
    ],
)
def test_what_code_sets_of_ranks(line: str, what: set[str]) -> None:
    assert set_by_code([line]) == what


def test_a_job_of_64_ranks_has_a_short_line() -> None:
    many = tuple(rank(n, world_size=64, **WHERE) for n in range(64))
    moved = tuple(one.model_copy(update={"affinity": str(100 + (one.rank or 0) // 2)}) for one in many)
    (*shown, last) = ranks_apart(side(BASE, many), side(GOOD, moved)).differences
    assert (len(shown), last) == (5, "affinity of 54 more ranks")


OLD = ("torchrun", "--nproc_per_node=4", "train.py", "--num_workers=0")


def ranks(*workers: str | None, **more: Any) -> tuple[RankEvidence, ...]:
    return tuple(
        rank(n, loader={} if w is None else {"workers": (w,)}, **more) for n, w in enumerate(workers)
    )


def found(
    change: str, before: tuple[RankEvidence, ...], after: tuple[RankEvidence, ...], **facts: Any
) -> ChangeEffect:
    parsed = intervention.parse(change)
    argv = parsed.apply(OLD, {}, None).argv
    return effect_of(
        parsed,
        [ShownConfiguration(OLD, {}, ranks=before)],
        [ShownConfiguration(argv, {"num_workers": "4"}, ranks=after, facts=facts)],
    )


FLAG = "--set --num_workers=4"


@pytest.mark.parametrize(
    ("workers", "behind"),
    [
        (("4", "4", "4"), None),
        (("4", "0", "4"), "rank 1 has workers: 0"),
        (("4", "0", "0"), "ranks 1, 2 have workers: 0"),
        # Not as in the baseline: the program gives this rank its own.
        (("4", "2", "4"), None),
        # None has it: that is the run's question, not a rank's.
        (("0", "0", "0"), None),
        (("4", None, "4"), None),
    ],
)
def test_a_rank_that_the_change_did_not_reach_is_named(
    workers: tuple[str | None, ...], behind: str | None
) -> None:
    effect = found(FLAG, ranks("0", "0", "0"), ranks(*workers))
    if behind is None:
        assert effect.result is not Result.FAIL
    else:
        assert (effect.result, effect.value) == (
            Result.FAIL,
            f"--num_workers=4 was asked for, {behind}, as in the baseline",
        )


def test_a_rank_that_the_baseline_lacks_shows_nothing() -> None:
    (part,) = intervention.parse(FLAG).changes
    assert lagging(part, [ranks("0")], ranks("4", "0")) is None
    assert lagging(part, [], ()) is None


def test_a_batch_may_be_a_part_of_what_the_flag_says() -> None:
    (part,) = intervention.parse("--set --batch_size=64").changes
    before = tuple(rank(n, loader={"batch_size": ("32",)}) for n in range(2))
    after = tuple(rank(n, loader={"batch_size": (b,)}) for n, b in enumerate(("64", "32")))
    assert lagging(part, [before], after) is None


def test_a_variable_that_a_launcher_did_not_hand_on_is_named_by_rank() -> None:
    """As `mpirun` without `-x` does on other nodes."""
    change = "--env OMP_NUM_THREADS=4"
    before = (rank(0, omp="1"), rank(1))
    effect = found(change, before, (rank(0, omp="4"), rank(1)))
    assert (effect.result, effect.value) == (
        Result.FAIL,
        "OMP_NUM_THREADS=4 was asked for, rank 1 has OMP_NUM_THREADS: unset, as in the baseline",
    )
    effect = found(change, before, (rank(0, omp="4"), rank(1, omp="4")))
    assert (effect.result, effect.value) == (Result.PASS, "OMP_NUM_THREADS: 4 (each of 2 ranks)")


def test_one_process_or_another_variable_confirms_nothing() -> None:
    (omp,) = intervention.parse("--env OMP_NUM_THREADS=4").changes
    (other,) = intervention.parse("--env NCCL_ALGO=Ring").changes
    assert confirmed(omp, ()) is None
    assert confirmed(omp, (rank(0, omp="4"), rank(1))) is None
    assert confirmed(other, (rank(0, omp="Ring"), rank(1, omp="Ring"))) is None
