"""What nodes report, and what follows from it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from itertools import chain, zip_longest

import pytest

from gpudebug.core.cluster.node_reports import (
    LONGEST_LINE,
    ClusterFact,
    NodeReport,
    facts,
    lines_of,
    messages_in,
    reports,
)

LONG = {"devices": [{"name": 'a "GPU" \\ é', "index": i} for i in range(64)]}


def encoded(*lines: str) -> list[bytes]:
    return [line.encode() for line in lines]


def test_a_short_message_is_one_line() -> None:
    (line,) = lines_of("n1", {"ready": True})
    assert json.loads(line) == {"node": "n1", "ready": True}
    assert messages_in(encoded("a library's chatter", "0: " + line, "{torn", "[]", '{"node": 3}')) == [
        {"node": "n1", "ready": True}
    ]


@pytest.mark.parametrize("message", [LONG, {"text": '"' * 5000}, {"text": "\\" * 5000}, {"text": "é" * 5000}])
def test_long_messages_of_several_nodes_come_through_in_any_mixture(message: dict[str, object]) -> None:
    nodes = ["n" * 64, "n2", "n3"]
    each = [lines_of(node, message) for node in nodes]
    assert all(len(line.encode()) < 1024 for line in chain(*each))
    assert max(len(line) for line in chain(*each)) <= LONGEST_LINE
    mixed = [line for row in zip_longest(*each) for line in row if line is not None]
    assert [m["node"] for m in messages_in(encoded(*mixed))] == nodes
    assert messages_in(encoded(*mixed)) == [{"node": node, **message} for node in nodes]


def test_a_message_that_lacks_a_piece_is_nothing_and_the_next_one_is_whole() -> None:
    lines = lines_of("n1", LONG)
    for lost in range(len(lines)):
        torn = lines[:lost] + lines[lost + 1 :]
        assert messages_in(encoded(*torn, *lines)) == [{"node": "n1", **LONG}]
    for odd in ({"piece": 1}, {"piece": [0, 1], "text": 1}, {"piece": [0, 1], "text": '{"node": "n2"}'}):
        assert messages_in(encoded(json.dumps({"node": "n1", **odd}))) == []


N0 = NodeReport("n0", "host0", "boot0", True, "held", "/venv/bin/python 3.11.2", "glibc 2.36", "", 16)
N1 = replace(N0, node="n1", host="host1", boot="boot1", lock="kept")


def found(*said: NodeReport, asked: int = 2) -> dict[str, ClusterFact]:
    return {fact.name: fact for fact in facts(said, asked)}


def test_reports_are_read_among_other_lines() -> None:
    lines = ["srun: job 3 queued", json.dumps(asdict(N1)), "{}", "[1]", json.dumps(asdict(N0)), '{"node": 1']
    assert reports("\n".join(lines)) == (N0, N1)


def test_two_nodes_that_agree_are_well() -> None:
    assert {name: fact.result for name, fact in found(N0, N1).items()} == {
        "folder": "ok",
        "locks": "ok",
        "software": "ok",
        "cores": "ok",
    }


def test_a_folder_that_one_node_does_not_see() -> None:
    fact = found(N0, replace(N1, sees=False, lock="not tried"))["folder"]
    assert (fact.result, fact.text) == ("failed", "n1 does not see the campaign's folder")


def test_locks_that_end_at_the_node() -> None:
    assert found(N0, replace(N1, lock="local"))["locks"].result == "warning"
    late = found(N0, replace(N1, lock="not possible: No locks available"))["locks"]
    assert (late.result, late.text) == ("unknown", "n1: not possible: No locks available")
    assert found(replace(N0, lock="not tried"), replace(N1, lock="not tried"))["locks"].result == "unknown"


def test_other_software_on_a_node_is_named() -> None:
    fact = found(N0, replace(N1, driver="NVRM version: 550.54"))["software"]
    assert fact.result == "warning"
    assert fact.text == "driver: n0 -; n1 NVRM version: 550.54"


def test_one_core_for_all_workers_is_warned_of() -> None:
    fact = found(N0, replace(N1, cores=1))["cores"]
    assert (fact.result, fact.next) == ("warning", "set runner.slurm.cpus_per_task")


def test_nodes_of_one_host_prove_nothing_between_hosts() -> None:
    assert found(N0, replace(N0, node="n1", lock="kept"))["hosts"].result == "warning"


def test_nodes_that_are_missing() -> None:
    assert found()["nodes"].result == "unknown"
    assert found(replace(N0, lock="not tried"))["nodes"].text == "1 of 2 nodes answered: n0"
    assert "locks" not in found(replace(N0, lock="not tried"), asked=1)
