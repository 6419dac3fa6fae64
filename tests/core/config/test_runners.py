"""`runner:` as it is written, and what it inherits of a cluster's own file."""

from __future__ import annotations

from typing import Any

import pytest

from gpudebug.core import config
from gpudebug.core.config import SlurmSettings, load, runners
from gpudebug.core.config.pins import pinnable
from gpudebug.core.errors import ConfigError

WORKLOAD = "workload: {command: python train.py}\n"


def slurm(text: str, **cluster: object) -> SlurmSettings:
    found = config.load(WORKLOAD + text, "gpudebug.yaml", cluster=cluster).runner
    assert found is not None
    assert found.slurm is not None
    return found.slurm


def test_the_host_itself_is_the_default_even_where_a_cluster_has_defaults() -> None:
    assert config.load(WORKLOAD, "f", cluster={"partition": "gpu"}).runner is None


@pytest.mark.parametrize("text", ["runner: {slurm: {}}", "runner: {slurm: }"])
def test_slurm_alone_asks_for_the_clusters_defaults(text: str) -> None:
    found = slurm(text, partition="gpu", time="4h")
    assert (found.partition, found.time, found.idle, found.parallel) == ("gpu", 14400.0, 600.0, 1)


def test_the_campaigns_own_settings_count() -> None:
    found = slurm("runner: {slurm: {partition: big, nodes: 2}}", partition="gpu", account="a")
    assert (found.partition, found.account, found.nodes) == ("big", "a", 2)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("4h", 14400),
        ("4:00:00", 14400),
        ("30:00", 1800),
        ("1-12", 129600),
        ("1-12:30", 131400),
        ("90m", 5400),
    ],
)
def test_times_in_both_ways_of_writing(written: str, seconds: float) -> None:
    assert slurm(f"runner: {{slurm: {{time: {written!r}}}}}").time == seconds


@pytest.mark.parametrize(
    ("written", "gpus", "count"), [("8", "8", 8), ("a100:4", "a100:4", 4), ("0", "0", 0)]
)
def test_gpus_by_number_and_by_type(written: str, gpus: str, count: int) -> None:
    found = slurm(f"runner: {{slurm: {{gpus_per_node: {written}}}}}").gpus_per_node
    assert (found, runners.count_of(found)) == (gpus, count)


def test_setup_is_a_block_or_a_list_of_lines() -> None:
    block = slurm("runner:\n  slurm:\n    setup: |\n      module load cuda\n      source x\n")
    listed = slurm("runner: {slurm: {setup: [module load cuda, source x]}}")
    assert block.setup == listed.setup == "module load cuda\nsource x"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("time: 240", "with its unit such as 4h"),
        ("time: 10s", "a minute or more"),
        ("partition: a b", "one word"),
        ('partition: "a\' --x"', "one word"),
        ("gpus_per_node: 'h100:0'", "a number of GPUs"),
        ("gpus_per_node: 65", "a number of GPUs"),
        ("gpus_per_node: -1", "a number of GPUs"),
        ("extra: [mem=64G]", "an option such as"),
        ('extra: ["--a\\n#SBATCH --b"]', "an option such as"),
        ("nodes: 0", "a whole number"),
        ("parallel: 0", "a whole number"),
        ("partitions: gpu", "unknown key runner.slurm.partitions"),
    ],
)
def test_bad_values_have_one_line(text: str, what: str) -> None:
    with pytest.raises(ConfigError, match=what) as caught:
        slurm(f"runner:\n  slurm:\n    {text}\n")
    assert caught.value.line == 4


def test_a_clusters_file_is_read_as_strictly() -> None:
    assert config.cluster_defaults("runner:\n  slurm: {partition: gpu}\n", "c") == {"partition": "gpu"}
    assert config.cluster_defaults("", "c") == {}
    assert config.cluster_defaults("runner: {slurm: }\n", "c") == {}
    with pytest.raises(ConfigError, match=r"unknown key runner\.slurm\.partitoin") as caught:
        config.cluster_defaults("runner:\n  slurm:\n    partitoin: gpu\n", "cluster.yaml")
    assert (caught.value.file, caught.value.line) == ("cluster.yaml", 3)
    with pytest.raises(ConfigError, match="unknown key workload"):
        config.cluster_defaults(WORKLOAD, "c")


SMALL = "workload: {command: 'python ask.py --port={port}'}\n"
SERVER = "server: {command: 'python serve.py --port={port}'}\n"


def test_its_defaults() -> None:
    config = load(SMALL + SERVER, "gpudebug.yaml")
    assert config.server is not None
    assert config.server.model_dump() == {
        "command": "python serve.py --port={port}",
        "ready": {},
        "port": None,
        "timeout": 120,
        "shell": False,
        "cwd": ".",
        "env": {},
    }
    assert config.workload.server == config.server
    assert config.server.argv() == ("python", "serve.py", "--port={port}")


def test_the_reference_needs_it_too() -> None:
    config = load(SMALL + SERVER + "reference: {command: python other.py}\n", "gpudebug.yaml")
    assert config.reference is not None
    assert config.reference.server == config.server


def test_without_it_nothing_is_pinned_of_it() -> None:
    with_server, without = (pinnable(load(text, "gpudebug.yaml")) for text in (SMALL + SERVER, SMALL))
    assert {key for key in with_server if key not in without} == {
        *("server.command", "server.ready", "server.timeout", "server.shell", "server.cwd", "server.env"),
    }
    assert not [key for key in (*with_server, *without) if key.startswith("workload.server")]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("ready: port", {}),
        ("ready: {port: true}", {}),
        ("ready: {port: 5555}", {"port": 5555}),
        ("ready: {http: /health}", {"http": "/health"}),
        ("ready: {log: 'startup complete'}", {"log": "startup complete"}),
    ],
)
def test_what_says_that_it_is_ready(written: str, expected: dict[str, Any]) -> None:
    server = load(SMALL + f"server:\n  command: serve --port={{port}}\n  {written}\n", "gpudebug.yaml").server
    assert server is not None
    assert server.ready == expected


@pytest.mark.parametrize(
    ("text", "says", "line"),
    [
        ("server: {ready: port}\n", "server.command is missing", 2),
        (
            "server:\n  command: serve\n",
            "{port} is in no word of its command, so it does not learn its port",
            3,
        ),
        ("server:\n  command: serve '\n  port: 1\n", "server.command: ", 3),
        ("server:\n  command: serve\n  port: 70000\n", "server.port: expected auto or a port from 1 to", 4),
        (
            "server:\n  command: serve\n  port: 1\n  ready: {http: health}\n",
            "server.ready: http: expected",
            5,
        ),
        ("server:\n  command: serve\n  port: 1\n  ready: {log: '('}\n", "server.ready: log: no regular", 5),
        (
            "server:\n  command: serve\n  port: 1\n  ready: {log: a, http: /b}\n",
            "server.ready: expected one",
            5,
        ),
        ("server:\n  command: serve\n  prot: 1\n", "unknown key server.prot", 4),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_line(text: str, says: str, line: int) -> None:
    with pytest.raises(ConfigError) as caught:
        load(SMALL + text, "gpudebug.yaml")
    assert says in caught.value.message
    assert caught.value.line == line


def test_it_stands_beside_the_workload() -> None:
    text = "workload:\n  command: ask\n  server: {command: serve, port: 1}\n"
    with pytest.raises(ConfigError, match=r"workload\.server: server is a setting of its own"):
        load(text, "gpudebug.yaml")
