"""A knob of the catalogue applied to the options that a program has."""

from __future__ import annotations

import shlex

import pytest

from gpudebug.core.catalogue.knobs import meant, standing, turned
from gpudebug.core.catalogue.model import Knob
from gpudebug.core.catalogue.program import OwnFlag

OWN = {
    "workers": OwnFlag("--workers", 0, "int"),
    "rate": OwnFlag("--rate", 0.5, "float"),
    "amp": OwnFlag("--amp", False, "switch"),
    "no_cache": OwnFlag("--no-cache", True, "unset_switch"),
    "pin": OwnFlag("--pin", True, "pair"),
    "fast": OwnFlag("--fast", False, "bool"),
    "codec": OwnFlag("--codec", "cpu", "str"),
    "every": OwnFlag("--every", 10, "int"),
    "place": OwnFlag("--place", "cpu", "str", choices=("cpu", "gpu")),
    "LOADERS": OwnFlag("LOADERS", "1", "str", variable=True),
}


@pytest.mark.parametrize(
    ("command", "knob", "changes"),
    [
        ("", {"names": ("workers",), "direction": "up", "value": 4}, ["--set --workers=4"]),
        ("--workers 2", {"names": ("workers",), "direction": "up", "value": 4}, ["--set --workers=4"]),
        ("--workers=8", {"names": ("workers",), "direction": "up", "value": 4}, []),
        ("--workers=8", {"names": ("workers",), "direction": "up", "factor": 2}, ["--set --workers=16"]),
        ("", {"names": ("workers",), "direction": "up", "factor": 2, "value": 4}, ["--set --workers=4"]),
        ("--workers=3", {"names": ("workers",), "direction": "down", "factor": 0.5}, ["--set --workers=2"]),
        ("--workers=1", {"names": ("workers",), "direction": "down", "factor": 0.5}, []),
        ("--workers=1", {"names": ("workers",), "direction": "down", "value": 0}, ["--set --workers=0"]),
        ("", {"names": ("rate",), "direction": "down", "factor": 0.5}, ["--set --rate=0.25"]),
        (
            "--num_workers=1",
            {"names": ("num_?workers",), "direction": "up", "value": 4},
            ["--set --num_workers=4"],
        ),
        (
            "data.num_workers=1",
            {"names": ("num_workers",), "direction": "up", "value": 4},
            ["--set data.num_workers=4"],
        ),
        ("--workers=many", {"names": ("workers",), "direction": "up", "value": 4}, ["--set --workers=4"]),
        ("", {"names": ("work",), "direction": "up", "value": 4}, []),
        ("", {"names": ("amp",), "direction": "on"}, ["--set --amp"]),
        ("--amp", {"names": ("amp",), "direction": "on"}, []),
        ("--amp", {"names": ("amp",), "direction": "off"}, ["--unset --amp"]),
        ("", {"names": ("amp",), "direction": "off"}, []),
        ("", {"names": ("no_cache",), "direction": "on"}, ["--set --no-cache"]),
        ("--no-cache", {"names": ("no_cache",), "direction": "off"}, ["--unset --no-cache"]),
        ("", {"names": ("no_cache",), "direction": "off"}, []),
        ("", {"names": ("pin",), "direction": "off"}, ["--set --no-pin"]),
        ("", {"names": ("pin",), "direction": "on"}, []),
        ("", {"names": ("fast",), "direction": "on"}, ["--set --fast=true"]),
        ("--fast=False", {"names": ("fast",), "direction": "on"}, ["--set --fast=True"]),
        ("--fast=1", {"names": ("fast",), "direction": "on"}, []),
        ("--cache 0", {"names": ("cache",), "direction": "on", "value": True}, ["--set --cache=1"]),
        ("", {"names": ("codec",), "direction": "to", "value": "gpu"}, ["--set --codec=gpu"]),
        ("--codec gpu", {"names": ("codec",), "direction": "to", "value": "gpu"}, []),
        ("", {"names": ("place",), "direction": "to", "value": "gpu"}, ["--set --place=gpu"]),
        ("", {"names": ("place",), "direction": "to", "value": "cuda"}, []),
        ("--every=x", {"names": ("every",), "direction": "to", "value": True}, ["--set --every=1"]),
        ("", {"names": ("every",), "direction": "to", "value": "never"}, []),
        ("", {"names": ("every",), "direction": "off"}, ["--set --every=1000000000"]),
        ("--every 0", {"names": ("every",), "direction": "off"}, []),
        ("", {"names": ("every",), "direction": "any"}, []),
        ("", {"names": ("amp",), "direction": "up", "value": 4}, []),
        ("", {"names": ("loaders",), "direction": "up", "value": 4}, ["--env LOADERS=4"]),
        (
            "",
            {"names": ("workers", "every"), "direction": "up", "value": 20},
            ["--set --workers=20", "--set --every=20"],
        ),
    ],
)
def test_a_knob_changes_what_stands(command: str, knob: dict[str, object], changes: list[str]) -> None:
    argv = shlex.split(f"python train.py {command}")
    assert list(turned([Knob.model_validate(knob)], standing(argv, {}, OWN), None)) == changes


def test_workers_rise_to_the_limit() -> None:
    knobs = [Knob(names=("workers", "every"), direction="up", value=20)]
    options = standing(["python", "train.py"], {}, OWN)
    assert list(turned(knobs, options, 2.5)) == ["--set --workers=2", "--set --every=20"]
    at_limit = standing(["python", "train.py", "--workers=2"], {}, OWN)
    assert list(turned(knobs[:1], at_limit, 2)) == ["--set --every=20"]


def test_the_environment_says_what_a_variable_is() -> None:
    knob = Knob(names=("LOADERS",), direction="up", value=4)
    assert list(turned([knob], standing(["t"], {"LOADERS": "8"}, OWN), None)) == []


def test_a_knob_means_a_name_or_its_last_part() -> None:
    knob = Knob(names=("num_?workers",), direction="up")
    assert [meant(knob, key) for key in ("num_workers", "data.NumWorkers", "num_workers_x")] == [
        True,
        True,
        False,
    ]
