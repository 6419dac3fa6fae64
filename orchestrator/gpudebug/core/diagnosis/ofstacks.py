"""The stacks of several runs -> one, and the signals that are read from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpudebug.core.command.cadence import EVALUATION, cadences
from gpudebug.core.inside.stacks import shares
from gpudebug.core.inside.stacks.evaluation import evaluation, host_share, rollout_shares
from gpudebug.core.records import Stacks, StacksEvidence
from gpudebug.core.words import SignalValue

_SEVERAL = 2
EVALUATES = (
    r":([\w<>]+\.)*_?(\w+_)?(eval|evaluat\w*|validat(e|ion|ing)|val)(?![a-z])(?!_(frame|mode|batch_norm))\w*$"
    r"|:([\w<>]+\.)*_?(run_tests?|test_(epoch|loop|model|step|set|accuracy)|test|prediction_(loop|step)"
    r"|compute_metrics|estimate_loss|evaluation_loop|score_model|benchmark_policy|held_?out\w*)$"
    r"|evaluation_loop\.py:|:EvalCallback\."
)
"""How functions that evaluate are called. A name alone is no evidence of one."""
_BUT_DATA = ("forward", "eval", "act", "backward", "optimizer", "env", "other")


def together(found: Sequence[Mapping[str, Any] | None]) -> StacksEvidence | None:
    """`Evidence.stacks` of several runs as of one; None if no run has any."""
    records = [StacksEvidence.model_validate(one) for one in found if one]
    if not records:
        return None
    training = [s.training for s in records if s.training and s.training.seconds > 0]
    workers = [s.workers for s in records if s.workers and s.workers.seconds > 0]
    return StacksEvidence(
        training=shares.together(training),
        workers=shares.together(workers),
        notes=tuple(dict.fromkeys(note for s in records for note in s.notes)),
    )


def signals(stacks: StacksEvidence | None) -> dict[str, SignalValue | None]:
    """Shares of the watched time; {} if nothing was watched."""
    found: dict[str, SignalValue | None] = {}
    if stacks and stacks.training:
        found |= _training(stacks.training)
    if stacks and stacks.workers:
        found["worker_running_share"] = _ran(stacks.workers)
        found["worker_starved_share"] = _starved(stacks.workers)
    return found


def _ran(stacks: Stacks) -> float:
    return min(1.0, stacks.cpu_s / stacks.seconds)


def _starved(stacks: Stacks) -> float | None:
    return None if stacks.starved_s is None else min(1.0, stacks.starved_s / stacks.seconds)


def _training(stacks: Stacks) -> dict[str, SignalValue | None]:
    outside = [s.within("waiting") for s in shares.seen(stacks) if s.phase in _BUT_DATA]
    loads = any(s.phase == "data" for s in shares.seen(stacks))
    return {
        "stacks_s": stacks.seconds,
        "waiting_share": 1.0 - _ran(stacks),
        "waiting_outside_data_share": min(1.0, sum(outside) / stacks.seconds),
        "starved_share": _starved(stacks),
        "hot_waiting_share": None if loads else shares.waits(stacks, "other"),
        "hot_share": shares.hottest(stacks)[0],
        "hot_python_share": shares.hottest(stacks, state="running")[0],
        "hot_in_forward_share": shares.hottest(stacks, phases=("forward",))[0],
    }


def reduces(stacks: StacksEvidence | None, *, on_cpu: bool) -> dict[str, SignalValue | None]:
    """Return what the thread waits in the backward pass: on a CPU, where DDP reduces there and the thread
    computes the rest itself. Through the backward pass of a GPU it sleeps in any case; {} there."""
    found = stacks.training if stacks and on_cpu else None
    return (
        {}
        if found is None
        else {"backward_wait_share": shares.share(found, stack=".", phase="backward", state="waiting").value}
    )


def rollouts(stacks: StacksEvidence | None, kind: str) -> dict[str, SignalValue | None]:
    """What rollouts and the batches of updates take, of reinforcement learning; {} of anything else."""
    found = stacks.training if stacks else None
    if found is None or kind != "rl":
        return {}
    return {f"{name}_share": value for name, value in rollout_shares(found, EVALUATES)._asdict().items()}


def host_work(stacks: StacksEvidence | None, kind: str) -> float | None:
    """Return what the program computes itself between compiled steps; of reinforcement learning that is its
    environments, which causes of their own show."""
    return host_share(stacks.training) if stacks and stacks.training and kind != "rl" else None


def evaluates(
    stacks: StacksEvidence | None,
    kind: str,
    evidence: Sequence[Mapping[str, Any]],
    settings: Mapping[str, object],
) -> float | None:
    """Return the share of the watched time (0 to 1) that evaluation takes; None if nothing shows it.

    A network in evaluation mode without gradients shows it. A policy is in that mode in its rollouts too: in
    reinforcement learning the function must be called an evaluation as well. Without PyTorch, and of a run
    that was watched before phases told it, a function's name counts: without PyTorch only if the log tells
    of evaluations, or the `settings` how often they are made.
    """
    found = stacks.training if stacks else None
    if found is None or kind == "inference":
        return None
    phases = {one.phase for one in shares.seen(found)}
    if phases & ({"eval", "act"} if kind == "rl" else {"eval"}):
        return evaluation(found, EVALUATES if kind == "rl" else None).value
    if phases != {"other"} and found.starved_s is not None:
        return 0.0
    counts = [(e.get("occasions") or {}).get(EVALUATION, 0) for e in evidence]
    planned = cadences({name: str(value) for name, value in settings.items()}, EVALUATION)
    told = max(counts, default=0) >= _SEVERAL or any(one.every > 0 for one in planned)
    if phases == {"other"} and not told:
        return None
    return shares.share(found, stack=EVALUATES).value
