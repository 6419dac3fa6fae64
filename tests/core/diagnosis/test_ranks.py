"""Which rank the others wait for, and why: on imaginary ranks, and on what real jobs wrote."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.support import zoo
from tests.support.rank_lines import rank, recorded

from gpudebug.core.answers.sample import RanksFinding
from gpudebug.core.diagnosis.ranks import LATE_S, UNSEEN, finding, gap_of
from gpudebug.core.records import RankEvidence, RankLine

REAL = [name for name in zoo.names() if zoo.truth(name).shows == "ranks"]


def found(*ranks: RankEvidence) -> RanksFinding:
    told = finding([{"ranks": [one.model_dump(mode="json") for one in ranks]}])
    assert told is not None
    return told


def busy(number: int = 0, **more: Any) -> RankEvidence:
    """A rank that hardly waits: all else that it does is more than the others do."""
    return rank(number, **{"wait_share": 0.05, **more})


@pytest.mark.parametrize("name", REAL)
def test_the_planted_straggler_of_a_real_job_is_named_and_none_of_a_healthy_one(name: str) -> None:
    truth, told = zoo.truth(name), found(*recorded(name))
    assert told.reported == told.world_size >= 2
    assert told.abstains is None
    if truth.straggler == "late-start":
        assert told.late is not None
        assert (told.late.rank, told.straggler) == (truth.rank, None)
        return
    assert told.late is None
    named = (told.straggler.rank, told.straggler.cause) if told.straggler else (None, None)
    assert named == (truth.rank, truth.straggler)


CAUSES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "checkpoint": ({"save_share": 0.35, "forward_share": 0.2}, {}),
    "evaluation": ({"evaluation_share": 0.35}, {}),
    "logging": ({"log_share": 0.3}, {}),
    "loader": ({"data_share": 0.4}, {}),
    "uneven-batches": ({"forward_share": 0.5, "inputs_per_step": 1500.0}, {}),
    "fewer-cores": ({"data_share": 0.4, "cores": 1.0}, {}),
    "slower-device": ({"forward_share": 0.45, "backward_share": 0.3}, {}),
    "own-work": ({"other_share": 0.3}, {}),
    "unknown": ({"other_share": 0.1, "log_share": 0.1}, {}),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_what_the_last_rank_does_more_of_is_why(cause: str) -> None:
    own, others = CAUSES[cause]
    told = found(busy(**own), rank(1, **others)).straggler
    assert told is not None
    assert (told.rank, told.cause, told.certain) == (0, cause, True)
    assert told.gap == pytest.approx(0.25)
    assert bool(told.for_) == (cause != "unknown")


def test_cores_that_others_take_are_fewer_cores() -> None:
    told = found(busy(forward_share=0.55, starved_share=0.3), rank(1)).straggler
    assert told is not None
    assert told.cause == "fewer-cores"
    assert told.for_[1] == "is ready and has no core 30% of the time, the others 0%"


def test_computing_on_a_gpu_is_no_sign_of_a_slower_device() -> None:
    """The host only queues it there."""
    slower = {"forward_share": 0.45, "backward_share": 0.3, "device": "cuda:0"}
    told = found(busy(**slower), rank(1, device="cuda:1")).straggler
    assert told is not None
    assert told.cause == "own-work"


def on_gpu(number: int, **more: Any) -> RankEvidence:
    return rank(number, **{"device": f"cuda:{number}", "world_size": 3, **more})


READS = {"wait_share": 0.02, "read_share": 0.8, "copy_share": 0.0, "other_share": 0.8}
QUEUES = {"wait_share": 0.02, "read_share": 0.0, "copy_share": 0.0, "forward_share": 0.6}


@pytest.mark.parametrize("blocks", [{"read_share": 0.8}, {"read_share": 0.3, "copy_share": 0.5}])
@pytest.mark.parametrize("world", [2, 3])
def test_a_healthy_job_on_gpus_that_reads_its_loss_on_one_rank_abstains(
    blocks: dict[str, float], world: int
) -> None:
    ranks = [on_gpu(0, **{**READS, **blocks}), *(on_gpu(n, **QUEUES) for n in range(1, world))]
    told = found(*(one.model_copy(update={"world_size": world}) for one in ranks))
    assert told.straggler is None
    assert told.abstains is not None
    assert told.abstains.startswith("rank 0 blocks 80% of the time in reads and copies and rank ")
    assert gap_of(told) is None


def test_on_a_gpu_blocking_is_no_wait_for_others_and_what_hosts_do_not_show_is_unknown() -> None:
    told = found(*(on_gpu(n, **READS) for n in range(3)))
    assert [row.wait_share for row in told.rows] == [0.02] * 3
    assert (told.straggler, told.abstains, gap_of(told)) == (None, UNSEEN, None)
    # On a CPU there is no device that hides anything.
    assert found(*(on_gpu(n, **READS, device="cpu") for n in range(3))).abstains is None


def test_on_gpus_a_straggler_is_only_possible() -> None:
    """The others' hosts wait in a barrier for what the first one writes."""
    saves = on_gpu(0, wait_share=0.02, save_share=0.5, copy_share=0.05)
    told = found(saves, *(on_gpu(n, wait_share=0.5) for n in (1, 2)))
    assert told.straggler is not None
    assert (told.straggler.rank, told.straggler.cause, told.straggler.certain) == (0, "checkpoint", False)
    # Of one whose device nobody told it is as unknown.
    unknown = found(busy(save_share=0.3, device=None), rank(1, device=None)).straggler
    assert unknown is not None
    assert not unknown.certain


def test_a_gap_below_a_tenth_or_within_chance_is_none() -> None:
    assert found(rank(0, wait_share=0.21), rank(1)).straggler is None
    assert gap_of(found(rank(0, wait_share=0.21), rank(1))) == 0.0
    # A difference of 0.15 of 100 looks each is 2.4 standard errors.
    few = {"samples": 100}
    assert found(rank(0, wait_share=0.15, **few), rank(1, **few)).straggler is None
    assert found(rank(0, wait_share=0.15), rank(1)).straggler is not None


def test_below_eight_tenths_of_the_ranks_it_abstains() -> None:
    ranks = [busy(0, world_size=10, data_share=0.4), *(rank(n, world_size=10) for n in range(1, 7))]
    told = found(*ranks)
    assert told.straggler is None
    assert told.abstains == "the threads of 7 of 10 ranks were seen, and 8 are needed"
    assert gap_of(told) is None
    assert found(*ranks, rank(7, world_size=10)).straggler is not None
    # A rank whose thread was not seen does not count as one that waits for nothing.
    blind = found(busy(data_share=0.4), rank(1, wait_share=None, samples=None))
    assert blind.straggler is None
    assert blind.abstains


def test_one_rank_of_a_training_of_several_abstains() -> None:
    told = found(rank(0))
    assert (told.reported, told.world_size, told.straggler) == (1, 2, None)
    assert told.abstains == "the threads of 1 of 2 ranks were seen, and 2 are needed"


def test_two_that_arrive_together_are_both_named_and_none_is_the_straggler() -> None:
    others = [rank(n, world_size=4, wait_share=0.5) for n in (2, 3)]
    told = found(busy(0, world_size=4), busy(1, world_size=4, wait_share=0.1), *others)
    assert told.straggler is None
    assert told.abstains == "ranks 0 and 1 both arrive late: the others wait 45% longer"


def test_ranks_that_do_not_step_together_have_no_straggler() -> None:
    told = found(busy(steps_per_s=10.0), rank(1))
    assert told.straggler is None
    assert told.abstains == "the ranks do not step together: 10 to 20 steps/s in the same time"


def test_of_sharded_weights_it_is_only_possible() -> None:
    told = found(busy(data_share=0.4, sharded=True), rank(1, sharded=True)).straggler
    assert told is not None
    assert not told.certain


def test_the_line_is_the_one_that_the_others_are_not_in() -> None:
    shared = {"frame": "job/train.py:forward", "line": 3, "state": "running", "code": "net(x)"}
    own = RankLine(frame="job/train.py:save", line=9, state="waiting", code="torch.save(x)", share=0.3)
    lines = (RankLine(**shared, share=0.4), own)
    told = found(busy(save_share=0.3, lines=lines), rank(1, lines=(RankLine(**shared, share=0.38),)))
    assert told.straggler is not None
    assert told.straggler.line == "train.py:9 save (waiting): `torch.save(x)`"


def test_several_runs_count_with_their_means() -> None:
    runs = [(busy(data_share=0.4), rank(1)), (rank(0, wait_share=0.2, data_share=0.2), rank(1))]
    told = finding([{"ranks": [one.model_dump(mode="json") for one in run]} for run in runs])
    assert told is not None
    assert told.straggler is not None
    assert told.straggler.gap == pytest.approx(0.3 - 0.125)
    assert told.reported == 2


def test_who_began_last_is_told_if_all_others_waited_for_it() -> None:
    def late(*met: float | None) -> int | None:
        told = found(*(rank(n, world_size=len(met), met_s=m) for n, m in enumerate(met)))
        return told.late.rank if told.late else None

    assert late(20.0, 0.0) == 1
    assert late(20.0, 0.0, 18.0) == 1
    # Two began together, and it is not one rank that the others waited for.
    assert late(20.0, 0.0, 1.5) is None
    assert late(LATE_S - 0.5, 0.0) is None
    assert late(20.0, None) is None


def test_old_evidence_and_trainings_of_one_process_have_no_ranks() -> None:
    assert finding([{"probe": {"ranks": []}}, {"ranks": []}]) is None
    assert gap_of(None) is None


def test_what_no_run_writes_is_left_out() -> None:
    good = [one.model_dump(mode="json") for one in (rank(0), rank(1))]
    told = finding([{"ranks": [*good, {"pid": "x"}, 7, None]}, {"ranks": "no"}])
    assert told is not None
    assert told.reported == 2
    assert finding([{"ranks": [{"steps": []}]}]) is None


def test_a_loader_alone_does_not_show_who_is_waited_for() -> None:
    """A loss that is read before the backward lets the host load while its device computes."""
    slow = on_gpu(1, wait_share=0.0, data_share=0.5, read_share=0.1)
    others = [on_gpu(n, wait_share=0.0, data_share=0.1, read_share=0.5) for n in (0, 2)]
    told = found(slow, *others)
    assert told.straggler is None
    assert str(told.abstains).startswith("rank 2 blocks 50% of the time in reads and copies and rank 1 10%")


def test_no_straggler_is_named_in_a_thousand_healthy_jobs_on_gpus() -> None:
    made, named = random.Random(20), []
    for job in range(1000):
        world = made.randint(2, 6)
        reads = [made.uniform(0.0, 0.6)] * world if made.random() < 0.5 else [0.5] + [0.0] * (world - 1)
        waits = made.uniform(0.0, 0.3)
        ranks = [
            on_gpu(
                n, world_size=world, wait_share=max(0.0, waits + made.gauss(0, 0.02)), read_share=reads[n],
                reads_per_step=1.0 if reads[-1] else 0.0 if n else 1.0, data_share=made.uniform(0.0, 0.08),
            )
            for n in range(world)
        ]  # fmt: skip
        if (straggler := found(*ranks).straggler) is not None:
            named.append((job, straggler))
    assert named == []
