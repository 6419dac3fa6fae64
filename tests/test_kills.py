"""`kill -9` of gpudebug, of its warden and of its sampler at many moments of a campaign.

Nothing is left 2 s later, the progress file is whole, the next `next` recovers, no result is lost or doubled.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from tests.support.campaigns import Campaign, make_replay_campaign, record

from gpudebug.core.progress import parse
from gpudebug.core.samples.table import read_samples
from gpudebug.core.words import VERDICTS, Status

RUN_S = 0.5
RECORDED_S = 12.0


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    recordings = tmp_path / "recordings"
    record(recordings, "0001-baseline-workload", util=20, rate=10, seconds=RECORDED_S)
    for number in range(1, 301):
        good = number % 2
        record(
            recordings,
            f"{number + 1:04d}-h{number}",
            util=70 if good else 20,
            rate=35 if good else 10,
            seconds=RECORDED_S,
            seed=number,
        )
    return make_replay_campaign(
        tmp_path / "repository",
        recordings,
        RECORDED_S / RUN_S,
        config="budget: {hypotheses: 1000, device_time: 1000h}\ntarget: 100\n",
    )


def _add_hypotheses(campaign: Campaign, count: int) -> None:
    entries = [
        f"### Hypothesis {n}: Step size {n}\n- **Intervention**: --set --lr={n / 1000 + 1}\n"
        f"- **Status**: UNTESTED\n\n"
        for n in range(1, count + 1)
    ]
    campaign.progress.parent.mkdir(exist_ok=True)
    campaign.progress.write_text("## Hypotheses\n\n" + "".join(entries), encoding="utf-8")


def _alive(campaign: Campaign) -> list[psutil.Process]:
    """Processes that a run of this campaign started: its mark is in their environment or command."""
    mark = str(campaign.folder)
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if process.status() == psutil.STATUS_ZOMBIE or process.pid == os.getpid():
                continue
            run = process.environ().get("GPUDEBUG_RUN", "")
            if run.startswith(mark) or process.cwd().startswith(mark):
                found.append(process)
    return found


def _victim(root: subprocess.Popen[bytes], word: str) -> int | None:
    """The pid of gpudebug's descendant whose command line holds `word`, waited for on a busy machine.

    None where gpudebug has ended.
    """
    while root.poll() is None:
        with contextlib.suppress(psutil.NoSuchProcess):
            for process in psutil.Process(root.pid).children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    if any(word in part for part in process.cmdline()):
                        return process.pid
        time.sleep(0.02)
    return None


def _kill_once(campaign: Campaign, whom: str, moment: float) -> bool:
    """Start a cycle, kill one of its processes at `moment`; False where it was not there to be killed."""
    process = campaign.start("next")
    time.sleep(moment)
    pid = process.pid if whom == "gpudebug" else _victim(process, whom)
    killed = pid is not None and process.poll() is None
    if killed:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if whom == "gpudebug":
        process.communicate(timeout=60)
    else:
        _, err = process.communicate(timeout=60)
        # 5: killed in its last cycle, the campaign had been decided already.
        assert b"Traceback" not in err and process.returncode in (0, 1, 5), err
    deadline = time.monotonic() + 2
    while (left := _alive(campaign)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left, [p.cmdline() for p in left]
    parse(campaign.progress.read_bytes(), "progress.md")
    return killed


def _finish(campaign: Campaign, cycles: int) -> None:
    for _ in range(cycles):
        done = campaign.run("next", "--json")
        if done.status == 5:
            assert done.json["action"] == "propose"
            return
        done.expect(0)
    raise AssertionError("the campaign did not come to its end")


def _check(campaign: Campaign, count: int, whom: str) -> None:
    """Every hypothesis has one result, every verdict in runs/ stands in the file once, all is sealed.

    A sampler that was killed costs samples, so that too few may be left for a verdict either way.
    """
    document = parse(campaign.progress.read_bytes(), "progress.md")
    assert len(document.hypotheses) == count
    listed = [name for h in document.hypotheses for name in h.runs]
    assert len(listed) == len(set(listed))
    for h in document.hypotheses:
        assert h.status in VERDICTS and h.status is not Status.INVALID
        wanted = {Status.VALIDATED if h.number % 2 else Status.REJECTED}
        assert h.status in wanted | ({Status.INCONCLUSIVE} if whom == "sampler" else set()), h.result
        assert campaign.text.count(f"### Hypothesis {h.number}:") == 1
    for name in campaign.runs():
        folder = campaign.folder / "runs" / name
        if not (folder / "run.json").exists():
            # Killed before anything was launched: the folder is none of a run.
            continue
        assert (folder / "manifest.json").exists()
        if (folder / "verdict.json").exists():
            assert name in listed
        if (csv := folder / "samples.csv").exists() and csv.stat().st_size:
            assert read_samples(csv.read_text().splitlines(keepends=True), str(csv)).unreadable <= 1


def _story(campaign: Campaign, whom: str, moments: int) -> None:
    # A cycle whose gpudebug is killed seldom ends its hypothesis; with another victim it does.
    count = max(3, moments // 2) if whom == "gpudebug" else moments
    count += 1
    _add_hypotheses(campaign, count)
    campaign.run("next", "--json").expect(0)
    began = time.monotonic()
    # A trial, which is what the kills are meant to meet: a baseline takes longer.
    assert campaign.run("next", "--json").expect(0).json["action"] == "tested"
    cycle = time.monotonic() - began
    rng = random.Random(f"{whom}{moments}")
    # One in each part of the cycle, so that few of them lie no closer than many.
    drawn = [cycle * (part + rng.random()) / moments for part in range(moments)]
    rng.shuffle(drawn)
    hits = sum(_kill_once(campaign, whom, moment) for moment in drawn)
    assert hits >= moments // 5
    _finish(campaign, 4 * count + 4)
    _check(campaign, count, whom)


@pytest.mark.slow
@pytest.mark.parametrize(("whom", "moments"), [("gpudebug", 5), ("warden", 3), ("sampler", 3)])
def test_a_campaign_survives_kills(campaign: Campaign, whom: str, moments: int) -> None:
    _story(campaign, whom, moments)


@pytest.mark.heavy
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("whom", "moments"), [("gpudebug", 200), ("warden", 200), ("sampler", 50)])
def test_a_campaign_survives_kills_at_many_moments(campaign: Campaign, whom: str, moments: int) -> None:
    # Few runs a trial: the moments then meet as many trials as there is time for.
    text = campaign.config.read_text()
    campaign.config.write_text(text.replace("max_runs: 3", "max_runs: 2"))
    _story(campaign, whom, moments)
