"""The records of several processes become one of each rank, over the same window."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from tests.support.probe_lines import T0, beat, line, training
from tests.support.rank_lines import rank, recorded, recorded_text
from tests.support.stack_lines import told

from gpudebug.core.diagnosis.ranks import judged
from gpudebug.core.inside import probe, stacks
from gpudebug.core.inside.ranks import MOST_LINED, bare_uuid, compact, named, place_of, rank_evidence
from gpudebug.core.inside.stacks.shares import LONGEST_SOURCE
from gpudebug.core.records import DeviceInfo, RankEvidence, RankLine, Window

WINDOW = Window(start_s=10, end_s=30, samples=100, rule="steps")
DDP = "parallel/distributed.py:DistributedDataParallel.forward"
LOADER = {"workers": 3, "batch_size": 8, "training": True}
RUN = "parallel/distributed.py:DistributedDataParallel._run_ddp_forward"
SYNC = "parallel/distributed.py:DistributedDataParallel._sync_module_buffers"
FSDP = "fsdp/fully_sharded_data_parallel.py:FullyShardedDataParallel.forward"
C10D = (
    "distributed/c10d_logger.py:exception_logger.<locals>.wrapper",
    "distributed/distributed_c10d.py:barrier",
)


def ranks(text: str, window: Window | None = WINDOW) -> tuple[RankEvidence, ...]:
    return rank_evidence(probe.read_probe(text), stacks.read_stacks(text), window)


def process(number: int, **more: Any) -> str:
    return training(10 + number, rank=number, world_size=2, local_rank=number, **more)


def on(device: str, number: int = 0) -> str:
    return process(number) + line("facts", 10 + number, 3, facts={"device": device})


def seen(
    number: int,
    *entries: tuple[str, str, float, float],
    code: str = "x = f()",
    since: float = 10.0,
    until: float = 30.0,
) -> str:
    """A line of stacks: phase, frames behind the program's (joined by blanks), seconds, CPU seconds."""
    names = ["job/train.py:train", *dict.fromkeys(f for _, frames, *_ in entries for f in frames.split())]
    rows = [
        [phase, [0, *map(names.index, frames.split())], 7, seconds, cpu, round(20 * seconds)]
        for phase, frames, seconds, cpu in entries
    ]
    total = sum(seconds for *_, seconds, _ in entries)
    return told(
        10 + number, since, until, s=total, cpu=0.0, n=round(20 * total), frames=names, stacks=rows,
        code={"0:7": code}, starved=0.5,
    )  # fmt: skip


def test_each_rank_has_its_figures_of_the_window() -> None:
    where = {"affinity": "0-3", "python": "3.11.2"}
    facts = {"device": "cpu", "threads": 2, "cpus": 8, "loaders": [LOADER]}
    first = process(
        0, per_step={"inputs_n": 64, "reads_s": 0.02, "h2d_s": 0.01, "cpu_s": 0.05}, cores=4.0, **where
    )
    first += line("facts", 10, 3, facts=facts)
    one, two = ranks(first + process(1, node="b", visible="1", omp="2", slurm_cpus="4", met=3.0, boot="x"))
    assert (one.rank, one.steps, one.device, one.threads, one.loader_workers) == (0, 300, "cpu", 2, 3)
    assert (one.affinity, one.python) == ("0-3", "3.11.2")
    assert one.loader == {"workers": ("3",), "batch_size": ("8",)}
    assert one.steps_per_s == pytest.approx(10)
    assert (one.inputs_per_step, one.read_share) == pytest.approx((64, 0.2))
    assert (one.copy_share, one.cpu_cores, one.cores) == pytest.approx((0.1, 0.5, 4.0))
    assert (two.rank, two.local_rank, two.node, two.visible) == (1, 1, "b", "1")
    assert (two.omp, two.slurm_cpus, two.met_s) == ("2", "4", 3.0)
    # Nothing is known of what was not reported: it is not 0.
    assert (two.read_share, two.copy_share, two.inputs_per_step, two.wait_share) == (None,) * 4
    assert (two.device, two.cores, two.loader_workers, two.samples) == (None,) * 4
    assert (two.affinity, two.python, two.loader) == (None, None, {})


PARTS: dict[str, tuple[tuple[str, str, float, float], str]] = {
    "wait": (("other", " ".join(C10D), 2.0, 0.0), ""),
    "wait of DDP's own": (("forward", f"{DDP} {SYNC}", 2.0, 0.0), ""),
    "forward cut short below DDP's": (("forward", f"{DDP} {RUN}", 2.0, 0.0), ""),
    "forward cut short below FSDP's": (("forward", FSDP, 2.0, 0.0), ""),
    "wait for time in a collective": (("other", C10D[1] + " (kernel):socket", 2.0, 0.0), ""),
    "wait in the backward": (("backward", "torch/_tensor.py:backward", 2.0, 0.0), ""),
    "backward": (("backward", "torch/_tensor.py:backward", 2.0, 2.0), ""),
    "forward": (("forward", f"{DDP} job/net.py:forward", 2.0, 0.0), ""),
    "data": (("data", "data/dataloader.py:__next__", 2.0, 0.0), ""),
    "optimizer": (("optimizer", "optim/sgd.py:step", 2.0, 2.0), ""),
    "evaluation": (("eval", "job/net.py:forward", 2.0, 0.0), ""),
    "save": (("other", "torch/serialization.py:save", 2.0, 0.0), ""),
    "save by its line": (("other", "io/files.py:f", 2.0, 0.0), "torch.save(state, path)"),
    "log": (("other", "logging/__init__.py:Logger.info", 2.0, 0.0), ""),
    "other": (("other", "job/plot.py:dream", 2.0, 0.0), ""),
}


@pytest.mark.parametrize("part", PARTS)
def test_what_a_stack_is_part_of(part: str) -> None:
    entry, code = PARTS[part]
    text = (
        on("cpu")
        + process(1)
        + seen(0, entry, ("backward", "torch/_tensor.py:backward", 2.0, 2.0), code=code or "x")
    )
    (one, _) = ranks(text)
    name = part.split(maxsplit=1)[0]
    share = getattr(one, f"{name}_share")
    assert share == pytest.approx(1.0 if name == "backward" else 0.5)
    shares = [value for key, value in one if key.endswith("_share") and value is not None]
    assert sum(shares) - (one.starved_share or 0.0) == pytest.approx(1.0)


def test_a_deep_network_below_ddp_waits_for_nobody() -> None:
    """Its stacks are too many for evidence.json, and end at DDP's own frames."""
    below = [
        (
            "forward",
            f"{DDP} {RUN} " + " ".join(f"modules/block{n}.py:Block{n}.part{d}" for d in range(8)),
            0.05,
            0.01,
        )
        for n in range(60)
    ]
    (one, _) = ranks(on("cpu") + process(1) + seen(0, *below))
    assert (one.wait_share, one.forward_share) == pytest.approx((0.0, 1.0))


def test_what_a_step_takes_without_the_waits() -> None:
    waits = seen(0, ("other", C10D[1], 3.0, 0.0), ("other", "job/f.py:f", 1.0, 1.0))
    (one, _) = ranks(on("cpu") + process(1) + waits)
    assert one.wait_share == pytest.approx(0.75)
    assert one.own_s == pytest.approx(0.1 * 0.25)
    assert [(found.frame, found.line, found.share) for found in one.lines] == [
        ("job/train.py:train", 7, 0.25)
    ]


@pytest.mark.parametrize("facts", [on("cuda:0"), process(0)], ids=["a GPU", "unknown"])
def test_sleeping_through_the_backward_pass_of_a_gpu_is_no_wait_for_others(facts: str) -> None:
    """Autograd computes for it in a thread of its own, whether ranks wait or not."""
    sleeps = ("backward", "torch/_tensor.py:backward", 3.0, 0.1)
    (one, _) = ranks(facts + process(1) + seen(0, sleeps, ("other", C10D[1], 1.0, 0.0)))
    assert (one.wait_share, one.backward_share) == pytest.approx((0.25, 0.75))
    assert one.own_s is None


BARE = "ffc79498-8ff3-c2dc-3b0d-fafd804516ae"


@pytest.mark.parametrize("kind", ["GPU", "MIG"])
def test_a_rank_names_its_device_as_the_samples_do(kind: str) -> None:
    """PyTorch 2.9 tells the UUID of an A100 without what NVML begins it with."""
    facts = line("facts", 10, 3, facts={"device": "cuda:0", "device_uuid": BARE})
    devices = [
        DeviceInfo(index=n, uuid=uuid, name="A100", kind="nvml")
        for n, uuid in ((2, f"{kind}-0"), (3, f"{kind}-{BARE}"))
    ]
    told = probe.read_probe(process(0) + facts + process(1))
    one, two = rank_evidence(told, None, WINDOW, devices=devices)
    assert (one.device, one.uuid, one.gpu_index) == ("cuda:0", f"{kind}-{BARE}", 3)
    assert (two.uuid, two.gpu_index) == (None, None)
    # Of a device that was not sampled nothing is added to what PyTorch tells.
    (other, _) = rank_evidence(told, None, WINDOW, devices=devices[:1])
    assert (other.uuid, other.gpu_index) == (BARE, None)


def test_a_thread_that_was_hardly_seen_has_no_shares() -> None:
    (one, _) = ranks(process(0) + process(1) + seen(0, ("other", "job/f.py:f", 0.5, 0.0)))
    assert (one.wait_share, one.lines, one.own_s) == (None, (), None)


def test_shares_are_of_the_time_in_which_all_ranks_were_watched() -> None:
    """The stacks of rank 1 end early, and rank 0 evaluates from then on, as rank 1 does unseen."""
    trains = ("forward", "job/net.py:forward", 10.0, 10.0)
    evaluates = ("eval", "job/net.py:forward", 10.0, 10.0)
    text = on("cpu") + on("cpu", 1) + seen(0, trains, until=20.0) + seen(1, trains, until=20.0)
    one, two = ranks(text + seen(0, evaluates, since=20.0))
    assert (one.forward_share, one.evaluation_share, one.watched_s) == pytest.approx((1.0, 0.0, 10.0))
    assert (two.forward_share, two.watched_s) == pytest.approx((1.0, 10.0))
    assert one.steps_per_s == pytest.approx(two.steps_per_s)


def test_ranks_that_were_never_watched_together_have_no_shares() -> None:
    entry = ("forward", "job/net.py:forward", 5.0, 5.0)
    text = on("cpu") + on("cpu", 1) + seen(0, entry, until=15.0)
    found = ranks(text + seen(1, entry, since=20.0, until=25.0))
    assert [(one.wait_share, one.samples) for one in found] == [(None, None)] * 2


def test_a_rank_that_was_hardly_seen_does_not_shorten_what_is_known_of_the_others() -> None:
    entry = ("forward", "job/net.py:forward", 10.0, 10.0)
    few = ("forward", "job/net.py:forward", 0.5, 0.5)
    one, two = ranks(on("cpu") + on("cpu", 1) + seen(0, entry) + seen(1, few, until=10.5))
    assert (one.watched_s, two.watched_s) == (pytest.approx(10.0), None)


def test_sharded_weights_are_seen() -> None:
    frame = "fsdp/_runtime_utils.py:_pre_forward"
    one, two = ranks(process(0) + process(1) + seen(0, ("forward", frame, 2.0, 0.0)))
    assert (one.sharded, two.sharded) == (True, None)
    assert one.wait_share == 1.0


def test_one_process_alone_is_no_rank_and_one_of_several_is() -> None:
    assert ranks(training(1)) == ()
    assert ranks("") == ()
    (only,) = ranks(process(1))
    assert (only.rank, only.world_size) == (1, 2)


def test_a_rank_with_another_clock_counts_by_its_own_steady_steps() -> None:
    """Its host was started a day before the launch's, so that its times are far beyond the window's."""
    other = "".join(
        line(**{**entry, "at": entry["at"] + 86400})
        for entry in _parsed(process(1, boot="b") + seen(1, ("other", C10D[1], 2.0, 0.0)))
    )
    one, two = ranks(process(0, boot="a") + other)
    assert (one.own_clock, two.own_clock) == (False, True)
    assert (two.start_s, two.last_step_s) == (None, None)
    assert two.steps_per_s == pytest.approx(10)
    assert one.steps_per_s == pytest.approx(10)


def _parsed(text: str) -> list[dict[str, Any]]:
    import json

    lines = [json.loads(one) for one in text.splitlines()]
    moved = {"since": 86400.0}
    return [
        {
            **{k: v + moved.get(k, 0.0) if k in moved else v for k, v in one.items() if k != "t"},
            "at": one["t"] - T0,
        }
        for one in lines
    ]


def test_a_rank_that_died_has_what_it_reported_until_then() -> None:
    text = recorded_text("river_levels").splitlines(keepends=True)
    whole = recorded("river_levels")
    dead = whole[3].pid
    cut = [one for at, one in enumerate(text) if f'"pid":{dead},' not in one or at < len(text) / 2]
    after = rank_evidence(
        probe.read_probe("".join(cut)),
        stacks.read_stacks("".join(cut)),
        Window(start_s=20, end_s=55, samples=9, rule="steps"),
    )
    assert [one.rank for one in after] == [0, 1, 2, 3]
    assert after[3].steps < whole[3].steps
    assert (after[3].last_step_s or 0) < (whole[3].last_step_s or 0) - 10


MORE = beat(10, 40.0, 310, kind="end")
LAST_STEPS: dict[str, tuple[str, float | None]] = {
    "killed: the next report was due in twice the time": (process(0, every=100, ends=False), 52.0),
    "killed after its first report": (process(0, begins=20.0, steps=1, ends=False), 20.3),
    "it exited without another step": (process(0), 32.0),
    "it exited with more steps than it had reported": (process(0, ends=False) + MORE, 40.0),
    "its reports end and its steps do not": (process(0) + line("off", 10, 20, why="no room"), None),
}


@pytest.mark.parametrize("how", LAST_STEPS)
def test_when_the_last_step_was_over_at_the_latest(how: str) -> None:
    text, by = LAST_STEPS[how]
    one = ranks(text + process(1))[0]
    assert one.last_step_by_s == (pytest.approx(by) if by is not None else None)


def test_shares_of_a_real_job_are_of_all_that_was_seen() -> None:
    for one in recorded("bird_calls"):
        known = [
            value
            for name, value in one
            if name.endswith("_share") and name not in ("starved_share", "read_share", "copy_share")
        ]
        assert sum(known) == pytest.approx(1.0, abs=0.001)
        assert one.samples is not None
        assert one.samples > 100


@pytest.mark.parametrize(
    ("device", "uuid", "visible", "place"),
    [
        ("cpu", None, None, None),
        (None, "GPU-a", "0", None),
        ("cuda:1", "GPU-a", "0,1", "GPU-a"),
        ("cuda:1", None, "4, 5", "GPU 5"),
        ("cuda:1", None, None, "GPU 1"),
        ("cuda", None, "7", "GPU 7"),
        ("cuda:3", None, "4,5", None),
    ],
)
def test_the_place_of_a_rank(
    device: str | None, uuid: str | None, visible: str | None, place: str | None
) -> None:
    assert place_of(rank(0, device=device, uuid=uuid, visible=visible)) == place


def test_ranks_are_named_up_to_eight() -> None:
    assert (named([3]), named([0, 1])) == ("rank 3", "ranks 0, 1")
    assert named(list(range(10))) == "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 more"


def test_a_uuid_is_bare_of_its_kind() -> None:
    assert bare_uuid("GPU-Ab") == bare_uuid("MIG-ab") == bare_uuid("ab") == "ab"


LONG = "loss = criterion(model(batch.to(device)), targets)  # " + "x" * 99
NOISE = 0.02


def line_of_rank_size(number: int, share: float) -> RankLine:
    return RankLine(frame="job/train.py:train", line=number, state="waiting", code=LONG, share=share)


def job(world: int, late: int | None, seed: int = 1) -> list[RankEvidence]:
    """Ranks that wait 0.3 of the time for others but one, which saves; all have the same lines."""
    made = random.Random(seed)
    found = []
    for number in range(world):
        saves = 0.28 if number == late else 0.0
        waits, batches = 0.3 - saves + made.uniform(-NOISE, NOISE), 0.2 + made.uniform(-NOISE, NOISE)
        lines = (
            line_of_rank_size(88, saves),
            line_of_rank_size(7, batches),
            line_of_rank_size(9, 0.123456789),
            line_of_rank_size(11, 0.1),
            line_of_rank_size(12, 0.05),
        )
        kept = tuple(one for one in lines if one.share > 0)
        shares = {"wait_share": waits, "save_share": saves, "data_share": batches, "other_share": 0.0}
        found.append(rank(number, world_size=world, uuid=f"GPU-{number:032d}", lines=kept, **shares))
    return found


@pytest.mark.parametrize("world", [2, 8, 64])
@pytest.mark.parametrize("late", [None, 1])
def test_the_straggler_is_the_same(world: int, late: int | None) -> None:
    for seed in range(5):
        whole = job(world, late, seed)
        (before, why), (after, still) = judged(whole, world), judged(compact(whole), world)
        assert (before is None, why) == (after is None, still)
        assert (before is None) == (late is None)
        if before is not None and after is not None:
            assert before.gap == pytest.approx(after.gap, rel=1e-4)
            assert (before.rank, before.cause, before.line, before.for_) == (
                *(after.rank, after.cause, after.line, after.for_),
            )
            assert str(after.line).startswith("train.py:88 train (waiting): `loss = criterion(")
            assert str(after.line).endswith("…`")


def test_the_others_have_no_lines_in_a_large_job() -> None:
    found = compact(job(64, 5))
    lined = [one for one in found if one.lines]
    assert len(lined) == MOST_LINED
    assert found[5] in lined
    # By far the most of it takes a median rank in the line that all have.
    assert [(one.line, one.others) for one in found[5].lines][:3] == [
        (88, 0.0),
        (7, pytest.approx(0.2, abs=NOISE)),
        (9, 0.12346),
    ]
    assert all(len(one.code or "") == LONGEST_SOURCE + 1 for one in found[5].lines)
    size = len(json.dumps([one.model_dump(mode="json") for one in found], indent=1))
    assert size < 64 * 1200 + MOST_LINED * 5 * 250


def test_what_is_unknown_stays_so() -> None:
    (one,) = compact([rank(0, wait_share=None, samples=None, own_s=None, lines=(line_of_rank_size(1, 0.5),))])
    assert (one.wait_share, one.own_s, one.lines) == (None, None, ())
