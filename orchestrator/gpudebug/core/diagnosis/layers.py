"""Layer tests: one run each that takes a whole layer of the training away, to bound what lies in it.

They diagnose and are never a fix: a training on one batch learns nothing, one that saves nothing is lost,
and the batch is a knob that changes what is learnt. The differential idea is DS-Analyzer's (Mohan et al.,
"Analyzing and Mitigating Data Stalls in DNN Training", arXiv 2007.06775).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gpudebug.core.answers.diagnosis import LayerResult
from gpudebug.core.errors import GpudebugError, UsageError
from gpudebug.core.evidence.speed import FEW_STEPS
from gpudebug.core.records import Evidence
from gpudebug.core.samples.window import SHARED

LAYERS = ("cached_batch", "quiet", "double_batch")
PREFIX = "layer-"
"""What the roles of their runs begin with."""
FLAT = 1.15
"""A step whose time grows less than this with twice the batch is bound by the host (a judgement: a step of
pure computation would take twice as long, and runs of one program differ by a few per cent)."""
LINEAR = 1.85
"""From here on nearly all of a step grows with the batch (a judgement, as above)."""
APART = 0.05
"""Shares that differ by less agree (a judgement: runs of one program differ by a few per cent)."""
LEAST = 1.03
"""A ratio below this is no difference: the same that a throughput gate asks for."""


class LayerError(GpudebugError):
    """A layer test that this campaign cannot have."""

    code = "layer"


def layer_named(text: str) -> str:
    """The layer that `--layer` names, `cached-batch` for `cached_batch`. UsageError if there is none."""
    name = text.strip().lower().replace("-", "_")
    if name not in LAYERS:
        known = ", ".join(shown(layer) for layer in LAYERS)
        raise UsageError(f"there is no layer test {text!r}", next=f"name one of {known}")
    return name


def shown(layer: str) -> str:
    """As a command line names it."""
    return layer.replace("_", "-")


def signals(results: Mapping[str, LayerResult]) -> dict[str, float]:
    """The signals of `core.catalogue.signals` that layer tests fill; one that is not known is absent."""
    return {f"layer_{name}_ratio": r.ratio for name, r in results.items() if r.ratio is not None}


def judge(layer: str, before: Sequence[Evidence], after: Sequence[Evidence], changed: str) -> LayerResult:
    """Return the result of the runs `after`, in their order, beside the baseline's runs `before`."""
    found: list[str] = []
    steps = _ratio("steps_per_s", before, after)
    ratio = _ratio("samples_per_s", before, after) if layer == "double_batch" else steps
    if layer == "cached_batch" and not all(replayed(e) for e in after):
        found.append("no batch was replayed: no loader fed three batches to an iteration that ended")
        ratio = steps = None
    if layer == "double_batch" and ratio is None and steps is not None:
        found.append("samples per second are unknown, so only step times are compared")
    if steps is None and not found:
        found.append("the step rate is unknown on one side: train for longer")
    if layer == "cached_batch" and steps is not None:
        found += _left(before, 1 - 1 / steps)
    found += _company([*before, *after])
    return LayerResult(
        layer=layer,
        run=after[-1].run,
        runs=tuple(e.run for e in after),
        ratio=ratio,
        step_ratio=steps,
        changed=changed,
        means=means(layer, ratio, steps),
        notes=tuple(found),
    )


def _left(before: Sequence[Evidence], gone: float) -> list[str]:
    """Return what of the time that went with the batches the baseline's own figures do not call data wait, or
    the other way round, from five points on."""
    waits = {
        "the probe": [e.probe.data_wait_share if e.probe else None for e in before],
        "the log": [e.data_s / (e.data_s + e.update_s) if e.data_s and e.update_s else None for e in before],
    }
    notes = []
    for whose, shares in waits.items():
        known = [share for share in shares if share is not None]
        told = math.fsum(known) / len(known) if known else gone
        if told <= gone - APART:
            where = "copying to the device, work on a new batch, or other programs' load"
            notes.append(
                f"{whose} calls {told:.0%} of the time data wait: the other {gone - told:.0%} are {where}"
            )
        elif told >= gone + APART:
            where = "the step takes longer without it, as it does where it hid work or others used the cores"
            notes.append(f"{whose} calls {told:.0%} of the time data wait, {told - gone:.0%} more: {where}")
    return notes


def means(layer: str, ratio: float | None, steps: float | None) -> str:
    """Return what the ratios say, in one sentence."""
    if layer == "double_batch":
        return _of_batch(steps)
    what = {
        "cached_batch": ("with one cached batch", "is data wait", "loading delays nothing"),
        "quiet": (
            "without logging, evaluation and saving",
            "goes into these",
            "these delay nothing",
        ),
    }
    how, where, nothing = what[layer]
    if ratio is None:
        return f"{how} the step rate is unknown"
    if ratio < LEAST:
        return f"{how} a step is no faster ({ratio:.2f} times): {nothing}"
    return f"{how} a step is {_times(ratio)} as fast: {1 - 1 / ratio:.0%} of the time {where}"


def _of_batch(steps: float | None) -> str:
    if steps is None:
        return "at twice the batch the step time is unknown"
    longer = 1 / steps
    if longer < FLAT:
        return (
            f"at twice the batch a step takes {longer:.2f} times as long: it is flat, so the host bounds the "
            "step, not the work on a sample"
        )
    text = f"at twice the batch a step takes {longer:.2f} times as long"
    if longer < LINEAR:
        # Of a + b * batch, that is a over all: 2 - (a + 2b) / (a + b).
        return f"{text}: {2 - longer:.0%} of it does not depend on the batch"
    return f"{text}: the work on each sample bounds it"


def _times(ratio: float) -> str:
    return (
        f"{ratio:.0f} times"
        if ratio >= 10
        else f"{ratio:.1f} times"
        if ratio >= 1.1
        else f"{ratio:.2f} times"
    )


def replayed(evidence: Evidence) -> int:
    """Return how many batches the training got again, by its probe."""
    count = _replay(evidence).get("batches")
    return count if isinstance(count, int) else 0


def _replay(evidence: Evidence) -> dict[str, object]:
    replay = evidence.probe.facts.get("replay") if evidence.probe else None
    return replay if isinstance(replay, dict) else {}


def epochs(evidence: Sequence[Evidence]) -> tuple[int, ...]:
    """Batches of an epoch of each loader, in the order in which they began, by the newest run."""
    lengths = _newest(evidence).get("epochs")
    return tuple(n for n in lengths if isinstance(n, int)) if isinstance(lengths, list) else ()


def asked(layer: str, evidence: Sequence[Evidence]) -> str:
    """Write what makes a training's probe replace the layer, with the lengths of the baseline's epochs.

    `+` follows that of a loader of which no epoch ended.
    """
    lengths, ended = epochs(evidence), _newest(evidence).get("epochs_ended")
    if not isinstance(ended, list) or len(ended) != len(lengths):
        ended = [True] * len(lengths)
    texts = [f"{n}" if end else f"{n}+" for n, end in zip(lengths, ended, strict=True)]
    return f"{layer}:{','.join(texts)}" if texts else layer


def _newest(evidence: Sequence[Evidence]) -> Mapping[str, Any]:
    return evidence[-1].probe.facts if evidence and evidence[-1].probe else {}


def feeds_training(evidence: Evidence) -> bool:
    """Tell whether the probe saw a DataLoader that feeds the training."""
    loaders = evidence.probe.facts.get("loaders") if evidence.probe else None
    known = loaders if isinstance(loaders, list) else []
    return any(isinstance(one, dict) and one.get("training") is not False for one in known)


def _company(runs: Sequence[Evidence]) -> list[str]:
    """That the runs were not alone: then a ratio is rough, or worse."""
    shared = [e.run for e in runs if e.conditions.foreign_procs]
    if shared:
        return [f"another process computed on the device in {', '.join(shared)}: do not trust the ratio"]
    loads = {e.run: load for e in runs if (load := e.conditions.foreign_cpu) is not None and load > SHARED}
    if not loads:
        return []
    text = ", ".join(f"{load:.0f}% in {run}" for run, load in loads.items())
    return [f"other processes used the run's cores ({text}): the ratio is rough"]


def _ratio(name: str, before: Sequence[Evidence], after: Sequence[Evidence]) -> float | None:
    """Of means over runs. Both sides by the probe if every run has it: it counts what no log prints."""
    for read in (_told, _read):
        sides = [[read(e, name) for e in side] for side in (before, after)]
        rates = [[v for v in side if v] for side in sides]
        if all(rates) and [len(s) for s in sides] == [len(r) for r in rates]:
            old, new = (math.fsum(side) / len(side) for side in rates)
            return new / old
    return None


def _told(evidence: Evidence, name: str) -> float | None:
    """By the probe: of the window, else of the iterations that were made on replayed batches."""
    known = getattr(evidence.probe, name, None) if evidence.probe else None
    if known or name != "steps_per_s":
        return known
    replay = _replay(evidence)
    steps, seconds = replay.get("steps"), replay.get("seconds")
    if not isinstance(steps, int) or not isinstance(seconds, (int, float)):
        return None
    return steps / seconds if seconds > 0 and steps >= FEW_STEPS else None


def _read(evidence: Evidence, name: str) -> float | None:
    value = getattr(evidence, name)
    return float(value) if value else None
