"""What a user asks of sbatch in other ways than by the keys of runner.slurm."""

from __future__ import annotations

import pytest

from gpudebug.core.cluster.slurm_options import AskedOf, asked_of, option
from gpudebug.core.config import SlurmSettings


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (("--partition=gpu",), "gpu"),
        (("-pgpu",), "gpu"),
        (("-pcpu", "--mem=1G", "--partition=gpu"), "gpu"),
        (("--partition",), ""),
        (("--partitions=x", "--part-p=y"), None),
        ((), None),
    ],
)
def test_the_last_option_of_a_name_counts(words: tuple[str, ...], value: str | None) -> None:
    assert option(words, "--partition", "-p") == value


def test_a_key_counts_before_a_variable_and_an_option_before_a_key() -> None:
    environ = {"SBATCH_PARTITION": "variable"}
    assert asked_of(SlurmSettings(), {}).partitions == ()
    assert asked_of(SlurmSettings(), environ).partitions == ("variable",)
    keyed = SlurmSettings(partition="a,b")
    assert asked_of(keyed, environ).partitions == ("a", "b")
    extra = SlurmSettings.model_validate({"partition": "a", "extra": ["-pc"]})
    assert asked_of(extra, environ).partitions == ("c",)


def test_what_another_option_says_is_not_checked() -> None:
    words = ["--gres=gpu:1", "-N4", "-c2", "--time=1:00:00"]
    settings = {"extra": words, "time": "2h", "cpus_per_task": 8}
    assert asked_of(SlurmSettings.model_validate(settings), {}) == AskedOf()
    assert asked_of(SlurmSettings.model_validate({"time": "2h"}), {"SBATCH_QOS": "long"}).time_s is None
    assert asked_of(SlurmSettings.model_validate({"time": "2h"}), {}).time_s == 7200
