"""`runner:` as it is written, and what it inherits of a cluster's own file."""

from __future__ import annotations

import pytest

from gpudebug.core import config
from gpudebug.core.config import SlurmSettings, runners
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
        ("extra: [mem=64G]", "options such as"),
        ('extra: ["--a\\n#SBATCH --b"]', "options such as"),
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
