"""Campaigns that a seed draws: a program, its settings, and what a person does, one act after another."""

from __future__ import annotations

import contextlib
import json
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tests.support.campaigns import Done, killed_at_the_end, make_campaign
from tests.support.patches import write_patch
from tests.support.places import SUPPORT

PROGRAM = SUPPORT / "drawn_train.py"
PRINTED = (
    "rate",
    "samples",
    "samples_rate",
    "tokens",
    "timesteps",
    "reward",
    "latency",
    "step_time",
    "score",
)
METRICS = (
    *("gpu_util", "steps_per_s", "steps_per_s", "samples_per_s", "work_per_s", "step_time_p50"),
    *("latency_p50", "log:score"),
)
UNITS = ("auto", "auto", "samples", "tokens", "environment steps", "optimizer steps", "log:score")
NEEDED = {
    "samples_per_s": "samples_rate",
    "latency_p50": "latency",
    "log:score": "score",
    "samples": "samples",
    "tokens": "tokens",
    "environment steps": "timesteps",
}
LEARNING = ("auto", "loss", "reward", {"metric": "log:score", "direction": "higher"})
PATIENCE_S = 400
DEFECT = 3
"""Exit status of a command that failed by itself."""


@dataclass(frozen=True)
class Drawn:
    """What a campaign is: `settings` of gpudebug.yaml, `flags` of the program, and the `acts` upon it."""

    settings: Mapping[str, object]
    flags: Mapping[str, object]
    acts: tuple[str, ...]

    @property
    def command(self) -> str:
        words = [
            f"--{name}={value}" if value is not True else f"--{name}" for name, value in self.flags.items()
        ]
        return shlex.join([sys.executable, "train.py", *words])

    def written(self) -> str:
        """gpudebug.yaml: JSON is YAML."""
        workload = {"command": self.command, "timeout": "60s", "env": {"API_TOKEN": "k3y-0123456789"}}
        whole = {"campaign": "test", "goal": "Keep the device busy.", "workload": workload, **self.settings}
        return json.dumps(whole, indent=1) + "\n"


def draw(seed: int) -> Drawn:
    """Return the campaign of a seed."""
    rng = random.Random(seed)
    metric = rng.choice(METRICS)
    unit = rng.choice(UNITS)
    # Without its figure a campaign ends at its baseline.
    needed = {NEEDED.get(metric), NEEDED.get(unit) if metric == "work_per_s" else None} - {None}
    shown = {"loss", *rng.sample(PRINTED, rng.randint(0, 3)), *needed}
    # Windows of less than 1 s, of less than 5 s, and longer ones.
    steps, pace = rng.choices(((30, 0.03), (40, 0.06), (80, 0.03), (130, 0.06)), (1, 3, 3, 1))[0]
    flags: dict[str, object] = {
        "steps": steps,
        "step-time": pace,
        "every": rng.choice((1, 1, 5)),
        "prints": ",".join(sorted(shown)),
    }
    flags |= {"batch_size": 8} if rng.random() < 0.5 else {}
    flags |= {"tell": True} if rng.random() < 0.3 else {}
    flags |= {"cache": True} if rng.random() < 0.2 else {}
    flags |= {"torch": True} if rng.random() < 0.15 else {}
    points = metric == "gpu_util"
    criteria: dict[str, object] = {
        "success": rng.choice((5, 20) if points else ("1.05x", "1.3x")),
        "failure": rng.choice((0, 4) if points else ("1.0x", "1.02x")),
        "loss": rng.choice(("converging", "any")),
        "learning": rng.choice(LEARNING),
        "throughput": rng.choice(("better", "not_worse", "any")),
    }
    settings: dict[str, object] = {
        "metric": metric,
        "direction": "lower" if metric.startswith(("step_time", "latency")) else "higher",
        "work": unit,
        "criteria": criteria,
        "log": {"score": r"score=(?P<value>[0-9.]+)"},
        "protocol": {
            "max_runs": rng.choice((2, 2, 3)),
            "run_for": rng.choice(("auto", "end", "5s")),
            "warmup": rng.choice(("auto", "auto", "0.5s")),
            "interval": rng.choice(("0.1s", "0.2s")),
        },
        "device": rng.choice(("cpu", "cpu:1")),
        "probe": rng.random() < 0.5,
        "allow_env": ["KNOB"],
    }
    acts = [rng.choice(PROPOSED), *rng.choices(ACTS, WEIGHTS, k=rng.randint(1, 2))]
    return Drawn(settings, flags, tuple(acts))


PROPOSED = (
    "faster",
    "faster",
    "slower",
    "same",
    "variable",
    "batch",
    "longer",
    "patch",
    "crash",
    "nan",
    "sweep",
)
_MORE = {
    **dict.fromkeys(PROPOSED, 1),
    "accept": 6,
    "lengthen": 3,
    "another metric": 2,
    "another unit": 2,
    "baseline": 2,
    "killed": 3,
    "interrupted": 2,
    "resumed": 3,
    "again": 3,
    "more": 2,
    "aa": 1,
}
ACTS, WEIGHTS = tuple(_MORE), tuple(_MORE.values())


class Story:
    """A drawn campaign under way. `said` is what was done, with how each command ended."""

    def __init__(self, folder: Path, drawn: Drawn) -> None:
        self.first = self.drawn = drawn
        self.said: list[str] = []
        ignored = "runs/\nsnapshot\ncache.bin\n"
        files = {"train.py": PROGRAM.read_bytes(), "gpudebug.yaml": drawn.written(), ".gitignore": ignored}
        self.campaign = make_campaign(folder, files=files)

    def tell(self) -> None:
        """Record the baseline, then do what was drawn, and accept; the campaign is sound after each act."""
        self._next()
        for act in self.drawn.acts:
            self._do(act)
        self._accept(go_on=False)

    def _run(self, *words: str, checked: bool = True) -> Done:
        done = self.campaign.run(*words, timeout=PATIENCE_S)
        self.said.append(f"{shlex.join(words)} -> {done.status} {(done.err or done.out).strip()[-300:]}")
        assert done.status != DEFECT, done.err
        if checked:
            self._check()
        return done

    def _check(self) -> None:
        found = self.campaign.run("verify", "--json")
        assert found.status in (0, 1), found.err
        answer = found.json
        # Terms that a person made stricter since.
        open_ = [text for text in answer.get("unchecked", ()) if "weaker terms" not in text]
        assert (answer.get("problems"), open_) == ([], []), answer
        shown = self.campaign.json("status")
        rows = [b for b in shown["baselines"].values() if b is not None] + shown["hypotheses"]
        assert all(row["verified"] is not False for row in rows), rows

    def _next(self) -> None:
        """Until it asks for a hypothesis, or cannot go on."""
        for _ in range(6):
            done = self._run("next")
            if done.status or "Next: gpudebug next" not in done.out:
                return

    def _do(self, act: str) -> None:
        self.said.append(f"[{act}]")
        if act in PROPOSED:
            self._propose(act)
            self._next()
        else:
            getattr(self, f"_{act.replace(' ', '_')}")()

    def _propose(self, act: str) -> None:
        pace = float(str(self.drawn.flags["step-time"]))
        steps = int(str(self.drawn.flags["steps"]))
        own = len(self.said)
        change = {
            "faster": f"--set --step-time={pace / (2 + own / 100):g}",
            "slower": f"--set --step-time={pace * (1.5 + own / 100):g}",
            "same": f"--set --work=0.{20 + own}",
            "variable": f"--env KNOB={own}",
            "batch": f"--set --batch_size={16 + own}",
            "longer": f"--set --steps={steps * 2 + own}",
            "crash": f"--set --crash={3 + own}",
            "nan": f"--set --nan={3 + own}",
            "sweep": f"--sweep --step-time={pace / (2 + own / 50):g},{pace * 0.9:g}",
        }
        words = shlex.split(change[act]) if act != "patch" else self._patched()
        titled = ("--title", "The loader waits", "--method", "Try it.") if act != "sweep" else ()
        self._run("propose", *titled, *words, checked=False)

    def _patched(self) -> list[str]:
        name = f"hypotheses/patches/p{len(self.said)}.patch"
        text = PROGRAM.read_text("utf-8").replace("FASTER = 1.0", f"FASTER = 2.{len(self.said)}")
        write_patch(self.campaign, name, {"train.py": text})
        return ["--patch", name]

    def _hypotheses(self, *statuses: str) -> list[int]:
        listed = self.campaign.json("status")["hypotheses"]
        return [h["number"] for h in listed if h["status"] in statuses and h["accepted"] is None]

    def _accept(self, *, go_on: bool = True) -> None:
        for number in self._hypotheses("VALIDATED")[:1]:
            edited = self.drawn is not self.first
            done = self._run("accept", str(number), *(["--terms-differ"] if edited else []))
            assert done.status == 0, done.err
            if go_on:
                self._next()

    def _edit(self, drawn: Drawn) -> None:
        self.drawn = drawn
        self.campaign.config.write_text(drawn.written())
        self._run("settings", "--accept")

    def _lengthen(self) -> None:
        longer = int(str(self.drawn.flags["steps"])) * 3
        self._edit(replace(self.drawn, flags={**self.drawn.flags, "steps": longer}))
        self._next()

    def _another_metric(self) -> None:
        other = "gpu_util" if self.drawn.settings["metric"] != "gpu_util" else "steps_per_s"
        criteria = dict(self.drawn.settings["criteria"])  # type: ignore[call-overload]
        criteria |= (
            {"success": 10, "failure": 2} if other == "gpu_util" else {"success": "1.2x", "failure": "1.05x"}
        )
        settings = {**self.drawn.settings, "metric": other, "direction": "higher", "criteria": criteria}
        self._edit(replace(self.drawn, settings=settings))
        self._propose("faster")
        self._next()

    def _another_unit(self) -> None:
        other = "samples" if self.drawn.settings["work"] == "auto" else "auto"
        self._edit(replace(self.drawn, settings={**self.drawn.settings, "work": other}))
        self._propose("faster")
        self._next()

    def _baseline(self) -> None:
        self._run("baseline")

    def _aa(self) -> None:
        self._run("baseline", "--aa")

    def _killed(self) -> None:
        self._cut_off(signal.SIGKILL)

    def _interrupted(self) -> None:
        self._cut_off(signal.SIGINT)

    def _cut_off(self, number: signal.Signals) -> None:
        """End `next` while its run is under way; the one after it goes on."""
        self._propose("faster")
        before = self.campaign.runs()
        with killed_at_the_end(self.campaign.start("next", stdout=subprocess.DEVNULL)) as process:
            deadline = time.monotonic() + 20
            while process.poll() is None and time.monotonic() < deadline:
                new = [name for name in self.campaign.runs() if name not in before]
                log = self.campaign.folder / "runs" / (new[-1] if new else "none") / "train.log"
                if len(new) > len(self.said) % 2 and log.exists() and log.stat().st_size:
                    break
                time.sleep(0.05)
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)
            process.wait(30)
        self.said.append(f"ended by {number.name}")
        self._next()

    def _resumed(self) -> None:
        """A run finds the snapshot of another, and is left out."""
        (self.campaign.folder / "snapshot").write_text("")
        self._propose("same")
        self._next()

    def _again(self) -> None:
        for number in self._hypotheses("VALIDATED", "REJECTED", "INCONCLUSIVE", "INVALID")[:1]:
            self._run("reopen", str(number), "--because", f"I want it measured again, {len(self.said)}")
            self._next()

    def _more(self) -> None:
        for number in self._hypotheses("INCONCLUSIVE")[:1]:
            self._run("next", "--more", str(number))
