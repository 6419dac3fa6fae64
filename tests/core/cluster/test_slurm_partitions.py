"""What can be known before a job is submitted."""

from __future__ import annotations

import pytest

from gpudebug.core.cluster.slurm_partitions import addresses, gpus_in, node_groups, problem
from gpudebug.core.cluster.slurm_script import AskedOf, asked_of
from gpudebug.core.config import SlurmSettings

SINFO = """\
main*|up|infinite|1|64|gpu:a100:4(S:0-1)|10.0.0.1
main*|up|infinite|1|64|gpu:a100:4(S:0-1)|10.0.0.2
main*|up|infinite|1|32|(null)|10.0.0.3
short|up|1:00:00|4|16|gpu:2|localhost
old|down|infinite|1|16|gpu:8|n9
Last update: today
"""


def asked(**settings: object) -> str | None:
    found = problem(node_groups(SINFO), asked_of(SlurmSettings.model_validate(settings), {}))
    return None if found is None else f"{found.message}; {found.next}"


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"gpus_per_node": "a100:4", "nodes": 2},
        {"gpus_per_node": 0, "nodes": 3},
        {"partition": "short", "time": "1h"},
        {"partition": "short", "time": "2h", "qos": "long"},
        {"partition": "short", "extra": ["--gres=gpu:h100:1"]},
        {"partition": "nowhere", "extra": ["-pshort"]},
        {"gpus_per_node": 8, "cpus_per_task": 128, "nodes": 9, "time": "300h"},
        {"partition": "main,short", "time": "30h"},
        {"cpus_per_task": 64},
        {"constraint": "anything&else"},
    ],
)
def test_what_the_cluster_can_give_is_no_problem(settings: dict[str, object]) -> None:
    assert asked(**settings) is None


@pytest.mark.parametrize(
    ("settings", "what", "change"),
    [
        ({"partition": "gpu"}, "there is no partition gpu here: main, short, old", "partition: main"),
        ({"partition": "old"}, "partition old is not up", "another runner.slurm.partition"),
        ({"partition": "short", "time": "2h"}, "partition short allows 1h at most", "time: 1h"),
        (
            {"partition": "main", "gpus_per_node": 8},
            "no node of partition main has 8 GPUs: gpu:a100:4(S:0-1)",
            "gpus_per_node",
        ),
        (
            {"extra": ["--partition=main"], "gpus_per_node": "h100:1"},
            "no node of partition main has h100:1 GPUs",
            "gpus_per_node",
        ),
        ({"gpus_per_node": "h100:1"}, "no node of this cluster has h100:1 GPUs", "gpus_per_node"),
        ({"partition": "main", "nodes": 3}, "main has 2 such nodes, and 3 are asked for", "nodes: 2"),
        (
            {"partition": "main", "cpus_per_task": 65},
            "no node of partition main has 65 cores, 64 at most",
            "cpus_per_task: 64",
        ),
    ],
)
def test_what_it_can_never_give_is_one_line(settings: dict[str, object], what: str, change: str) -> None:
    found = asked(**settings)
    assert found is not None
    assert what in found
    assert change in found


@pytest.mark.parametrize("stars", [SINFO, SINFO.replace("*", "").replace("gpu:a100:4(S:0-1)", "(null)")])
def test_a_cluster_may_choose_the_partition_by_itself(stars: str) -> None:
    """A plugin of the site sends the job where it belongs: a default partition says nothing of it."""
    assert problem(node_groups(stars), AskedOf(gpus="2", nodes=3, time_s=1e6)) is None
    assert problem(node_groups(stars), AskedOf(gpus="9")) is not None


@pytest.mark.parametrize("text", ["", "command not allowed here\n", "a|b|c\n"])
def test_nothing_known_is_no_problem(text: str) -> None:
    assert problem(node_groups(text), AskedOf(("x",))) is None


@pytest.mark.parametrize(
    ("gres", "wanted", "has"),
    [
        ("gpu:2", "2", True),
        ("gpu:2", "a100:2", False),
        ("gpu:a100:2,gpu:v100:2", "4", True),
        ("gpu:a100:2,gpu:v100:2", "v100:2", True),
        ("gpu:a100:2(S:0,1)", "a100:3", False),
        ("nvme:4", "1", False),
        ("(null)", "0", True),
    ],
)
def test_the_gpus_of_a_node(gres: str, wanted: str, has: bool) -> None:
    assert gpus_in(gres, wanted) is has


def test_equal_nodes_of_a_partition_are_one_group() -> None:
    assert [(group.partition, group.nodes, group.cores) for group in node_groups(SINFO)] == [
        ("main", 2, 64),
        ("main", 1, 32),
        ("short", 4, 16),
        ("old", 1, 16),
    ]
    assert addresses(SINFO) == ("10.0.0.1", "10.0.0.2", "10.0.0.3", "localhost", "n9")
