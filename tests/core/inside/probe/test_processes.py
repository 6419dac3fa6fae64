"""Lines of probe.jsonl, ours and others', become the training processes of a run."""

from __future__ import annotations

import json
from itertools import zip_longest

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.probe_lines import T0, beat, line, start, training

from gpudebug.core.inside.probe.processes import LONGEST_LINE, ProbeRecord, TrainingProcess, read_probe

FACTS = line("facts", 1, 3, facts={"device": "cpu", "loaders": [{"workers": 2}]})
SITES = line("sites", 1, 3, sites=[["/code/train.py", 22, "item", "cpu", 40, 0.25]])
FOREIGN = {
    "empty": "",
    "text": "epoch 1 loss 0.5\n",
    "another's JSON": '{"step": 3}\n',
    "a list": "[1, 2]\n",
    "a process without a number": '{"kind": "start", "pid": "1", "t": 1001.0, "version": 1, "t0": 1000.0}\n',
    "a process numbered by a truth": json.dumps({"kind": "beat", "pid": True, "t": 1001.0, "steps": 3})
    + "\n",
    "deep": '{"kind": ' + "[" * 60_000 + "\n",
    "long": '{"kind": "beat", "pid": 1, "x": "' + "x" * LONGEST_LINE + '"}\n',
    "a beat of nobody": beat(1, 3, 5),
    "no clock": start(t0=None),
    "an earlier clock than the launch": start(at=-1.0),
    "an infinite clock": start().replace(str(T0 + 2.0), "Infinity"),
}


def only(text: str) -> TrainingProcess:
    found = read_probe(text)
    assert found is not None
    (process,) = found.processes
    return process


@pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN)
def test_what_is_not_the_probes_counts_for_nothing(text: str) -> None:
    assert read_probe(text) is None
    process = only(start() + beat(1, 3, 5, data_s=1) + text + beat(1, 4, 10, data_s=2))
    assert (process.steps, process.beats[0].t, process.beats[-1].t) == (10, 3, 4)


def test_a_process_tells_who_it_is_and_what_it_does() -> None:
    process = only(start(7, rank=1, world_size=4) + (FACTS + SITES).replace('"pid": 1', '"pid": 7'))
    assert (process.pid, process.rank, process.world_size, process.torch) == (7, 1, 4, "2.13.0")
    assert process.facts == {"device": "cpu", "loaders": [{"workers": 2}]}
    (site,) = process.sites
    assert (site.site, site.kind, site.count, site.seconds) == ("/code/train.py:22", "item", 40, 0.25)


def test_the_last_facts_and_sites_count() -> None:
    later = line("facts", 1, 4, facts={"device": "cuda:0"}) + line("sites", 1, 4, sites=[])
    process = only(start() + FACTS + SITES + later)
    assert (process.facts, process.sites) == ({"device": "cuda:0"}, ())


def test_a_torn_last_line_is_left_out() -> None:
    text = training(steps=50)
    whole = only(text)
    for cut in range(1, 120):
        torn = only(text[:-cut])
        assert torn.steps in (whole.steps, 45)
        assert torn.beats[: len(whole.beats) - 1] == whole.beats[: len(whole.beats) - 1]


@pytest.mark.parametrize(
    "odd",
    [
        beat(1, 3.5, 4),
        beat(1, 2.5, 20),
        beat(1, 3.5, -1),
        line("beat", 1, 3.5, steps=7.5),
        line("beat", 1, 3.5),
        line("beat", 1, 3.5, steps=10**40),
    ],
    ids=["steps go back", "time goes back", "negative", "a fraction", "without steps", "beyond belief"],
)
def test_a_beat_that_cannot_be_is_left_out(odd: str) -> None:
    process = only(start() + beat(1, 3, 5) + odd + beat(1, 4, 30))
    assert [(b.t, b.steps) for b in process.beats] == [(3, 5), (4, 30)]


def test_counters_and_buckets_that_cannot_be_are_left_out() -> None:
    text = (
        start() + '{"kind": "beat", "pid": 1, "t": 1003, "steps": 5, "counters": {"data_s": 1.5, "a": NaN, '
    )
    text += (
        '"b": "2", "c": -1, "d": true, "e": 1e300}, "hist": {"500": 4, "-3": 1, "x": 2, "501": -1, "502": 0}}'
    )
    (found,) = only(text).beats
    assert (dict(found.counters), dict(found.hist)) == ({"data_s": 1.5}, {500: 4})


def test_the_end_is_no_moment_of_training() -> None:
    """It comes when the process exits, which may be long after the last iteration."""
    process = only(start() + beat(1, 3, 5) + beat(1, 60, 8, kind="end"))
    assert (process.steps, [b.t for b in process.beats]) == (8, [3])


def test_a_process_that_switched_itself_off_says_why() -> None:
    off = line("off", 1, 3, why="ValueError: no")
    assert only(start() + beat(1, 2.5, 1) + off).off == "ValueError: no"
    early = read_probe(off)
    assert early is not None
    assert (early.processes, early.main, early.off) == ((), None, "ValueError: no")


def test_a_record_of_another_version_is_named() -> None:
    found = read_probe(start(version=2) + beat(1, 3, 5))
    assert found == ProbeRecord(other_version="2")


def test_a_number_that_is_used_again_is_another_process() -> None:
    found = read_probe(training(steps=50) + training(begins=20, steps=80))
    assert found is not None
    assert [p.steps for p in found.processes] == [50, 80]


RANKS = {
    "the one with the most iterations": ([(None, 10), (None, 50), (None, 20)], 1, 1),
    "rank 0 of equals": ([(2, 50), (1, 50), (0, 50)], 2, 3),
    "the one further on of two ranks": ([(0, 50), (1, 60)], 1, 2),
    "the first of equals without ranks": ([(None, 50), (None, 50)], 0, 1),
    "a helper that trained a little": ([(None, 5), (0, 50), (1, 50)], 1, 2),
}


@pytest.mark.parametrize(("processes", "main", "ranks"), RANKS.values(), ids=RANKS)
def test_the_main_process(processes: list[tuple[int | None, int]], main: int, ranks: int) -> None:
    text = "".join(
        training(100 + i, steps=steps, rank=rank, world_size=None if rank is None else 2)
        for i, (rank, steps) in enumerate(processes)
    )
    found = read_probe(text)
    assert found is not None
    assert found.main is not None
    assert found.main.pid == 100 + main
    assert len(found.ranks) == ranks


def test_a_rank_that_was_started_again_counts_once() -> None:
    texts = [
        training(i, steps=n, rank=r, world_size=2)
        for i, r, n in ((1, 0, 5), (2, 1, 5), (3, 0, 50), (4, 1, 50))
    ]
    found = read_probe("".join(texts))
    assert found is not None
    assert [p.pid for p in found.ranks] == [3, 4]


def test_facts_are_cut_to_what_a_person_reads() -> None:
    facts = {"long": "x" * 9999, "many": list(range(99)), "deep": {"a": {"b": {"c": 1}}}, "nan": 1}
    text = line("facts", 1, 3, facts=facts).replace('"nan": 1', '"nan": NaN')
    found = only(start() + text).facts
    assert len(json.dumps(found, allow_nan=False)) < 1000
    assert found["nan"] is None
    assert found["deep"] == {"a": {"b": None}}


def hosts(*texts: str) -> str:
    """What each host writes into one file, a line of each in turn."""
    written = [
        [json.dumps({**json.loads(one), "host": f"h{number}"}) for one in text.splitlines()]
        for number, text in enumerate(texts)
    ]
    return "\n".join(one for turn in zip_longest(*written) for one in turn if one is not None) + "\n"


def test_processes_of_two_hosts_with_one_number_are_two() -> None:
    """Containers and nodes count their processes from the same number on."""
    ends = training(7, steps=40, rank=0, world_size=2, node="n0", boot="a", ends=False)
    goes_on = training(7, steps=90, step_s=0.05, rank=1, world_size=2, node="n1", boot="b", t0=T0 + 1)
    found = read_probe(hosts(ends, goes_on))
    assert found is not None
    assert [(p.key, p.rank, p.node, p.steps) for p in found.ranks] == [
        (("h0", 7), 0, "n0", 40),
        (("h1", 7), 1, "n1", 90),
    ]
    assert [p.beats[-1].steps for p in found.ranks] == [40, 90]
    assert found.elsewhere == ()


def test_each_node_may_have_a_training_of_its_own() -> None:
    """Same ranks, same numbers, as many steps: those of the node that got furthest are looked at."""
    texts = [
        training(100 + rank, steps=steps, rank=rank, world_size=2, node=node, boot=node)
        for node, steps in (("n0", 50), ("n1", 60))
        for rank in (0, 1)
    ]
    found = read_probe(hosts(texts[0] + texts[1], texts[2] + texts[3]))
    assert found is not None
    assert [(p.rank, p.node, p.steps) for p in found.ranks] == [(0, "n1", 60), (1, "n1", 60)]
    assert [(p.rank, p.node) for p in found.elsewhere] == [(0, "n0"), (1, "n0")]


def test_a_rank_that_moved_to_another_node_is_its_later_self() -> None:
    tries = [(0, 8, "n0"), (1, 8, "n1"), (0, 50, "n1"), (1, 50, "n0")]
    texts = [training(10 + i, steps=n, rank=r, world_size=2, node=on) for i, (r, n, on) in enumerate(tries)]
    found = read_probe("".join(texts))
    assert found is not None
    assert [p.steps for p in found.ranks] == [50, 50]
    assert found.elsewhere == ()


LINES = st.one_of(
    st.text(),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    ).map(json.dumps),
    st.builds(
        lambda **entries: json.dumps(entries),
        kind=st.sampled_from(["start", "beat", "facts", "sites", "off", "end", "x"]),
        pid=st.integers(0, 2),
        t=st.floats() | st.integers(),
        t0=st.floats() | st.none(),
        version=st.integers(0, 2),
        steps=st.integers() | st.none(),
        counters=st.dictionaries(st.text(max_size=5), st.floats(), max_size=2) | st.integers(),
        hist=st.dictionaries(st.text(max_size=5), st.integers(), max_size=2) | st.none(),
        sites=st.lists(st.lists(st.integers() | st.text(max_size=3), min_size=5, max_size=6), max_size=2),
        facts=st.dictionaries(st.text(max_size=5), st.floats() | st.lists(st.integers()), max_size=2),
        why=st.text(max_size=9),
    ),
)


@given(st.lists(LINES, max_size=12))
def test_whatever_stands_there_is_read_without_an_error(lines: list[str]) -> None:
    found = read_probe("\n".join(lines))
    for process in found.processes if found else ():
        times = [b.t for b in process.beats]
        assert times == sorted(set(times))
        assert [b.steps for b in process.beats] == sorted({b.steps for b in process.beats})


def test_a_process_tells_where_it_runs_and_what_it_may_use() -> None:
    where = {"local_rank": 3, "node": "gpu7", "boot": "b", "met": 1.5, "cores": 0.5}
    told = {"visible": "2,3", "omp": "8", "slurm_cpus": "4"}
    process = only(start(**where, **told))
    assert (process.local_rank, process.node, process.boot, process.met_s) == (3, "gpu7", "b", 1.5)
    assert (process.cores, process.visible, process.omp, process.slurm_cpus) == (0.5, "2,3", "8", "4")
    odd = {"local_rank": -1, "node": 7, "boot": [], "met": -1, "cores": "4", "visible": None, "omp": {}}
    process = only(start(**odd))
    assert (process.local_rank, process.node, process.boot, process.met_s) == (None,) * 4
    assert (process.cores, process.visible, process.omp) == (None,) * 3


def test_a_process_of_another_boot_has_a_clock_of_its_own() -> None:
    """It may be far behind the launch, or far ahead: neither is a moment of this run."""
    for ahead in (-900.0, 86400.0):
        text = start(1, boot="a", rank=0) + start(2, at=ahead, boot="b", rank=1) + beat(2, ahead + 3, 5)
        found = read_probe(text)
        assert found is not None
        first, second = found.processes
        assert (first.aside, first.start_s, first.moved_s) == (False, 2.0, 0.0)
        assert (second.aside, second.start_s, second.moved_s) == (True, 0.0, ahead)
        assert [one.t for one in second.beats] == [3.0]
    found = read_probe(start(1, boot="a") + start(2, at=-900.0, boot="a"))
    assert found is not None
    assert len(found.processes) == 1
