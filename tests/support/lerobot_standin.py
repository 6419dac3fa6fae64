"""A stand-in for `lerobot-train` (LeRobot 0.4): its flags, its log, its waits; standard library only.

It refuses flags that the real program lacks and an output folder that exists, and loads batches in worker
processes that wait for a video store. What the accelerator would compute is a fixed amount of CPU time a step
in this process. `act_relative_rtc` asks for two frames where `act` asks for one, and the older one needs a
seek: its batches take four times as long.

LEROBOT_STANDIN_SPEED divides every wait and every amount of work.
"""

from __future__ import annotations

import json
import logging
import os
import pprint
import sys
import time
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import Any

SPEED = float(os.environ.get("LEROBOT_STANDIN_SPEED", "1"))
STARTUP_S = 1.5 / SPEED
CHECKPOINT_S = 0.4 / SPEED
WORK_S = 0.02 / SPEED
LOAD_S = {"act": 0.06 / SPEED, "act_relative_rtc": 0.242 / SPEED}
DECODE_S = {"torchcodec": 0.001 / SPEED, "pyav": 0.002 / SPEED}
FRAMES = 600

Options = dict[str, Any]


def boolean(text: str) -> bool:
    if text not in ("true", "false", "True", "False"):
        raise ValueError(f"Couldn't parse {text!r} into a bool")
    return text in ("true", "True")


COMMON: dict[str, tuple[Callable[[str], Any], Any]] = {
    "dataset.repo_id": (str, None),
    "dataset.episodes": (json.loads, None),
    "dataset.video_backend": (str, "torchcodec"),
    "batch_size": (int, 8),
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
    backbone, folder = options["policy.vision_backbone"], Path(options["output_dir"])
    if not backbone.startswith("resnet"):
        raise ValueError(f"vision_backbone must be one of the ResNet variants, got {backbone}.")
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


def load_batch(wait: float, decode: float) -> None:
    """Wait for the frames of a batch and decode them."""
    time.sleep(wait)
    work(decode)


def batches(options: Options) -> Generator[None, None, None]:
    """Batches in order, two of each worker under way."""
    size, workers = options["batch_size"], options["num_workers"]
    wait = LOAD_S[options["policy.type"]] * size / 8
    decode = DECODE_S[options["dataset.video_backend"]] * size / 8
    with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
        pending: deque[Future[None]] = deque()
        try:
            for _ in count():
                pending.append(pool.submit(load_batch, wait, decode))
                if len(pending) >= 2 * workers:
                    yield pending.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def work(seconds: float) -> None:
    """Use this much CPU time of the calling thread, however long that takes."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        sum(range(2000))


def short_number(number: int) -> str:
    return str(number) if number < 1000 else f"{number / 1000:.0f}K"


def line(step: int, update_s: float, data_s: float, options: Options) -> str:
    """What the real program logs, of a loss that falls as one over the steps does."""
    samples, loss = step * options["batch_size"], 2 / (1 + 0.05 * step)
    return (
        f"step:{short_number(step)} smpl:{short_number(samples)} ep:{samples * 4 // FRAMES}"
        f" epch:{samples / FRAMES:.2f} loss:{loss:.3f} grdn:{5 * loss:.3f}"
        f" lr:{options['policy.optimizer_lr']:.1e} updt_s:{update_s:.3f} data_s:{data_s:.3f}"
    )


def draw(done: int, total: int, passed: float) -> None:
    """A progress bar as tqdm draws it in a pipe: redrawn in place."""
    rate = done / passed
    left = clock((total - done) / rate)
    speed = f"{rate:5.2f}step/s" if rate >= 1 else f"{1 / rate:5.2f}s/step"
    filled = ("█" * int(10 * done / total)).ljust(10)
    bar = f"{done / total:4.0%}|{filled}| {done}/{total} [{clock(passed)}<{left}, {speed}]"
    print(f"\rTraining: {bar}", end="", file=sys.stderr, flush=True)


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


def log(number: int, message: str) -> None:
    logging.info(f"ot_train.py:{number} {message}")


def save(options: Options, step: int) -> None:
    log(455, f"Checkpoint policy after step {step}")
    folder = Path(options["output_dir"]) / "checkpoints" / f"{step:06d}" / "pretrained_model"
    folder.mkdir(parents=True)
    (folder / "train_config.json").write_text(json.dumps(nested(options), indent=2))
    time.sleep(CHECKPOINT_S)


def train(options: Options) -> None:
    steps, log_freq = options["steps"], options["log_freq"]
    log(217, "Creating dataset")
    time.sleep(STARTUP_S)
    Path(options["output_dir"]).mkdir(parents=True)
    log(325, f"Output dir: {options['output_dir']}")
    log(332, f"cfg.steps={steps} ({short_number(steps)})")
    log(333, f"dataset.num_frames={FRAMES} ({FRAMES})")
    log(337, f"Effective batch size: {options['batch_size']} x 1 = {options['batch_size']}")
    log(403, f"Start offline training on a fixed dataset, with effective batch size: {options['batch_size']}")
    loader, update_s, data_s = batches(options), 0.0, 0.0
    first = drawn = time.monotonic()
    for step in range(1, steps + 1):
        began = time.monotonic()
        next(loader)
        loaded = time.monotonic()
        work(WORK_S)
        now = time.monotonic()
        data_s, update_s = data_s + loaded - began, update_s + now - loaded
        if now - drawn >= 0.1 or step == steps:
            drawn = now
            draw(step, steps, now - first)
        if step % log_freq == 0:
            log(435, line(step, update_s / log_freq, data_s / log_freq, options))
            update_s = data_s = 0.0
    if options["save_checkpoint"]:
        save(options, steps)
    loader.close()
    print(file=sys.stderr)
    log(529, "End of training")


def main(argv: list[str]) -> None:
    logging.basicConfig(
        level=logging.INFO, format="%(levelname)s %(asctime)s %(message)s", datefmt="%Y-%m-%d %H:%M:%S"
    )
    options = parse(argv)
    validate(options)
    log(197, pprint.pformat(nested(options)))
    train(options)


if __name__ == "__main__":
    main(sys.argv[1:])
