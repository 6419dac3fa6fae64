"""A stand-in for `lerobot-train` (LeRobot 0.4): its flags, its log, its waits; standard library only.

It parses flags as strictly as the real program, refuses an existing output folder, loads batches in worker
processes that wait for a video store, and fits a small linear policy, so that the loss is a real one. What
the accelerator would compute is a fixed amount of CPU time a step in this process. `act_relative_rtc` asks
for two frames where `act` asks for one, and the older one needs a seek: its batches take four times as long.

LEROBOT_STANDIN_SPEED divides every wait and every amount of work.
"""

from __future__ import annotations

import json
import logging
import math
import os
import pprint
import random
import sys
import time
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import Any

SPEED = float(os.environ.get("LEROBOT_STANDIN_SPEED", "1"))
STARTUP_S = 1.5 / SPEED
CHECKPOINT_S = 0.4 / SPEED
WORK_S = 0.02 / SPEED
LOAD_S = {"act": 0.06 / SPEED, "act_relative_rtc": 0.242 / SPEED}
DECODE_S = {"torchcodec": 0.001 / SPEED, "pyav": 0.002 / SPEED, "video_reader": 0.002 / SPEED}
FRAMES = 600
STATE, ACTION = 6, 6
# The real optimiser moves weights of unit scale; these are fitted in 200 steps.
LR_SCALE = 3000.0

Options = dict[str, Any]
Batch = list[tuple[list[float], list[float]]]


def backend(text: str) -> str:
    if text not in DECODE_S:
        raise ValueError(f"unsupported video backend: {text}")
    return text


def boolean(text: str) -> bool:
    if text not in ("true", "false", "True", "False"):
        raise ValueError(f"Couldn't parse {text!r} into a bool")
    return text in ("true", "True")


COMMON: dict[str, tuple[Callable[[str], Any], Any]] = {
    "dataset.repo_id": (str, None),
    "dataset.root": (str, None),
    "dataset.episodes": (json.loads, None),
    "dataset.streaming": (boolean, False),
    "dataset.video_backend": (backend, "torchcodec"),
    "dataset.image_transforms.enable": (boolean, False),
    "batch_size": (int, 8),
    "eval_freq": (int, 20000),
    "job_name": (str, None),
    "log_freq": (int, 200),
    "num_workers": (int, 4),
    "output_dir": (str, None),
    "resume": (boolean, False),
    "save_checkpoint": (boolean, True),
    "save_freq": (int, 20000),
    "seed": (int, 1000),
    "steps": (int, 100000),
    "wandb.enable": (boolean, False),
    "policy.type": (str, None),
    "policy.chunk_size": (int, 100),
    "policy.device": (str, "cuda"),
    "policy.input_features": (json.loads, {}),
    "policy.n_action_steps": (int, 100),
    "policy.n_decoder_layers": (int, 1),
    "policy.optimizer_lr": (float, 1e-5),
    "policy.optimizer_lr_backbone": (float, 1e-5),
    "policy.pre_norm": (boolean, False),
    "policy.pretrained_backbone_weights": (str, "ResNet18_Weights.IMAGENET1K_V1"),
    "policy.push_to_hub": (boolean, True),
    "policy.repo_id": (str, None),
    "policy.use_amp": (boolean, False),
    "policy.use_vae": (boolean, True),
    "policy.vision_backbone": (str, "resnet18"),
}
RELATIVE: dict[str, tuple[Callable[[str], Any], Any]] = {
    "policy.downscale_img_square": (int, None),
    "policy.obs_state_delta_frames": (int, 1),
    "policy.use_rtc": (boolean, False),
}
POLICIES = {"act": COMMON, "act_relative_rtc": COMMON | RELATIVE}


def refuse(message: str) -> SystemExit:
    print(
        f"usage: lerobot-train [-h] [--config_path str] ...\nlerobot-train: error: {message}", file=sys.stderr
    )
    return SystemExit(2)


def split_flags(argv: list[str]) -> dict[str, str]:
    """`--a=b` and `--a b`, each flag's last value."""
    flags: dict[str, str] = {}
    words = iter(argv)
    for word in words:
        if not word.startswith("--"):
            raise refuse(f"unrecognized arguments: {word}")
        name, equals, value = word[2:].partition("=")
        flags[name] = value if equals else next(words, "")
    return flags


def parse(argv: list[str]) -> Options:
    """Every option of the chosen policy with its value; a flag or value that it lacks ends the program."""
    flags = split_flags(argv)
    known = POLICIES.get(flags.get("policy.type", ""))
    if known is None:
        raise refuse(f"argument --policy.type: invalid choice: {flags.get('policy.type')!r}")
    unknown = [f"--{name}={value}" for name, value in flags.items() if name not in known]
    if unknown:
        raise refuse(f"unrecognized arguments: {' '.join(unknown)}")
    options = {name: default for name, (_, default) in known.items()}
    for name, text in flags.items():
        try:
            options[name] = known[name][0](text)
        except ValueError as error:
            raise refuse(f"argument --{name}: {error}") from error
    return options


def validate(options: Options) -> None:
    if options["dataset.repo_id"] is None:
        raise refuse("the following arguments are required: --dataset.repo_id")
    if options["policy.push_to_hub"] and not options["policy.repo_id"]:
        raise ValueError("'policy.repo_id' argument missing. Please specify it to push the model to the hub.")
    steps, chunk = options["policy.n_action_steps"], options["policy.chunk_size"]
    if steps > chunk:
        raise ValueError(f"n_action_steps ({steps}) must not be larger than chunk_size ({chunk}).")
    backbone = options["policy.vision_backbone"]
    if not backbone.startswith("resnet"):
        raise ValueError(f"vision_backbone must be one of the ResNet variants, got {backbone}.")
    folder = Path(options["output_dir"] or f"outputs/train/{time.strftime('%Y-%m-%d/%H-%M-%S')}_act")
    options["output_dir"] = str(folder)
    if folder.is_dir() and not options["resume"]:
        raise FileExistsError(
            f"Output directory {folder} already exists and resume is {options['resume']}."
            " Please choose another output directory."
        )


def nested(options: Options) -> Options:
    """`{'a.b': 1}` as `{'a': {'b': 1}}`."""
    tree: Options = {}
    for name, value in options.items():
        *parents, leaf = name.split(".")
        branch = tree
        for parent in parents:
            branch = branch.setdefault(parent, {})
        branch[leaf] = value
    return tree


def load_batch(index: int, size: int, wait: float, decode: float) -> Batch:
    """One batch after the wait for its frames: states and the actions that a hidden policy took on them."""
    time.sleep(wait)
    work(decode)
    rng = random.Random(index)
    states = [[rng.gauss(0, 1) for _ in range(STATE)] for _ in range(size)]
    return [
        (state, [3 * state[i] - 2 * state[i - 1] + rng.gauss(0, 0.3) for i in range(ACTION)])
        for state in states
    ]


def batches(options: Options) -> Generator[Batch, None, None]:
    """Batches in order, two of each worker under way; without workers each is loaded when it is asked for."""
    size, workers = options["batch_size"], options["num_workers"]
    wait = LOAD_S[options["policy.type"]] * size / 8
    decode = DECODE_S[options["dataset.video_backend"]] * size / 8
    if workers == 0:
        yield from (load_batch(index, size, wait, decode) for index in count())
    with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
        pending: deque[Future[Batch]] = deque()
        try:
            for index in count():
                pending.append(pool.submit(load_batch, index, size, wait, decode))
                if len(pending) >= 2 * workers:
                    yield pending.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


class Policy:
    """Actions as a linear function of the state."""

    def __init__(self, lr: float) -> None:
        self.lr = lr
        self.weights = [[0.0] * STATE for _ in range(ACTION)]

    def step(self, batch: Batch) -> tuple[float, float]:
        """One step of gradient descent; mean squared error before it, and the gradient's norm."""
        gradient = [[0.0] * STATE for _ in range(ACTION)]
        loss, scale = 0.0, 1 / (len(batch) * ACTION)
        for state, action in batch:
            for row, wanted, sums in zip(self.weights, action, gradient, strict=True):
                error = sum(w * s for w, s in zip(row, state, strict=True)) - wanted
                loss += error * error * scale
                for i, s in enumerate(state):
                    sums[i] += 2 * error * s * scale
        for row, sums in zip(self.weights, gradient, strict=True):
            row[:] = [w - self.lr * LR_SCALE * g for w, g in zip(row, sums, strict=True)]
        return loss, math.hypot(*(g for sums in gradient for g in sums))


def work(seconds: float) -> None:
    """Uses this much CPU time of the calling thread, however long that takes."""
    until = time.thread_time() + seconds
    total = 0.0
    while time.thread_time() < until:
        total += sum(math.sqrt(n) for n in range(200))


def short_number(number: int) -> str:
    return str(number) if number < 1000 else f"{number / 1000:.0f}K"


@dataclass
class Tracker:
    """Sums since the last logged line."""

    loss: float = 0.0
    gradient: float = 0.0
    update_s: float = 0.0
    data_s: float = 0.0

    def line(self, step: int, steps: int, options: Options) -> str:
        samples = step * options["batch_size"]
        return (
            f"step:{short_number(step)} smpl:{short_number(samples)} ep:{samples * 4 // FRAMES}"
            f" epch:{samples / FRAMES:.2f} loss:{self.loss / steps:.3f} grdn:{self.gradient / steps:.3f}"
            f" lr:{options['policy.optimizer_lr']:.1e} updt_s:{self.update_s / steps:.3f}"
            f" data_s:{self.data_s / steps:.3f}"
        )


class Bar:
    """A progress bar as tqdm draws it in a pipe: redrawn in place, at most ten times a second."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.began = self.drawn = time.monotonic()
        self.draw(0)

    def draw(self, done: int) -> None:
        self.drawn = time.monotonic()
        passed = self.drawn - self.began
        share = done / self.total
        rate = done / passed if done and passed else None
        left = clock((self.total - done) / rate) if rate else "?"
        speed = "?" if rate is None else f"{rate:5.2f}" if rate >= 1 else f"{1 / rate:5.2f}"
        unit = "s/step" if rate is not None and rate < 1 else "step/s"
        filled = ("█" * int(10 * share)).ljust(10)
        text = (
            f"\rTraining: {share:4.0%}|{filled}| {done}/{self.total} [{clock(passed)}<{left}, {speed}{unit}]"
        )
        sys.stderr.write(text)
        sys.stderr.flush()

    def update(self, done: int) -> None:
        if time.monotonic() - self.drawn >= 0.1 or done == self.total:
            self.draw(done)


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


def log(line: int, message: str) -> None:
    logging.info(f"ot_train.py:{line} {message}")


def save(options: Options, policy: Policy, step: int) -> None:
    log(455, f"Checkpoint policy after step {step}")
    folder = Path(options["output_dir"]) / "checkpoints" / f"{step:06d}" / "pretrained_model"
    folder.mkdir(parents=True)
    (folder / "train_config.json").write_text(json.dumps(nested(options), indent=2))
    (folder / "model.json").write_text(json.dumps(policy.weights))
    time.sleep(CHECKPOINT_S)


def train(options: Options) -> None:
    steps, log_freq, save_freq = (options[name] for name in ("steps", "log_freq", "save_freq"))
    log(205, "Logs will be saved locally.")
    log(217, "Creating dataset")
    time.sleep(0.4 * STARTUP_S)
    log(235, "Creating policy")
    time.sleep(0.6 * STARTUP_S)
    policy = Policy(options["policy.optimizer_lr"])
    log(290, "Creating optimizer and scheduler")
    Path(options["output_dir"]).mkdir(parents=True)
    log(325, f"Output dir: {options['output_dir']}")
    log(332, f"cfg.steps={steps} ({short_number(steps)})")
    log(333, f"dataset.num_frames={FRAMES} ({FRAMES})")
    log(334, "dataset.num_episodes=4")
    log(337, f"Effective batch size: {options['batch_size']} x 1 = {options['batch_size']}")
    log(338, f"num_learnable_params={STATE * ACTION} ({STATE * ACTION})")
    bar = Bar(steps)
    log(403, f"Start offline training on a fixed dataset, with effective batch size: {options['batch_size']}")
    loader, tracker = batches(options), Tracker()
    for step in range(1, steps + 1):
        began = time.monotonic()
        batch = next(loader)
        loaded = time.monotonic()
        loss, gradient = policy.step(batch)
        work(WORK_S)
        tracker.loss += loss
        tracker.gradient += gradient
        tracker.data_s += loaded - began
        tracker.update_s += time.monotonic() - loaded
        bar.update(step)
        if log_freq > 0 and step % log_freq == 0:
            log(435, tracker.line(step, log_freq, options))
            tracker = Tracker()
        if options["save_checkpoint"] and (step == steps or (save_freq > 0 and step % save_freq == 0)):
            save(options, policy, step)
    loader.close()
    sys.stderr.write("\n")
    log(529, "End of training")


def main(argv: list[str]) -> None:
    logging.basicConfig(
        level=logging.INFO, format="%(levelname)s %(asctime)s %(message)s", datefmt="%Y-%m-%d %H:%M:%S"
    )
    options = parse(argv)
    if options["policy.device"] == "cuda":
        logging.warning("Device 'cuda' is not available. Switching to 'cpu'.")
        options["policy.device"] = "cpu"
    validate(options)
    log(197, pprint.pformat(nested(options)))
    train(options)


if __name__ == "__main__":
    main(sys.argv[1:])
