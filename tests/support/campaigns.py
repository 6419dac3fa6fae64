"""Campaigns for tests: real git repositories in temporary folders, small training programs, recordings.

Most stories run on `device: replay:FOLDER@SPEEDx`: the machinery is real (warden, sampler, log, verdict),
only the training program is a recording that `record` made, played fast.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import forkserver

from gpudebug.edges.store.root import private_folder

GPUDEBUG = (sys.executable, "-m", "gpudebug")
TRAINER = Path(__file__).with_name("trainer.py")
PROGRESS = "progress/test.md"
SPEED = 200
RECORDED_S = 40.0
"""How long a recording is: its window is longer than the 30 s from which a run counts in full."""
# Variables of the machine that runs the tests must not decide what they see.
_FOREIGN = (
    "GPUDEBUG_",
    "GIT_",
    "CUDA_VISIBLE_DEVICES",
    "NO_COLOR",
    "FORCE_COLOR",
    "COLUMNS",
    "PYTHONSTARTUP",
    "CLAUDE_CODE_SESSION_ID",
    "CODEX_THREAD_ID",
    "AMP_CURRENT_THREAD_ID",
    "OPENCODE_SESSION_ID",
)

_CONFIG = """\
campaign: test
goal: Keep the device busy.
workload:
  command: {command}
  timeout: 60s
protocol: {{max_runs: {max_runs}}}
device: {device}
"""


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as exactly one JSON document."""
        return json.loads(self.out)

    def expect(self, status: int) -> Done:
        assert self.status == status, f"status {self.status}, not {status}\n{self.out}\n{self.err}"
        return self


def environment(changes: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """This process's environment without what would change gpudebug's or git's behaviour."""
    ours = ("GPUDEBUG_LOCK_DIR",)
    env = {k: v for k, v in os.environ.items() if k in ours or not k.startswith(_FOREIGN)}
    env["GIT_CONFIG_GLOBAL"] = env["GIT_CONFIG_SYSTEM"] = os.devnull
    # What gpudebug keeps of runs is not kept among the caller's own.
    env["XDG_CACHE_HOME"] = f"{tempfile.gettempdir()}/gpudebug-tests-cache-{os.getuid()}"
    for name, value in (changes or {}).items():
        env.pop(name, None)
        if value is not None:
            env[name] = value
    return env


def gpudebug(
    folder: Path | str,
    *words: str,
    env: Mapping[str, str | None] | None = None,
    timeout: float = 120,
    **more: Any,
) -> Done:
    """`gpudebug WORDS` in `folder`, in a process of its own.

    One that a shell would start where `more` is asked of it, or variables that an interpreter starts with.
    """
    whole = environment(env)
    if not more and forkserver.same_start(whole):
        status, out, err = forkserver.server().run(words, folder, whole, timeout)
        return Done(status, out.decode(), err.decode())
    done = subprocess.run(
        [*GPUDEBUG, *words],
        cwd=folder,
        env=whole,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=timeout,
        check=False,
        **more,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *identity, *words],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def commit_all(folder: Path, message: str = "Change") -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", message)


def make_repository(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """A git repository with these files in its first commit."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit_all(folder, "Start")
    return folder


def _falling(share: float) -> float:
    return 2.0 - 1.5 * share


def record(
    folder: Path,
    name: str,
    *,
    util: float = 20.0,
    rate: float = 10.0,
    seconds: float = RECORDED_S,
    losses: Callable[[float], float | str] = _falling,
    log: str | Sequence[str] | None = None,
    exit_status: int | None = 0,
    signal_: int | None = None,
    seed: int = 0,
    lines: int = 60,
    uuid: str = "CPU",
    read_mb_s: float = 0.0,
    gpus: Sequence[Mapping[str, Any]] = (),
) -> Path:
    """A recorded run `NNNN-label` in `folder`: `rate` steps/s for `seconds`, the device `util` % busy.

    `losses` gives the loss at a share of the run between 0 and 1; `log` replaces the whole output: a text
    that comes at once, or texts that come in turn. `gpus` are several devices in place of the one: `util` of
    each, further columns by their names, and `info`, what run.json has of it.
    """
    noise = random.Random(f"{name}{seed}")
    run = folder / name
    run.mkdir(parents=True)
    texts = [log] if isinstance(log, str) else log or loss_lines(rate, seconds, losses, lines)
    header = (
        "elapsed,gpu_util,mem_util,mem_used_mb,mem_total_mb,gpu_index,gpu_uuid,power_w,sm_clock_mhz,"
        "mem_clock_mhz,temperature_c,throttle,new_samples,cpu_util,rss_mb,read_mb_s,write_mb_s,procs,log_bytes\n"
    )
    rows = []
    for tick in range(1, round(seconds / 0.2) + 1):
        elapsed = tick * 0.2
        shown = int(len(texts) * min(1.0, elapsed / seconds) + 1e-9)
        size = sum(len(t.encode()) for t in texts[:shown])
        for index, gpu in enumerate(gpus or ({"util": util},)):
            busy = min(100.0, max(0.0, gpu["util"] + noise.gauss(0, 0.4)))
            name_of = f"GPU-{index}" if gpus else uuid
            told = ",".join(str(gpu.get(column, "")) for column in _ELECTRIC)
            rows.append(
                f"{elapsed:.1f},{busy:.2f},,100,,{index},{name_of},{told},1,,100,{read_mb_s},,1,{size}\n"
            )
    (run / "samples.csv").write_text(header + "".join(rows))
    (run / "train.log").write_text("".join(texts))
    device = {"index": 0, "uuid": uuid, "name": "recorded", "kind": "replay"}
    devices = [
        {**device, "index": index, "uuid": f"GPU-{index}", **gpu.get("info", {})}
        for index, gpu in enumerate(gpus)
    ]
    facts = {
        "devices": devices or [device],
        "duration_s": seconds,
        "exit_status": exit_status,
        "signal": signal_,
    }
    (run / "run.json").write_text(json.dumps(facts))
    return run


_ELECTRIC = ("power_w", "sm_clock_mhz", "mem_clock_mhz", "temperature_c", "throttle")


def loss_lines(
    rate: float,
    seconds: float = RECORDED_S,
    losses: Callable[[float], float | str] = _falling,
    lines: int = 60,
) -> list[str]:
    """The output of a training of `rate` steps/s, a text a line."""
    return [_line(rate, seconds, losses, (i + 1) / lines) for i in range(lines)]


def _line(rate: float, seconds: float, losses: Callable[[float], float | str], share: float) -> str:
    steps = max(1, round(rate * seconds))
    loss = losses(share)
    return (
        f"step {round(steps * share)}/{steps} loss {loss if isinstance(loss, str) else format(loss, '.4f')}\n"
    )


def _heed_interrupts() -> None:
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Campaign:
    """A repository with a campaign in it. `run` starts the real command there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def config(self) -> Path:
        return self.folder / "gpudebug.yaml"

    @property
    def private(self) -> Path:
        """Where what is believed besides the runs lies."""
        return private_folder(self.folder.resolve())

    @property
    def progress(self) -> Path:
        return self.folder / PROGRESS

    @property
    def text(self) -> str:
        return self.progress.read_text(encoding="utf-8")

    def run(self, *words: str, **more: Any) -> Done:
        return gpudebug(self.folder, *words, **more)

    def json(self, *words: str, status: int = 0, **more: Any) -> Any:
        return self.run(*words, "--json", **more).expect(status).json

    def start(self, *words: str, **more: Any) -> subprocess.Popen[bytes]:
        """The command in the background, in a session of its own."""
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("stderr", subprocess.PIPE)
        more.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen(
            [*GPUDEBUG, *words],
            cwd=self.folder,
            env=environment(more.pop("env", None)),
            start_new_session=True,
            # Tests may run in the background of a shell or under nohup: children inherit what is ignored.
            preexec_fn=_heed_interrupts,  # noqa: PLW1509
            **more,
        )

    def pin(self) -> Campaign:
        """Pin the settings as a person does: sessions measure under no others."""
        from gpudebug.engine.campaign.settings import settings

        settings(self.folder, accept=True)
        return self

    def propose(self, change: str, title: str = "The loader waits") -> Any:
        return self.json("propose", "--title", title, "--method", "Try it.", *shlex.split(change))

    def runs(self) -> list[str]:
        folder = self.folder / "runs"
        return sorted(p.name for p in folder.glob("[0-9]*") if p.is_dir())

    def statuses(self) -> list[str]:
        return [h["status"] for h in self.json("status")["hypotheses"]]

    def add(self, text: str) -> None:
        """Append to the progress file, as a person would."""
        with self.progress.open("a", encoding="utf-8") as f:
            f.write(text)


def make_campaign(
    folder: Path,
    *,
    command: str | None = None,
    device: str = "cpu:1",
    config: str = "",
    progress: str | bytes | None = None,
    max_runs: int = 3,
    files: Mapping[str, str | bytes] | None = None,
) -> Campaign:
    """A committed repository with a training program, a config (`config` is appended) and a progress file."""
    command = command or f"{shlex.quote(sys.executable)} train.py --lr=0.1 --work=0.2"
    settings = _CONFIG.format(command=json.dumps(command), max_runs=max_runs, device=device)
    content: dict[str, str | bytes] = {
        "train.py": TRAINER.read_bytes(),
        "gpudebug.yaml": settings + config,
        ".gitignore": "runs/\n",
        **(files or {}),
    }
    if progress is not None:
        content[PROGRESS] = progress
    return Campaign(make_repository(folder, content))


def make_replay_campaign(folder: Path, recordings: Path, speed: float = SPEED, **more: Any) -> Campaign:
    """A campaign whose runs are those in `recordings`."""
    return make_campaign(folder, device=json.dumps(f"replay:{recordings}@{speed:g}x"), **more)


def copied(campaign: Campaign, folder: Path) -> Campaign:
    """The same campaign, with all that was measured in it, somewhere else."""
    shutil.copytree(campaign.folder, folder, symlinks=True)
    return Campaign(folder)


def contents(folder: Path) -> dict[str, tuple[int, str]]:
    """Every path below `folder`: mode, and the content's digest, the link's target or the kind of thing.

    Of .git what a user would notice: HEAD, refs, index and configuration; not its scratch files.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if relative.parts[0] == ".git" and not _matters(relative):
            continue
        found[str(relative)] = (path.lstat().st_mode, _content(path))
    return found


def _matters(relative: Path) -> bool:
    return len(relative.parts) > 1 and relative.parts[1] in ("HEAD", "index", "refs", "config", "logs")


def _content(path: Path) -> str:
    if path.is_symlink():
        return f"-> {os.readlink(path)}"
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return "folder" if path.is_dir() else "special"


def wait_for(condition: Callable[[], object], within: float = 30.0) -> None:
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"not so within {within} s"
        time.sleep(0.01)


@contextlib.contextmanager
def killed_at_the_end(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Whatever happens in the block, the process is gone after it."""
    try:
        yield process
    finally:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=30)
