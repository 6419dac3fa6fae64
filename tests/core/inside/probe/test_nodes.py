"""Records of several nodes in one: by node, on the clock of the first."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.probe_lines import T0, training
from tests.support.stack_lines import told

from gpudebug.core.inside.probe import read_probe
from gpudebug.core.inside.probe.nodes import CLOCK_WITHIN_S, MOST_NODES, PIDS, joined, records_of
from gpudebug.core.inside.ranks import rank_evidence
from gpudebug.core.inside.stacks import read_stacks
from gpudebug.core.records import Window

STAMP = 1.8e9
AHEAD_S = 5000.0


def rank(number: int, node: str, *, ahead: float = 0.0, within: float = 0.001, **more: Any) -> str:
    """The record of one rank, with the same pid on every node, by a clock that is `ahead` of the launch's."""
    own = {"boot": f"boot-{node}", "clock": [T0 + ahead, within, STAMP], **more}
    text = training(7, rank=number, world_size=2, node=node, **own)
    lines = [json.loads(line) for line in text.splitlines()]
    return "".join(json.dumps({**line, "t": line["t"] + ahead}) + "\n" for line in lines)


def test_ranks_of_two_nodes_are_on_one_clock_and_told_apart_whatever_their_pids() -> None:
    record = read_probe(joined(rank(0, "n0"), {"n1": rank(1, "n1", ahead=AHEAD_S)}))
    assert record is not None
    first, other = record.ranks
    assert (first.pid, other.pid) == (7, 7 + PIDS)
    assert (first.node, other.node, other.aside) == ("n0", "n1", False)
    assert other.start_s == pytest.approx(first.start_s, abs=1e-3)
    assert other.moved_s == pytest.approx(AHEAD_S)
    assert [b.t for b in other.beats] == pytest.approx([b.t for b in first.beats], abs=1e-3)
    whole = Window(start_s=5.0, end_s=25.0, duration_s=20.0, samples=100, rule="given")
    ranks = rank_evidence(record, None, whole)
    assert [one.own_clock for one in ranks] == [False, False]
    assert ranks[1].last_step_s == pytest.approx(ranks[0].last_step_s)


@pytest.mark.parametrize(
    "more",
    [
        {"within": CLOCK_WITHIN_S},
        {"within": -1.0},
        {"clock": None},
        {"clock": [1.0]},
        {"clock": ["a", 0, 0]},
        {"clock": [10**400, 0, 0]},
        {"clock": [True, 0, 0]},
    ],
    ids=["measured badly", "impossible", "not measured", "short", "text", "beyond a float", "yes"],
)
def test_a_clock_that_was_not_measured_well_stays_its_own(more: dict[str, Any]) -> None:
    record = read_probe(joined(rank(0, "n0"), {"n1": rank(1, "n1", ahead=AHEAD_S, **more)}))
    assert record is not None
    assert [one.aside for one in record.ranks] == [False, True]


def computes(ahead: float) -> str:
    """What was seen of a rank from second 10 to 30, by a clock that is `ahead`."""
    rows = [["backward", [0], 4, 12.0, 12.0, 240], ["data", [0], 3, 8.0, 0.0, 160]]
    frames = ["job/train.py:main"]
    return told(7, 10.0 + ahead, 30.0 + ahead, s=20.0, cpu=12.0, n=400, frames=frames, stacks=rows)


def test_what_was_seen_of_another_nodes_rank_is_of_the_same_time() -> None:
    # Booted so shortly before the other that its times could be the other's.
    text = joined(
        rank(0, "n0") + computes(0.0),
        {"n1": rank(1, "n1", ahead=8.0) + computes(8.0)},
    )
    whole = Window(start_s=10.0, end_s=30.0, duration_s=20.0, samples=100, rule="given")
    ranks = rank_evidence(read_probe(text), read_stacks(text), whole)
    assert [one.data_share for one in ranks] == pytest.approx([0.4, 0.4])
    assert [one.samples for one in ranks] == [400, 400]


def test_the_first_record_is_kept_to_the_byte_and_torn_lines_are_left_out() -> None:
    first = rank(0, "n0") + '{"kind": "beat", "pi'
    text = joined(first, {"n1": rank(1, "n1") + '{"torn'})
    assert text.startswith(first + "\n")
    assert "torn" not in text
    assert joined("", {}) == ""


def test_nodes_are_in_the_order_of_their_numbers_and_no_more_than_can_be_looked_at() -> None:
    others = {f"n{number}": rank(number, f"n{number}") for number in range(1, MOST_NODES + 5)}
    lines = [json.loads(line) for line in joined("", others).splitlines()]
    started = [line["node"] for line in lines if line["kind"] == "start"]
    assert started == [f"n{number}" for number in range(1, MOST_NODES + 1)]


def test_no_more_files_are_read_than_can_be_looked_at() -> None:
    names = [f"probe.n{number}.jsonl" for number in range(MOST_NODES + 5, 0, -1)]
    found = records_of([*names, "probe.jsonl", "probe.a/b.jsonl", "sections.json"])
    assert list(found) == [f"n{number}" for number in range(1, MOST_NODES + 1)]
    assert found["n1"] == "probe.n1.jsonl"
