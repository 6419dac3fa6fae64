"""What the shipped catalogue proposes of evaluations, checkpoints and logs: rarer, and some are left."""

from __future__ import annotations

import shlex

import pytest

from gpudebug.core.catalogue import frameworks
from gpudebug.core.catalogue.offers import KnownCommand, Offers, interventions_for
from gpudebug.core.catalogue.program import look
from gpudebug.engine.run import adapters, catalogue

KNOWN = adapters.known()
NANOGPT = "python train.py config/train.py --max_iters=200 --block_size=64 --n_layer=2"
HF = "python run.py --per_device_train_batch_size=8 --do_train"
OWN = """
import argparse
p = argparse.ArgumentParser()
p.add_argument("--steps", type=int, default=300)
p.add_argument("-e", "--eval-every", type=int, default=10)
p.add_argument("--no-eval", action="store_true")
p.add_argument("--save", type=bool, default=True)
"""


def offered(id: str, command: str, source: str | None = None, **printed: str) -> Offers:
    argv = shlex.split(command)
    program = look("train.py", [source]) if source else None
    found = frameworks.find(argv, KNOWN, program)
    cause = catalogue.load(None).cause(id)
    return interventions_for(cause, KnownCommand(argv, found=found, program=program), printed=printed)


@pytest.mark.parametrize(
    ("cause", "command", "printed", "expected"),
    [
        # the file's own cadence, as the program printed it
        ("eval-frequent", NANOGPT, {"eval_interval": "20"}, "--set eval_interval=100"),
        ("eval-frequent", f"{NANOGPT} --eval_interval=20", {}, "--set --eval_interval=100"),
        ("eval-frequent", "python -m rl_zoo3.train -n 40000 --eval-freq 500", {}, "--set --eval-freq=2500"),
        (
            "eval-frequent",
            f"{HF} --eval_steps=5 --max_steps=60",
            {},
            "--set --eval_steps=25",
        ),
        ("checkpoint", f"{HF} --save_steps 2 --max_steps=60", {}, "--set --save_steps=20"),
        ("checkpoint", f"{HF} --max_steps=6000", {}, "--set save_steps=3000"),
        ("logging", f"{HF} --logging_steps 1 --max_steps=60", {}, "--set --logging_steps=6"),
        ("eval-frequent", "lerobot-train --policy.type=act --steps=200000", {}, "--set env_eval_freq=100000"),
        ("checkpoint", "yolo train data=a.yaml save=True save_period=1 epochs=6", {}, "--set save_period=3"),
    ],
)
def test_the_value_is_computed_from_the_length_of_the_run(
    cause: str, command: str, printed: dict[str, str], expected: str
) -> None:
    changes = [offer.change for offer in offered(cause, command, **printed).offers if offer.change]
    assert changes[0] == expected


@pytest.mark.parametrize(
    ("cause", "command", "source", "why"),
    [
        ("eval-frequent", f"{NANOGPT} --eval_interval=100", None, "--eval_interval=100 stays: 2 evaluations"),
        ("eval-frequent", "python train.py -e 150", OWN, "-e=150 stays: 2 evaluations have to remain"),
        (
            "eval-frequent",
            "python train.py -e 150",
            OWN,
            "--no-eval would switch it off",
        ),
        ("eval-frequent", "yolo train data=a.yaml val=True", None, "val would switch it off"),
        ("checkpoint", "python train.py", OWN, "--save would switch it off"),
        ("checkpoint", f"{HF} --save_steps 30 --max_steps=60", None, "--save_steps=30 stays: 2 checkpoints"),
    ],
)
def test_nothing_is_switched_off(cause: str, command: str, source: str | None, why: str) -> None:
    found = offered(cause, command, source)
    assert any(why in each for each in found.refused), found.refused
    assert not [offer.change for offer in found.offers if offer.change]


def test_a_short_flag_is_made_rarer() -> None:
    found = offered("eval-frequent", "python train.py -e 10", OWN)
    assert found.offers[0].change == "--set -e=50"
