"""Ranks as lines for people."""

from __future__ import annotations

from dataclasses import replace

from gpudebug.core.answers.ranks import LateRank, RankRow, RanksFinding, StragglerRank
from gpudebug.terminal.rank_lines import facts, ranks

ROW = RankRow(
    rank=0,
    node="n1",
    device="cpu",
    gpu_index=None,
    wait_share=0.1,
    data_share=0.2,
    own_s=0.03,
    cores=2.0,
    loader_workers=0,
)
STRAGGLER = StragglerRank(
    rank=1,
    node="n1",
    cause="loader",
    title="its batches come later",
    gap=0.45,
    certain=True,
    for_=("waits for batches 50% of the time, the others 5%",),
    line=None,
)
FOUND = RanksFinding(
    world_size=2,
    reported=2,
    rows=(ROW, replace(ROW, rank=1, wait_share=0.5)),
    straggler=STRAGGLER,
    late=None,
    abstains=None,
    notes=("PyTorch differs: …",),
)


def test_the_straggler_is_named_with_what_the_others_wait() -> None:
    head, named, note = ranks(FOUND)
    waits = "they wait for each other 10.0% (least), 30.0% (median), 50.0% (most) of the time"
    assert head == f"Ranks: 2 of 2 reported; {waits}"
    assert (
        named == "Straggler: rank 1 on n1, loader: its batches come later; they wait 45.0% of the time for it"
    )
    assert note == "Ranks: PyTorch differs: …"
    assert facts(FOUND) == ["waits for batches 50% of the time, the others 5%"]


def test_where_none_is_named_it_says_whether_that_is_known() -> None:
    healthy = replace(FOUND, straggler=None, notes=())
    assert ranks(healthy)[1:] == ["No rank holds the others up"]
    assert facts(healthy) == []
    assert ranks(replace(healthy, abstains="only 1 was seen"))[1:] == [
        "No straggler is named: only 1 was seen"
    ]
    blind = replace(healthy, rows=(replace(ROW, wait_share=None),), abstains="why")
    assert ranks(blind)[0] == "Ranks: 2 of 2 reported; what they wait for each other is unknown"


def test_on_a_gpu_the_waits_are_the_hosts_alone() -> None:
    on_gpu = replace(FOUND, rows=(replace(ROW, device="cuda:0"), ROW))
    waits = "their hosts wait for each other 10.0% (least), 10.0% (median), 10.0% (most) of the time"
    assert ranks(on_gpu)[0] == f"Ranks: 2 of 2 reported; {waits}, and what their devices wait is not seen"


def test_one_that_is_only_possible_and_a_late_start() -> None:
    sharded = replace(FOUND, straggler=replace(STRAGGLER, certain=False, node=None), notes=())
    assert ranks(sharded)[1].startswith("Possible straggler: rank 1, loader: ")
    late = replace(FOUND, straggler=None, late=LateRank(rank=1, node="n1", seconds=12.0), notes=())
    assert ranks(late)[2] == "Late start: rank 1 began last; the others had waited 12.0 s longer or more"
