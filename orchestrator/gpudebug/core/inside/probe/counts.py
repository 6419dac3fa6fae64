"""What a run got done as log, probe and command count it: ratios that stay what they are from run to run.

A ratio of counts has no speed in it: whatever a change makes faster, a step of the log is as many steps of
the optimizer as before, and a step of the optimizer takes as many samples.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gpudebug.core.command import batch, command_line
from gpudebug.core.command.cadence import CHECKPOINT, EVALUATION, kind_of
from gpudebug.core.lazy import regex
from gpudebug.core.records import Evidence, ProbeEvidence
from gpudebug.core.words import Outcome

APART = 1.25
"""Ratios further apart than this differ: a line of a log is seen up to a reading late at both ends of a
window of five seconds, and a scaler skips some of the first steps."""
APART_COUNTED = 1.1
"""The same of counts of whole runs, which nothing but a first or a last step blurs."""
STEPS = "steps of the log"
INPUTS = "inputs"
WEIGHTS = "weights"
# The probe reports so many optimizers and kinds of loaders; of more, some are missing.
_MOST_OPTIMIZERS, _MOST_LOADERS = 16, 8

_STEPS = regex(r"(?:(?:max|num|n|total|train|training)_)*(?:steps|iters|iterations|updates)")
# Beside the batch: what makes a step of the optimizer another share of what the log counts.
_LIKE_BATCH = regex(
    r"(?:num_|n_)?(?:envs?|environments|workers_per_env|actors|critics?|minibatches|chunks|processes|gpus"
    r"|devices|nodes|replicas|views|crops)|n_?proc\w*|world_size|\w*(?:seq|sequence|context|block|chunk|clip"
    r"|window)_?(?:len(?:gth)?|size)|max_len(?:gth)?|horizon|rollout\w*|unroll\w*|n_?steps|num_steps"
    r"|train_freq\w*|gradient_steps|utd\w*|update\w*|\w+_(?:every|freq|interval|per_step)|packing|bucket\w*"
    r"|drop_last|devices?|pad(?:ding)?|pad_to_\w+|dynamic_padding|group_by_length"
)

_LENGTH = regex(
    r"\w*(?:seq|sequence|context|block|chunk|clip|window)_?(?:len(?:gth)?|size)|max_len(?:gth)?|n_?ctx|chunks"
)

_SIZES_STEP = regex(
    rf"(?:num_|n_)?(?:envs?|environments|actors|gpus|devices|nodes|replicas)|world_size|{_LENGTH.pattern}"
)
_ROLLOUT = regex(r"n_?steps|num_steps|horizon\w*|rollout\w*|unroll\w*|bptt_horizon|num_minibatches")
_OF_ENVIRONMENTS = regex(
    r"(?:num_|n_)?(?:envs|environments)|(?:total_|num_|n_)?(?:timesteps|env_steps|frames)|env(?:_id|_name)?"
)


class StepRatio(NamedTuple):
    """`value` of `what` a step of the optimizer; `apart` is how far runs of one program may differ."""

    what: str
    value: float
    apart: float = APART


def counted(e: Evidence) -> ProbeEvidence | None:
    """Return the probe's figures, if it counted steps of an optimizer to the end."""
    return e.probe if e.probe and e.probe.steps_per_s and not e.probe.off else None


def optimizer_rate(e: Evidence) -> float | None:
    """Steps of the optimizer a second, as the probe counted them to the end."""
    inside = counted(e)
    return inside.steps_per_s if inside else None


def ratios(e: Evidence) -> dict[str, StepRatio]:
    """Return the ratios of a run that has the probe's figures, by name; an unknown one is absent."""
    inside = counted(e)
    if inside is None or not inside.steps_per_s:
        return {}
    found = {
        "log": _by_log(e, inside),
        "samples": _ratio("samples", inside.samples_per_s and inside.samples_per_s / inside.steps_per_s),
        "backwards": _ratio("backward passes", inside.backwards_per_step),
        INPUTS: _ratio("elements of input", inside.inputs_per_step),
        WEIGHTS: _ratio("trained weights", _trained(inside), APART_COUNTED),
    }
    if e.outcome is Outcome.COMPLETED and inside.steps:
        found["optimizers"] = _ratio("steps of all optimizers", _of_optimizers(inside), APART_COUNTED)
        found["batches"] = _ratio("batches", _of_loaders(inside))
    return {name: ratio for name, ratio in found.items() if ratio is not None}


def _ratio(what: str, value: float | None, apart: float = APART) -> StepRatio | None:
    return StepRatio(what, value, apart) if value is not None and math.isfinite(value) else None


def _by_log(e: Evidence, inside: ProbeEvidence) -> StepRatio | None:
    """What the log counts: over the window where its lines have times, else over a run that completed."""
    unit = (e.step_unit or "step").removesuffix("s")
    what = f"{unit}s of the log"
    if e.steps_by != "probe" or e.step_unit not in (None, "step"):
        rate = e.progress_per_s or (e.steps_per_s if unit == "step" else None)
        return _ratio(what, rate / inside.steps_per_s) if rate and inside.steps_per_s else None
    whole = e.outcome is Outcome.COMPLETED and e.step_unit == "step" and e.steps and inside.steps
    return _ratio(what, e.steps / inside.steps) if whole and e.steps else None


def _of_optimizers(inside: ProbeEvidence) -> float | None:
    records = _dicts(inside.facts.get("optimizers"))
    steps = [_whole(one.get("steps")) for one in records]
    known = [count for count in steps if count is not None]
    if not known or len(known) < len(steps) or len(steps) >= _MOST_OPTIMIZERS:
        return None
    return sum(known) / inside.steps


def model(e: Evidence) -> str | None:
    """Return the class of the model whose forward trains; None if the probe saw none."""
    record = e.probe.facts.get("input") if e.probe is not None else None
    name = record.get("model") if isinstance(record, dict) else None
    return name if isinstance(name, str) else None


def weights(e: Evidence) -> int | None:
    """Return how many numbers all optimizers train together; None if that of one is unknown."""
    records = _dicts(e.probe.facts.get("optimizers")) if e.probe is not None else []
    known = [count for one in records if (count := _whole(one.get("weights"))) is not None]
    return sum(known) if known and len(known) == len(records) < _MOST_OPTIMIZERS else None


def _trained(inside: ProbeEvidence) -> float | None:
    """Weights that an iteration updates: of each optimizer its own, as often as it steps."""
    records = _dicts(inside.facts.get("optimizers"))
    known = [
        (steps, weights)
        for one in records
        if (steps := _whole(one.get("steps"))) and (weights := _whole(one.get("weights")))
    ]
    if not known or not inside.steps or len(known) < len(records) or len(records) >= _MOST_OPTIMIZERS:
        return None
    return sum(steps * weights for steps, weights in known) / inside.steps


def _of_loaders(inside: ProbeEvidence) -> float | None:
    records = _dicts(inside.facts.get("loaders"))
    if not records or len(records) >= _MOST_LOADERS:
        return None
    return sum(_whole(one.get("fetched")) or 0 for one in records if one.get("training")) / inside.steps


def _dicts(value: object) -> list[Mapping[str, object]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


class Moved(NamedTuple):
    """A ratio that is another one in the trial; `new` is None if the trial has none."""

    name: str
    what: str
    old: float
    new: float | None

    @property
    def factor(self) -> float:
        return self.new / self.old if self.new is not None and self.old else math.inf if self.new else 0.0


def moved(before: Sequence[Evidence], after: Sequence[Evidence], *, missing: bool = False) -> list[Moved]:
    """Return the ratios that all runs of the baseline tell and that differ in the trial.

    A ratio that some runs of the trial lack is not compared; with `missing` one that the probe reports
    of any training has moved, if it reported these runs at all.
    """
    old, new = [ratios(e) for e in before], [ratios(e) for e in after]
    missing = missing and all(counted(e) for e in after)
    shared = [name for name in old[0] if all(name in one for one in old)]
    found = []
    for name in shared:
        first = old[0][name]
        values = [one[name].value for one in old]
        theirs = [one[name] for one in new if name in one]
        if len(theirs) < len(new):
            lost = missing and name in ("samples", "backwards") and max(values) > 0
            found += [Moved(name, first.what, _mean(values), None)] if lost else []
            continue
        if any(ratio.what != first.what for ratio in (*(one[name] for one in old), *theirs)):
            continue
        value = _mean([ratio.value for ratio in theirs])
        if name in (INPUTS, WEIGHTS) and value >= min(values) / first.apart:
            # More is no sign: a module of the data's own may come first, and a larger model is no shortcut.
            continue
        if not min(values) / first.apart <= value <= max(values) * first.apart:
            found.append(Moved(name, first.what, _mean(values), value))
    return found


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def is_accumulated(before: Sequence[Evidence], after: Sequence[Evidence], factor: float) -> bool:
    """Tell whether as many more backward passes make a step of the optimizer, as the probe counted them."""
    old, new = (
        [r["backwards"].value for e in side if "backwards" in (r := ratios(e))] for side in (before, after)
    )
    if not old or not new or not min(old) or factor <= 0:
        return False
    passes = _mean(new) / _mean(old)
    return 1 / APART <= passes / factor <= APART


def evaluated_batches(inside: ProbeEvidence | None) -> int:
    """Batches of the loaders that do not feed the training; 0 if none was reported."""
    loaders = inside.facts.get("loaders") if inside is not None else None
    known = [one for one in loaders if isinstance(one, dict)] if isinstance(loaders, list) else []
    return sum(_whole(one.get("fetched")) or 0 for one in known if one.get("training") is False)


def like_batch(name: str) -> bool:
    """Tell whether a flag or variable of this name may set how much a step of the optimizer takes.

    One that says how often a training evaluates or saves does not.
    """
    return batch.names_batch(name) or bool(
        _LIKE_BATCH.fullmatch(_folded(name)) and kind_of(name) not in (EVALUATION, CHECKPOINT)
    )


def sizes_step(name: str) -> bool:
    """Tell whether a flag or variable of this name sets how much a step takes, whatever the program is."""
    return bool(_SIZES_STEP.fullmatch(_folded(name)))


def sets_length(name: str) -> bool:
    """Tell whether a flag of this name sets how long a sample is."""
    return bool(_LENGTH.fullmatch(_folded(name)))


def of_environments(argv: Sequence[str]) -> bool:
    """Tell whether a command sets environments or their steps."""
    return any(_OF_ENVIRONMENTS.fullmatch(_folded(o.name)) for o in command_line.program_options(argv))


def step_flags(argv: Sequence[str]) -> dict[str, str]:
    """Return the program's flags beside the batch's that set what a step takes: name -> value.

    `--num_steps` is the length of a rollout in a command that sets environments or their steps, else a plan.
    """
    found = {_folded(o.name): o.value or "" for o in command_line.program_options(argv)}
    rollouts = of_environments(argv)
    return {
        name: value
        for name, value in found.items()
        if value.isascii()
        and value.isdigit()
        and (_SIZES_STEP.fullmatch(name) or (rollouts and _ROLLOUT.fullmatch(name)))
    }


def _folded(name: str) -> str:
    return command_line.bare_name(name).replace("-", "_").lower().rsplit(".", 1)[-1]


def planned(argv: Sequence[str]) -> tuple[str, int] | None:
    """`steps`, and how many of them the command plans; None if it says none, or says it twice.

    Epochs are no plan: a training that a clock ends makes more steps of as many epochs once it is faster.
    """
    options = command_line.program_options(argv)
    found = [o.value or "" for o in options if _STEPS.fullmatch(_folded(o.name))]
    if len(found) != 1 or not (found[0].isascii() and found[0].isdigit() and int(found[0]) > 0):
        return None
    return "steps", int(found[0])


Side = Sequence[tuple[Sequence[str], Evidence]]
"""Runs, each with its command."""


def beyond_plan(before: Side, after: Side) -> str | None:
    """Return what a run of the trial counts beyond its command's plan and the baseline; None for nothing.

    Steps beyond those that are planned, unless the baseline's log counts so, too.
    """
    old = [_of_plan(*run) for run in before]
    for one in filter(None, (_of_plan(*run) for run in after)):
        same = [other.share for other in old if other is not None and other.kind == one.kind]
        most = max([1.0, *same])
        if one.share > most * APART_COUNTED:
            return f"run {one.run} printed {one.steps} steps, and its command plans {one.plan} {one.kind}"
    return None


class _OfPlan(NamedTuple):
    run: str
    kind: str
    plan: int
    steps: int

    @property
    def share(self) -> float:
        return self.steps / self.plan


def _of_plan(argv: Sequence[str], e: Evidence) -> _OfPlan | None:
    plan = planned(argv)
    if plan is None or e.step_unit != "step" or not e.steps:
        return None
    return _OfPlan(e.run, plan[0], plan[1], e.steps)
