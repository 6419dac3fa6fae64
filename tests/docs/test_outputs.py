"""Outputs in documents are made again: `<!-- captured: STAGE -->` above a block names where its commands run.

Figures, paths and drawings are masked; words are not. A line `…` stands for any lines, a `…` in a line for
any words. A test that fails shows what is printed today: copy it into the document.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.bench.diagnosis import recording
from tests.bench.diagnosis.replaying import Replay
from tests.support import monitors, old_campaign, traces
from tests.support.campaigns import make_repository
from tests.support.commands import command
from tests.support.documents import ROOT, Block, masked, pages
from tests.support.section_reports import node, report, section

TRAINER = """\
from transformers import Trainer, TrainingArguments

Trainer(args=TrainingArguments("out", max_steps=100)).train()
"""


# A busy machine stretches a sleep, and rows stand in the order of their times: time here is what
# the program itself computes, and what it asked to sleep.
OWN_TIME = """\
import time

slept = 0


def sleep(seconds):
    global slept
    slept += round(seconds * 1e9)


time.sleep = sleep
time.perf_counter_ns = lambda: time.thread_time_ns() + slept

"""


def empty(folder: Path) -> Iterator[None]:
    yield


def recorded(folder: Path) -> Iterator[None]:
    """A campaign of a real training on a CPU, recorded by 0.1.0."""
    old_campaign.restore(folder)
    yield


def criteria(folder: Path) -> Iterator[None]:
    """A configuration for each command of the block, each wrong in another way."""
    for lines in (
        "metric: gpu_util\ncriteria: {success: 1.2x}",
        "metric: latency_p50\ndirection: higher",
        "metric: steps_per_s\ncriteria: {success: 1.05x, failure: 1.1x}",
    ):
        text = f"campaign: x\nworkload: {{command: python train.py}}\n{lines}\n"
        (folder / "gpudebug.yaml").write_text(text)
        yield


def own_cause(folder: Path) -> Iterator[None]:
    """The example of hypotheses/README.md with a name that no signal has."""
    example = (
        (ROOT / "hypotheses" / "README.md").read_text("utf-8").partition("```yaml\n")[2].partition("```")[0]
    )
    (folder / "hypotheses").mkdir()
    (folder / "gpudebug.yaml").write_text("workload: {command: python train.py}\n")
    wrong = example.replace("data_wait_share", "data_wait")
    (folder / "hypotheses" / "slow-logger.yaml").write_text(wrong)
    yield


def hugging_face(folder: Path) -> Iterator[None]:
    make_repository(folder, {"train.py": TRAINER})
    yield


def section_reports(folder: Path) -> Iterator[None]:
    """Two reports of 200 iterations, the second with a loader four times as fast, and a broken one."""
    for name, wait in (("before", 20.1), ("sections", 5.1), ("broken", 20.1)):
        parts = {"data_loading": wait, "model_forward": 6.1, "gpu_to_cpu": 3.1}
        whole = sum(parts.values()) + 0.1
        sections = [section("training_step", 200, whole / 1e3, self_s=0.02)]
        sections += [section(part, 200, ms / 1e3) for part, ms in parts.items()]
        tree = node("training_step", 200, whole / 5, *(node(p, 200, ms / 5) for p, ms in parts.items()))
        if name == "broken":
            sections[0]["total_s"] *= -1
        made = report(*sections, tree=[tree], iterations=200, enabled_s=whole / 5, warmup=5)
        (folder / f"{name}.json").write_text(json.dumps(made))
    yield


def both_traces(folder: Path) -> Iterator[None]:
    """The trace that tests make up, and the one that was recorded on a CPU."""
    made = traces.compressed(traces.text(traces.training(200)))
    (folder / "trace.json.gz").write_bytes(made)
    (folder / "trace_cpu.json.gz").write_bytes((ROOT / "tests/data/trace_cpu.json.gz").read_bytes())
    yield


def two_ranks(folder: Path) -> Iterator[None]:
    """Traces of two ranks, the second late to each of 20 all-reduces."""
    header = {key: value for key, value in traces.HEADER.items() if key != "distributedInfo"}
    for rank, late in enumerate((0, 400)):
        data = traces.text(traces.of_rank(late), header=header)
        (folder / f"trace.rank{rank}.json").write_bytes(data)
    yield


def recordings(folder: Path) -> Iterator[None]:
    """What nvidia-smi writes: of two GPUs, of two runs, and of eight GPUs without an index."""
    (folder / "smi.csv").write_text(monitors.query())
    later = monitors.query(header=False, start=300)
    (folder / "two.csv").write_text(monitors.query() + later)
    unnamed = monitors.query(10, 8, ("timestamp", "power.draw", "utilization.gpu"), interval=0.1)
    (folder / "eight.csv").write_text(unnamed)
    yield


def street_scenes(folder: Path) -> Iterator[None]:
    """A program of the zoo with its recorded baseline."""
    kept = recording.read("street_scenes")
    assert kept is not None
    Replay(kept, folder)
    yield


RTC = """\
import sys
import time

from gpudebug import profile_section

rtc = "--rtc.enabled=true" in sys.argv
for number in range(24):
    begun = time.perf_counter()
    with profile_section("get_actions.preprocessing"):
        time.sleep(0.002)
    with profile_section("get_actions.policy_inference"):
        time.sleep(0.1 if rtc else 0.02)
    print(f"Inference time: {time.perf_counter() - begun:.4f}s", flush=True)
"""


def rtc(folder: Path) -> Iterator[None]:
    """A policy that takes five times as long with real-time chunking."""
    (folder / "eval.py").write_text(RTC)
    yield


def rgb_report(folder: Path) -> Iterator[None]:
    """What the profiler of an RL pipeline saves of its rendering and its network."""
    keys = (
        "call_count",
        "total_time",
        "avg_time",
        "min_time",
        "max_time",
        "memory_peak_mb",
        "gpu_memory_peak_mb",
    )
    operations = {
        name: dict(zip(keys, (2000, 2 * ms, ms / 1e3, ms / 2e3, ms / 5e2, 1.5, 0.0), strict=True))
        for name, ms in (("env_rgb_observation_generation", 12.5), ("convlstm_forward_pass", 8.2))
    }
    saved = {"timestamp": 1755.5, "summary": {"total_operations": 2, "operations": operations}}
    (folder / "profiling_report.json").write_text(json.dumps(saved))
    yield


def policy_server(folder: Path) -> Iterator[None]:
    """A client of a policy's server, with four denoising steps."""
    files = {"client.py": "", "serve.py": ""}
    files["gpudebug.yaml"] = (
        "campaign: gr00t\nworkload: {command: 'python client.py --port={port}'}\n"
        "server: {command: 'python serve.py --port={port} --denoising-steps=4'}\nmetric: latency_p50\n"
    )
    make_repository(folder, files)
    yield


def ppo_log(folder: Path) -> Iterator[None]:
    """A log with a reward and a rate beside the losses, and the parts of a rollout."""
    line = "step={} SPS=2410 mean_reward={:.1f} policy_loss={:.4f} value_loss={:.4f}\n"
    lines = (line.format(512 * n, -20 + n / 2, 1 / n, 2 / n) for n in range(1, 61))
    rule = "=" * 60
    parts = "  Rollout Total: 15.23 ms\n    - Student Forward: 3.45 ms\n    - Teacher Total: 10.12 ms\n"
    parts += "        • GPU->CPU: 5.23 ms\n"
    profile = f"{rule}\nRollout Timing Profile (agent_step=5120)\n{rule}\n{parts}{rule}\n"
    (folder / "train.log").write_text("".join(lines) + profile)
    yield


STAGES: dict[str, Callable[[Path], Iterator[None]]] = {
    "empty folder": empty,
    "recorded campaign": recorded,
    "criteria": criteria,
    "own root cause": own_cause,
    "hugging face": hugging_face,
    "section reports": section_reports,
    "street scenes": street_scenes,
    "traces": both_traces,
    "ranks": two_ranks,
    "recordings": recordings,
    "rtc": rtc,
    "rgb report": rgb_report,
    "policy server": policy_server,
    "ppo log": ppo_log,
}


def performed(block: Block, folder: Path) -> str:
    """What the commands of a block print today, each behind its line."""
    stage = STAGES[block.mark.removeprefix("captured: ")](folder)
    printed, status = "", 0
    for line in block.text.splitlines():
        if not line.startswith("$ "):
            continue
        next(stage, None)
        words = shlex.split(line[2:], comments=True)
        if words[0] == "gpudebug":
            done = command(folder, *words[1:])
            # On a slow host `verify` says what it is at.
            told = (line for line in done.err.splitlines(True) if "checking runs/" not in line)
            status, out, err = done.status, done.out, "".join(told)
        else:
            script = f"(exit {status}); {line[2:]}"
            shell = subprocess.run(
                ["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=True
            )
            status, out, err = shell.returncode, shell.stdout, shell.stderr
        printed += f"{line}\n{out}{err}"
    return printed.replace(f"{folder}/", "")


def matches(shown: str, printed: str) -> bool:
    """Whether what a document shows is what was printed, but for what `…` leaves out."""
    parts = [re.escape(part) for part in re.split(r"(?m)^…(?:\n|$)", masked(shown) + "\n")]
    whole = "(?:.*\n)*?".join(part.replace("…", ".*") for part in parts)
    return re.fullmatch(whole + "\n*", masked(printed) + "\n") is not None


BLOCKS = [block for page in pages() for block in page.blocks if block.mark.startswith("captured: ")]
EXAMPLE = next(block for block in BLOCKS if block.mark == "captured: python above")


@pytest.mark.parametrize("block", [b for b in BLOCKS if b is not EXAMPLE], ids=lambda block: block.place)
def test_an_output_is_what_is_printed_today(block: Block, tmp_path: Path) -> None:
    printed = performed(block, tmp_path)
    assert matches(block.text, printed), f"{block.place}\n{printed}"


def test_the_example_of_sections_prints_what_is_shown(tmp_path: Path) -> None:
    above = next(page for page in pages() if page.path == EXAMPLE.page).blocks
    code = above[above.index(EXAMPLE) - 1]
    assert code.language == "python"
    printed = subprocess.check_output([sys.executable, "-c", OWN_TIME + code.text], cwd=tmp_path, text=True)
    assert matches(f"{EXAMPLE.text}\n…", printed), printed


def test_another_word_is_found_and_another_figure_is_not() -> None:
    assert matches("took 3 s\n…\nend 1.5x", "took 2 min 3 s\nmore\nend 2.25x\n")
    assert not matches("took 3 s", "needed 3 s\n")
    assert not matches("one\ntwo", "one\nhalf\ntwo\n")
