"""How often a training evaluates, saves and logs by its settings, and how long it is planned to be.

Settings are names and values of flags, variables or printed configuration, in any spelling.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

from gpudebug.core.lazy import regex

EVALUATION, CHECKPOINT, LOG = "evaluation", "checkpoint", "log line"
KINDS = (EVALUATION, CHECKPOINT, LOG)
PLURAL = {EVALUATION: "evaluations", CHECKPOINT: "checkpoints", LOG: "log lines"}

LEFT = {EVALUATION: 2, CHECKPOINT: 2, LOG: 10}
"""How many a proposal leaves in a run at least; fewer losses show no trend."""

_WHEN = (
    r"(?:\w+_)?(?:freq(?:uency)?|every|interval|period|every_n_\w+|check_interval)"
    r"(?:_(?:n_)?(?:steps?|iters?|epochs?|updates?|batch(?:es)?))?"
)
_EVAL = r"(?:check_)?(?:env_|run_|do_)?(?:eval(?:uat(?:e|or|ion))?|val(?:id(?:at(?:e|ion))?)?|test)"
_SAVE = r"(?:save|saving|checkpoint(?:ing)?s?|ckpt|snapshot)"
_LOG = r"(?:log(?:ging)?|print|report|tensorboard|tb|summary)"
_EVERY = {
    EVALUATION: regex(rf"{_EVAL}_?{_WHEN}|eval_steps|evaluator\.epoch_interval"),
    CHECKPOINT: regex(
        rf"{_SAVE}_?{_WHEN}|(?:save|checkpointing)_steps|every_n_train_steps"
        r"|(?:\w+\.)*checkpoint(?:er)?\.(?:epoch_)?interval"
    ),
    LOG: regex(rf"{_LOG}_?{_WHEN}|logging_steps"),
}
_STRATEGY = {
    EVALUATION: regex(r"eval(?:uation)?_strategy"),
    CHECKPOINT: regex(r"save_strategy"),
    LOG: regex(r"logging_strategy"),
}
_ON = {
    EVALUATION: regex(r"(?:do_|run_)?(?:eval(?:uate)?|val(?:idate)?)|evaluator\.evaluate_local"),
    CHECKPOINT: regex(r"(?:do_)?save|save_(?:checkpoints?|model|ckpt|weights)|enable_checkpointing"),
    LOG: regex(r"do_log|enable_logging|log_progress"),
}
_SIZE = {
    EVALUATION: regex(
        rf"(?:\w+_)?(?:max|num|n|limit)_{_EVAL}_(?:batches|iters|steps|episodes|samples|envs)"
        rf"|{_EVAL}_(?:num_|n_)?(?:batches|iters|episodes|samples|size)|limit_val_batches"
    ),
}
"""How much of it is done each time: nothing is never."""
_OFF = {
    EVALUATION: regex(r"(?:no|skip|disable|without)_(?:eval\w*|val\w*)"),
    CHECKPOINT: regex(r"(?:no|skip|disable|without)_(?:sav\w*|checkpoint\w*|ckpt\w*)"),
    LOG: regex(r"(?:no|skip|disable|without)_(?:log\w*|print\w*)|quiet|silent"),
}
_STEPS = regex(
    r"(?:(?:max|num|n|total|train|training|nb)_)*(?:steps|iters|iterations|updates|timesteps|env_steps|frames)"
    r"|num_train_steps|max_train_steps|max_update"
)
_EPOCHS = regex(r"(?:(?:max|num|n|total|train|training|nb)_)*epochs?")
_TRUE = frozenset({"true", "yes", "on", "1", ""})
_FALSE = frozenset({"false", "no", "off", "0", "0.0", "none", "null"})
_NEVER = frozenset({"inf", "+inf", "infinity", "+infinity", ".inf", "never", "off", "disabled"})


class Cadence(NamedTuple):
    """A setting that says how often: `every` so many steps, epochs or a share of them; 0 or less is never."""

    name: str
    every: float


class PlannedLength(NamedTuple):
    """How long a run is planned to be, in steps and in epochs; None is not known."""

    steps: float | None = None
    epochs: float | None = None

    def of(self, cadence: str, every: float) -> float | None:
        """Return the length in what this cadence counts: epochs if its name says so; of both the shorter one
        that it fits into if its name says nothing."""
        if "epoch" in cadence:
            return self.epochs
        if re.search(r"step|iter|update|batch", cadence):
            return self.steps
        fitting = [each for each in (self.epochs, self.steps) if each is not None and each >= every]
        return min(fitting, default=self.steps if self.steps is not None else self.epochs)


UNKNOWN_LENGTH = PlannedLength()


def folded(name: str) -> str:
    return name.lstrip("-+~").replace("-", "_").replace("/", ".").lower()


def short(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings by their folded names and, if no other has it, by the last part of a dotted name."""
    full = {folded(name): value for name, value in settings.items()}
    last = {name.rpartition(".")[2]: value for name, value in full.items()}
    return {**last, **full}


def kind_of(name: str) -> str | None:
    """Return which of the kinds a setting of this name sets or switches; None for any other."""
    names = {folded(name), folded(name).rpartition(".")[2]}
    for kind in KINDS:
        tables = (_EVERY[kind], _STRATEGY[kind], _ON[kind], _OFF[kind], _SIZE.get(kind))
        if any(table.fullmatch(each) for table in tables if table is not None for each in names):
            return kind
    return None


def length(settings: Mapping[str, str], total_steps: float | None = None) -> PlannedLength:
    """Return the planned length by its settings; `total_steps` is what the program prints of it."""
    known = short(settings)
    steps = [n for name, value in known.items() if _STEPS.fullmatch(name) and (n := number(value))]
    epochs = [n for name, value in known.items() if _EPOCHS.fullmatch(name) and (n := number(value))]
    by_settings = max((n for n in steps if n > 0), default=None)
    return PlannedLength(
        by_settings if by_settings is not None else total_steps,
        max((n for n in epochs if n > 0), default=None),
    )


def cadences(settings: Mapping[str, str], kind: str) -> list[Cadence]:
    """Return what the settings say of how often: every one of them."""
    found = []
    for name, value in short(settings).items():
        low = value.strip().strip("'\"").lower()
        every = number(value)
        if _EVERY[kind].fullmatch(name) and every is not None:
            found.append(Cadence(name, every))
        elif (
            (_EVERY[kind].fullmatch(name) and low in _NEVER)
            or (kind in _SIZE and _SIZE[kind].fullmatch(name) and every is not None and every <= 0)
            or (_STRATEGY[kind].fullmatch(name) and low.rpartition(".")[2] in ("no", "none"))
            or (_ON[kind].fullmatch(name) and low in _FALSE)
            or (_OFF[kind].fullmatch(name) and low in _TRUE)
        ):
            found.append(Cadence(name, 0.0))
    return found


def planned(settings: Mapping[str, str], kind: str, total_steps: float | None = None) -> int | None:
    """Return how many a run of its planned length has by its settings; None if they do not say.

    What is switched off is none, whatever else the settings say.
    """
    plan = length(settings, total_steps)
    counts = []
    for name, every in cadences(settings, kind):
        if every <= 0:
            return 0
        whole = plan.of(name, every)
        if every < 1:
            counts.append(math.floor(1 / every))
        elif whole is not None:
            counts.append(math.floor(whole / every))
    return max(counts, default=None)


def rarer(name: str, every: float, kind: str, factor: float, plan: PlannedLength) -> float | None:
    """Return a cadence up to `factor` times as rare of which LEFT remain in a run; None if there is none."""
    whole = plan.of(folded(name), every)
    if every < 1:
        most: float | None = 1 / LEFT[kind]
    else:
        most = None if whole is None else math.floor(whole / LEFT[kind])
    wanted = every * factor if most is None else min(every * factor, most)
    return wanted if wanted > every else None


def number(text: str) -> float | None:
    """Return the finite number that a text is; None for any other."""
    try:
        value = float(text.strip().strip("'\"").replace("_", "")) if text.isascii() else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None
