"""Evidence that would show more, and what records it."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.answers.diagnosis import Missing
from gpudebug.core.catalogue.signals import SIGNALS
from gpudebug.core.diagnosis.model import DiagnosisFacts
from gpudebug.core.diagnosis.odds import Scored

_LOOKED_AT = 8
_LAYERS = {"cached_batch": "cached-batch", "quiet": "quiet", "double_batch": "double-batch"}


def missing(facts: DiagnosisFacts, scored: Sequence[Scored]) -> tuple[Missing, ...]:
    """Return the most useful first; `scored` are the causes, the most probable first."""
    found = [_device(facts), _probe(facts), _stacks(facts), _log(facts)]
    found += [_layer(facts, scored), _trace(facts, scored), _reference(facts)]
    return tuple(one for one in found if one is not None)


def _device(facts: DiagnosisFacts) -> Missing | None:
    if "device" not in facts.absent:
        return None
    return Missing(
        "utilisation of the device",
        facts.absent["device"],
        "run gpudebug doctor to see what works here; a run has to train for some seconds",
    )


def _probe(facts: DiagnosisFacts) -> Missing | None:
    why = facts.absent.get("probe")
    if why is None:
        return None
    switched = "set probe: true in gpudebug.yaml" if "probe: false" in why else "mend that"
    return Missing("the probe's figures from inside the training", why, f"{switched}, then gpudebug baseline")


def _stacks(facts: DiagnosisFacts) -> Missing | None:
    if "stacks" not in facts.absent or "probe" in facts.absent:
        return None
    return Missing("stacks of the training thread", facts.absent["stacks"], "gpudebug baseline workload")


def _log(facts: DiagnosisFacts) -> Missing | None:
    if facts.absent.get("log") is None:
        return None
    return Missing(
        "steps and loss in the log",
        facts.absent["log"],
        "print `step N loss X` at least 10 times a run; gpudebug doctor names the flag of known frameworks",
    )


def _layer(facts: DiagnosisFacts, scored: Sequence[Scored]) -> Missing | None:
    """Return the layer test that bounds the most probable cause which has one that can be made here."""
    for one in scored[:_LOOKED_AT]:
        layer = one.cause.layer
        if layer is None or f"layer_{layer}_ratio" in facts.signals or not _can_be_made(layer, facts):
            continue
        name, made = _LAYERS[layer], facts.absent.get(f"layer_{layer}")
        why, record = "no such test was made on this baseline", f"gpudebug diagnose --layer {name}"
        if made:
            why, record = f"the last one was inconclusive: {made}", f"mend that, then {record}"
        return Missing(f"layer test {name}", f"it would bound {one.cause.id}: {why}", record)
    return None


def _can_be_made(layer: str, facts: DiagnosisFacts) -> bool:
    """A batch can be cached only if a loader is known to feed the training."""
    return layer != "cached_batch" or facts.signals.get("loader_used") is True


def _trace(facts: DiagnosisFacts, scored: Sequence[Scored]) -> Missing | None:
    """Return a profiled run, if a trace would show a probable cause, on a real device."""
    if "trace_busy_share" in facts.signals or facts.signals.get("device_stand_in") is not False:
        return None
    signs = (t.sign.signal for one in scored[:_LOOKED_AT] for t in one.signs if t.true is None)
    if not any(signal is not None and SIGNALS[signal].source == "trace" for signal in signs):
        return None
    return Missing(
        "a trace of some steps",
        "this baseline has no profiled run",
        "gpudebug baseline workload --torch-profile default",
    )


def _reference(facts: DiagnosisFacts) -> Missing | None:
    if facts.reference is not None:
        return None
    return Missing(
        "a workload with good utilisation here",
        "gpudebug.yaml names no reference, or it has no valid baseline",
        "add `reference:` to gpudebug.yaml, then gpudebug next",
    )
