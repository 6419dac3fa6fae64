"""gpudebug.yaml as a whole: a full example, the defaults, and one line for every mistake."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.places import DATA

from gpudebug.core import config
from gpudebug.core.config import Config, pins
from gpudebug.core.config.parser import example
from gpudebug.core.config.values import Ratio
from gpudebug.core.errors import ConfigError

EXAMPLE = r"""
campaign: act-relative-rtc
progress: progress/act-relative-rtc.md     # default
goal: Fix the poor GPU utilisation of act_relative_rtc training.
workload:
  command: |            # split as a shell would
    lerobot-train --policy.type=act_relative_rtc \
      --steps=200 --batch_size=8 --output_dir=outputs/tmp/{run}
  cwd: .
  env: {}
  timeout: 30m
  stall_timeout: 5m
  max_output: 2GB
reference:
  command: lerobot-train --policy.type=act --steps=200 --batch_size=8 --output_dir=outputs/tmp/{run}
metric: gpu_util
direction: higher
criteria:
  success: 20
  failure: 10
  loss: converging
  throughput: better
target: 80
log: {loss: 'l1_loss:(?P<value>[\d.e+-]+)', step: 'step:(?P<value>\d+)'}
locked: [--batch_size, --policy.chunk_size]
protocol: {interval: 0.2s, warmup: auto, max_runs: 6}
budget: {hypotheses: 20, device_time: 2h}
device: auto
probe: true
auto_propose: false
worktree: {link: [.venv, data]}
expected: {steps_per_s: {NVIDIA A100: [1500, 2500], default: [150, 250]}}
context: [plans/notes.md]
guidelines: |
  Test one variable at a time. Do not break the relative transformation.
"""
SMALL = "workload: {command: python train.py}\n"


def load(text: str) -> Config:
    return config.load(text, "gpudebug.yaml")


def test_a_full_example() -> None:
    found = load(EXAMPLE)
    assert found.campaign == "act-relative-rtc"
    assert found.workload.argv() == (
        "lerobot-train",
        "--policy.type=act_relative_rtc",
        "--steps=200",
        "--batch_size=8",
        "--output_dir=outputs/tmp/{run}",
    )
    assert found.workload.timeout == 1800
    assert found.workload.max_output == 2**31
    assert found.reference is not None
    assert found.reference.argv()[1] == "--policy.type=act"
    assert found.target == 80
    assert found.log["step"] == r"step:(?P<value>\d+)"
    assert found.locked == ("--batch_size", "--policy.chunk_size")
    assert found.worktree.link == (".venv", "data")
    assert found.expected == {"steps_per_s": {"NVIDIA A100": (1500, 2500), "default": (150, 250)}}
    assert found.guidelines.startswith("Test one variable")


def test_what_is_left_out_has_its_default() -> None:
    found = config.load(SMALL, "f", campaign="my-campaign")
    assert found.campaign == "my-campaign"
    assert found.progress == "progress/my-campaign.md"
    assert found.reference is None
    assert (found.metric, found.direction, found.target) == ("gpu_util", "higher", None)
    assert found.workload.model_dump() == {
        "command": "python train.py",
        "shell": False,
        "cwd": ".",
        "env": {},
        "timeout": 1800,
        "stall_timeout": 300,
        "max_output": 2 * 2**30,
    }
    assert found.criteria.model_dump() == {
        "success": 20,
        "failure": 10,
        "loss": "converging",
        "learning": {"metric": "auto", "direction": ""},
        "throughput": "better",
        "also": None,
        "devices": None,
    }
    assert found.protocol.model_dump() == {
        "interval": 0.2,
        "warmup": None,
        "max_runs": 8,
        "run_for": None,
    }
    assert found.budget.model_dump() == {"hypotheses": 20, "device_time": 7200}
    assert (found.device, found.probe, found.auto_propose) == ("auto", True, False)
    assert load(SMALL + "criteria:\nprotocol:\nreference:\n").criteria.success == 20


def test_the_records_are_frozen_and_strict() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load(SMALL).metric = "steps_per_s"  # type: ignore[misc]


def test_the_reference_inherits_what_it_does_not_say() -> None:
    found = load(
        "workload: {command: python a.py, timeout: 10m, cwd: sub, env: {A: 1, B: 2}}\n"
        "reference: {command: python b.py, timeout: 5m, env: {B: 3}}\n"
    ).reference
    assert found is not None
    assert (found.command, found.timeout, found.cwd) == ("python b.py", 300, "sub")
    assert found.env == {"A": "1", "B": "3"}


def test_a_shell_is_inherited_for_text_only() -> None:
    found = load("workload: {command: 'a | b', shell: true}\nreference: {command: 'c; d'}\n").reference
    assert found is not None
    assert found.argv() == ("/bin/sh", "-c", "c; d")
    found = load("workload: {command: 'a | b', shell: true}\nreference: {command: [c, d]}\n").reference
    assert found is not None
    assert found.argv() == ("c", "d")


def test_variables_and_words_keep_their_text() -> None:
    found = load(
        "workload: {command: [t, --lr, 3e-5, --n, 08, --x=y z], env: {LR: 1e-5, N: 007, S: on}}\n"
    ).workload
    assert found.argv() == ("t", "--lr", "3e-5", "--n", "08", "--x=y z")
    assert found.env == {"LR": "1e-5", "N": "007", "S": "on"}
    assert found.text == "t --lr 3e-5 --n 08 '--x=y z'"


@pytest.mark.parametrize(
    ("metric", "direction", "success"),
    [
        ("steps_per_s", "higher", 1.2),
        ("step_time_p50", "lower", 1.2),
        ("section:load", "lower", 1.2),
        ("gpu_util", "higher", 20),
    ],
)
def test_direction_and_criteria_follow_the_metric(metric: str, direction: str, success: float) -> None:
    found = load(SMALL + f"metric: {metric}\n")
    assert (found.direction, found.criteria.success) == (direction, success)
    assert isinstance(found.criteria.success, Ratio) is (metric != "gpu_util")


def test_ratios_are_kept() -> None:
    found = load(SMALL + "metric: steps_per_s\ncriteria: {success: 1.5x}\n")
    assert (found.criteria.success, found.criteria.failure) == (1.5, 1.1)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("workload", "timeout"), "timeout: 30m"),
        (("reference", "timeout"), "timeout: 30m"),
        (("log", "loss"), "log: {}"),
        (("criteria",), "criteria: {success: 20}"),
        (("nothing",), "nothing: …"),
    ],
)
def test_examples_for_errors(path: tuple[str, ...], text: str) -> None:
    assert example(path) == text


@pytest.mark.parametrize(
    ("text", "line", "says", "next_says"),
    [
        ("", 1, "expected settings", "gpudebug init"),
        ("- a\n", 1, "expected settings", "gpudebug init"),
        ("metric: gpu_util\n", 1, "workload is missing", "workload: {command:"),
        ("workload:\n  cwd: .\n", 1, "workload.command is missing", "command: python"),
        (
            "workload: python train.py\n",
            1,
            "workload: expected a mapping, found 'python train.py'",
            "command:",
        ),
        (SMALL + "metric: step_per_s\n", 2, "expected one of gpu_util, ", "write metric: steps_per_s"),
        (SMALL + "metric: Utilization\n", 2, "expected one of gpu_util, ", "write metric: gpu_util"),
        (SMALL + "metric: mfu\n", 2, "expected one of gpu_util, ", "write one of these"),
        (SMALL + "allow_env: MY_WORKERS\n", 2, "allow_env: expected a list", "write allow_env: [MY_WORKERS]"),
        (SMALL + "allow_env: LD_PRELOAD\n", 2, "allow_env: expected a list", "write allow_env: []"),
        (SMALL + "locked: batch_size\n", 2, "locked: expected a list", "write locked: [batch_size]"),
        (SMALL + "criteria: {devices: avg_mean}\n", 2, "expected mean, least or working", "devices: mean"),
        (SMALL + "metrik: x\n", 2, "unknown key metrik", "write metric"),
        ("workload:\n  command: t\n  time_out: 5m\n", 3, "unknown key workload.time_out", "workload.timeout"),
        ("workload:\n  command: t\n  Stall-Timeout: 5m\n", 3, "unknown key", "workload.stall_timeout"),
        (SMALL + "success: 20\n", 2, "unknown key success", "criteria.success"),
        (SMALL + "reference:\n  comand: x\n", 3, "unknown key reference.comand", "reference.command"),
        (SMALL + "zzzzzz: 1\n", 2, "unknown key zzzzzz", "valid here: campaign"),
        (SMALL + "1: 2\n", 2, "unknown key 1", "valid here"),
        (SMALL + "<<: {a: 1}\n", 2, "unknown key <<", "valid here"),
        (SMALL + "campaign: ../x\n", 2, "campaign: expected a name", "campaign: act-relative-rtc"),
        (SMALL + "progress: /etc/x.md\n", 2, "inside the repository", "progress: progress/"),
        (SMALL + "progress: ../x.md\n", 2, "inside the repository", "progress: progress/"),
        (SMALL + "probe: on\n", 2, "probe: expected true or false, found 'on'", "probe: true"),
        (
            "workload:\n  command: t\n  timeout: 1:30\n",
            3,
            "workload.timeout: expected a duration",
            "timeout: 30m",
        ),
        (
            "workload:\n  command: t\n  env:\n    A: 1\n    B: true\n",
            5,
            "workload.env.B: expected text, found true: quote it",
            "env:",
        ),
        (
            SMALL + "protocol:\n  max_runs: 1_000\n",
            3,
            "protocol.max_runs: expected a whole number",
            "max_runs: 8",
        ),
        (SMALL + "phases: [a]\n", 2, "phases: expected a mapping such as {ppo: 'teacher off'}", "phases:"),
        (SMALL + "phases: {a/b: x}\n", 2, "'a/b' is no name of a phase", "phases:"),
        (SMALL + "phases: {ppo: '('}\n", 2, "phases.ppo: no regular expression", "phases:"),
        (
            SMALL + "phases: {ppo: x}\nphase: pp\n",
            3,
            "phase: phases has no pp",
            "write one of ppo, or add pp to phases",
        ),
        (
            SMALL + "phases: {ppo: x}\nprotocol:\n  run_for: phase sft 60s\n",
            4,
            "protocol.run_for: phases has no sft",
            "write one of ppo",
        ),
        (SMALL + "protocol: {run_for: phase ppo 2s}\n", 2, "at least 5s", "run_for"),
        (SMALL + "protocol: {run_for: ppo}\n", 2, "or phase ppo 60s", "run_for"),
        (SMALL + "protocol: {interval: 1ms}\n", 2, "0.02s", "interval: 0.2s"),
        (SMALL + "protocol: 5\n", 2, "protocol: expected a mapping, found '5'", "protocol: {interval"),
        (SMALL + "log:\n  loss: '('\n", 3, "log.loss: no regular expression", "log: {}"),
        (
            SMALL + "metric: steps_per_s\ncriteria: {devices: least}\n",
            3,
            "criteria.devices: which GPUs gpu_util is judged by, and the metric is steps_per_s",
            "metric: gpu_util",
        ),
        (SMALL + "criteria: {devices: most}\n", 2, "expected mean, least or working", "devices: "),
        (SMALL + "criteria: {failure: 30}\n", 2, "failure (30) is above success (20)", "success: 20"),
        (
            SMALL + "criteria:\n  success: 1.2x\n",
            3,
            "expected percentage points such as 20 for gpu_util",
            "success: 20",
        ),
        (
            SMALL + "metric: steps_per_s\ncriteria:\n  failure: 10\n",
            4,
            "expected a ratio such as 1.2x",
            "failure: 1.1x",
        ),
        (SMALL + "metric: gpu_util\ndirection: lower\n", 3, "better when higher", "direction: higher"),
        (SMALL + "metric: step_time_p50\ndirection: higher\n", 3, "better when lower", "direction: lower"),
        (SMALL + "metric: log:fps\n", 2, "direction is missing", "direction: higher"),
        (
            SMALL + "metric: log:fps\ndirection: higher\n",
            2,
            "metric: log has no pattern fps",
            "add log: {fps: 'fps=(?P<value>",
        ),
        (SMALL + "metric: log:loss\ndirection: lower\n", 2, "log:loss does not measure speed", "steps_per_s"),
        (
            SMALL + "metric: steps_per_s\ncriteria: {success: 1.05x}\n",
            3,
            "failure (1.1x) is above success (1.05x)",
            "success: 1.2x and failure: 1.1x",
        ),
        (
            SMALL + "metric: latency_p50\ncriteria: {success: 0.8x}\n",
            3,
            "an improvement of 1x or more (for a time: baseline over trial)",
            "success: 1.2x",
        ),
        (
            SMALL + "metric: samples_per_s\ncriteria: {success: 20, failure: 10pp}\n",
            3,
            "criteria.success: expected a ratio such as 1.2x for samples_per_s",
            "success: 1.2x",
        ),
        (
            SMALL + "criteria: {success: 1.2x, failure: 10}\n",
            2,
            "criteria.success: expected percentage points such as 20 for gpu_util",
            "success: 20",
        ),
        (SMALL + "target: 120\n", 2, "at most 100 percent", "target: 80"),
        (SMALL + "target: 0\n", 2, "above 0", "target: 80"),
        (SMALL + "locked: ['--']\n", 2, "names no flag", "--batch_size"),
        (SMALL + "locked: [yes, true]\n", 2, "quote it", "locked:"),
        (
            'workload:\n  command: "t \'x"\n',
            2,
            "workload.command: the quote ' is never closed",
            "shell: true",
        ),
        ("workload:\n  command: |\n    t \\\n      --a=1 \\\n      --b='x\n", 5, "never closed", "quote"),
        ("workload:\n  command: t | tee log\n", 2, "| has a meaning", "shell: true"),
        ("workload:\n  command: A=1 t\n", 2, "A is set before the program: use env", "shell"),
        ("workload: {command: t}\nreference:\n  command: u > x\n", 3, "reference.command", "shell: true"),
        ("workload: {command: [t], shell: true}\n", 1, "a list of words needs no shell", "shell"),
        ("workload: {command: []}\n", 1, "empty", "command"),
        ("workload: {command: '   '}\n", 1, "empty", "command:"),
        ("workload: {command: 5}\n", 1, "expected a command", "command:"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(text: str, line: int, says: str, next_says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(text)
    assert says in caught.value.message
    assert (caught.value.file, caught.value.line) == ("gpudebug.yaml", line)
    assert caught.value.next is not None
    assert next_says in caught.value.next
    assert "\n" not in str(caught.value)


def test_the_first_of_several_mistakes_is_named_and_the_others_counted() -> None:
    with pytest.raises(ConfigError, match=r"unknown key aa \(and 2 more\)") as caught:
        load("aa: 1\n" + SMALL + "probe: 5\nbb: 2\n")
    assert caught.value.line == 1


OLD = """\
workload: {command: python train.py}
protocol:
  min_window: 30s
  baseline_runs: 4
  max_runs: 6
  early_stop: true
"""


def test_settings_of_older_versions_are_refused_at_once_with_what_replaced_each() -> None:
    with pytest.raises(ConfigError) as caught:
        load(OLD)
    parts = caught.value.message.split("; ")
    told = [part for part in parts if " is gone: " in part]
    assert [part.partition(":")[0] for part in told] == [f"{key} is gone" for key in pins.GONE]
    for line, (key, instead) in zip((3, 4, 6), pins.GONE.items(), strict=True):
        assert f"{key} is gone: {instead} (line {line})" in caught.value.message
    assert (caught.value.line, caught.value.next) == (3, "delete these keys: line 3, 4, 6")
    kept = "".join(line for line in OLD.splitlines(keepends=True) if "30s" not in line)
    kept = kept.replace("  baseline_runs: 4\n", "").replace("  early_stop: true\n", "")
    assert load(kept).protocol.max_runs == 6


@pytest.mark.parametrize("key", pins.GONE)
def test_one_setting_of_an_older_version_is_refused_alone(key: str) -> None:
    name = key.removeprefix("protocol.")
    with pytest.raises(ConfigError) as caught:
        load(SMALL + f"protocol:\n  max_runs: 6\n  {name}: 5\n")
    assert caught.value.message == f"{key} is gone: {pins.GONE[key]}"
    assert (caught.value.line, caught.value.next) == (4, "delete this key")


def test_the_seeds_command_survives_the_file(tmp_path: Path) -> None:
    line = (DATA / "seed004_command.sh").read_text()
    inner = shlex.split(line)[-1]
    for command in (line, inner):
        block = "".join(f"    {part}\n" for part in command.rstrip("\n").split("\n"))
        found = load(f"workload:\n  command: |\n{block}")
        script = "f() { for word; do printf '%s\\0' \"$word\"; done; }; f " + command
        bash = subprocess.run(
            ["bash", "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        assert list(found.workload.argv()) == bash.stdout.split("\0")[:-1]


KEYS = [
    "workload",
    "command",
    "reference",
    "metric",
    "criteria",
    "success",
    "log",
    "locked",
    "env",
    "target",
    "device",
    "protocol",
    "expected",
    "context",
    "campaign",
    "progress",
    "worktree",
    "link",
    "x",
]
SCALARS = st.sampled_from(
    [
        "1",
        "true",
        "''",
        "1.2x",
        "gpu_util",
        "~",
        "log:x",
        "t --a",
        "'a ''b'",
        "30m",
        "../x",
        "-",
        "*a",
        "&b c",
        "!t",
    ]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(st.tuples(st.sampled_from(KEYS), inner), max_size=3).map(
            lambda pairs: "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
        )
    ),
    max_leaves=6,
)


@given(st.lists(st.tuples(st.sampled_from(KEYS), VALUES), max_size=6))
def test_no_settings_raise_anything_but_a_config_error(pairs: list[tuple[str, str]]) -> None:
    text = "".join(f"{key}: {value}\n" for key, value in pairs)
    for whole in (text, SMALL + text):
        try:
            found = load(whole)
        except ConfigError as error:
            assert error.file == "gpudebug.yaml"
            assert error.line is not None
            assert error.next
        else:
            assert found.workload.argv()
