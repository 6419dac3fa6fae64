"""A small real campaign: a training program that waits for its data, and hypotheses about why.

The program needs NumPy; this module does not. What the hypotheses come to is measured when they are
tested: nothing here says it.
"""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

_GITIGNORE = "runs/\n__pycache__/\n"


@dataclass(frozen=True, slots=True)
class DemoHypothesis:
    """A hypothesis as `gpudebug propose` takes it; `intervention` is in the syntax of its flags, `cause` the
    catalogue's."""

    title: str
    description: str
    method: str
    intervention: str
    cause: str | None = None


HYPOTHESES: tuple[DemoHypothesis, ...] = (
    DemoHypothesis(
        title="The scaler's statistics are computed again for each batch",
        description=(
            "Mean and deviation of 1,024 samples never change, yet each step computes them anew before it"
            " can start. If that keeps the device waiting, computing them once raises utilisation."
        ),
        method="Set --cache_stats=1, so that the statistics are computed once, before the first step.",
        intervention="--set --cache_stats=1",
    ),
    DemoHypothesis(
        title="Single precision moves twice the bytes that half precision would",
        description=(
            "Weights and activations in bfloat16 are half as large. If memory traffic leaves the device"
            " idle between the matrix products, utilisation rises with half of it gone."
        ),
        method="Set --dtype=bfloat16 for weights and activations.",
        intervention="--set --dtype=bfloat16",
    ),
    DemoHypothesis(
        title="Clipping the gradients holds up each update",
        description=(
            "The norm over all 1.3 million gradients must be known before the first weight may move. If"
            " updates wait for it, training without clipping has shorter gaps between its steps."
        ),
        method="Set --clip_norm=0, which applies the gradients as they are.",
        intervention="--set --clip_norm=0",
    ),
    DemoHypothesis(
        title="The loader asks for a batch only when the model waits for it",
        description=(
            "Each batch costs a round trip to the store, and data_s in the log is far above update_s. With"
            " reads under way while the model computes, the waits overlap with work and disappear."
        ),
        method="Set --prefetch=8: eight reads are under way ahead of the model, in the same order.",
        intervention="--set --prefetch=8",
        cause="dl-storage",
    ),
)


def files(python: str = sys.executable) -> dict[str, str]:
    """The campaign's files, relative path -> text; `python` is the interpreter that its commands start."""
    data = resources.files(__name__)
    config = data.joinpath("gpudebug.yaml").read_text(encoding="utf-8")
    return {
        "train.py": data.joinpath("train.py").read_text(encoding="utf-8"),
        "gpudebug.yaml": config.replace("{python}", shlex.quote(python)),
        ".gitignore": _GITIGNORE,
    }


def write_campaign(folder: Path, python: str = sys.executable) -> None:
    """Write `files` into the existing, empty `folder`; a file that is there already is an OSError."""
    for name, text in files(python).items():
        with (folder / name).open("x", encoding="utf-8") as out:
            out.write(text)
