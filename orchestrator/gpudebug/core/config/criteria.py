"""What a campaign is judged by beside its metric: further figures, learning, what a device should reach."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from gpudebug.core.config import values
from gpudebug.core.config.values import LOWER_IS_BETTER, METRICS
from gpudebug.core.lazy import regex
from gpudebug.core.statistics.metrics import LOG, SECTION, Metric
from gpudebug.core.words import Word
from gpudebug.core.yaml.models import shaped, unexpected

ALLOWED = 1.03
"""How many times worse a figure may get: as throughput's `not_worse`, what a person would not notice."""
NOT_WORSE = "not_worse"
HIGHER, LOWER = "higher", "lower"
_KEYS = frozenset({"direction", NOT_WORSE})
_LOWER = regex(
    r"loss|err(or)?s?(?![a-z])|latency|time|duration|(?<![a-z])(w|c)er(?![a-z])|fid(?![a-z])"
    r"|(?<![a-z])(mae|mape|r?mse|nll|ppl)(?![a-z])|perplexity|distance|miss|fail|violation|collision",
    re.IGNORECASE,
)
_LOGGED = r"""\b{name}\b["']?\s*[:=]\s*(?P<value>[-+0-9.eE]+)"""


def _term(value: Any) -> dict[str, object]:
    """Return how many times worse a figure may get, and its `direction` if that is written."""
    given = {} if value == NOT_WORSE else value
    if not isinstance(given, dict) or not given.keys() <= _KEYS:
        found = ", ".join(sorted(given)) if isinstance(given, dict) else value
        raise unexpected("not_worse, or {direction: lower, not_worse: 1.05x}", found)
    if given.get("direction", HIGHER) not in (HIGHER, LOWER):
        raise ValueError(f"direction: {unexpected('higher or lower', given['direction'])}")
    return {**given, NOT_WORSE: _allowed(given.get(NOT_WORSE, ALLOWED))}


def _allowed(value: Any) -> float:
    """Return how many times worse; as `1.05x` or as a number."""
    text = str(value).removesuffix("x").strip()
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,2}(\.[0-9]{1,6})?", text) or float(text) < 1:
        raise ValueError(f"not_worse: {unexpected('a ratio such as 1.05x', value)}")
    return float(text)


def usual_direction(metric: str) -> str:
    """Which way a figure of this name is better: losses, errors, times, energies lower, all others higher."""
    if metric.startswith(values.LOWER_IS_BETTER):
        return LOWER
    if not metric.startswith("log:"):
        return HIGHER
    return LOWER if _LOWER.search(metric.removeprefix("log:")) else HIGHER


Also = Annotated[
    dict[values.Metric, Annotated[dict[str, object], BeforeValidator(_term)]],
    shaped(dict, "a mapping such as {log:success_rate: not_worse}"),
    AfterValidator(
        lambda terms: {name: {"direction": usual_direction(name), **term} for name, term in terms.items()}
    ),
]


def patterns(log: Mapping[str, str], terms: Mapping[str, Any] | None) -> dict[str, str]:
    """`log:` complete: what `criteria.also` names without a pattern is read as `name: 0.93`, `name=0.93`."""
    names = [metric.removeprefix("log:") for metric in terms or () if metric.startswith("log:")]
    own = {name: _LOGGED.format(name=re.escape(name)) for name in names if name not in ("loss", "step")}
    return {**own, **log}


OWN_METRICS = {"auto": "", "loss": "lower", "reward": "higher", "return": "higher"}
_LEARNING = "loss, reward, log:NAME, or {metric: log:success_rate, direction: higher}"


def learning(value: Any) -> dict[str, str]:
    """`metric` and `direction`, complete: `reward` alone is `{metric: reward, direction: higher}`."""
    given = value if isinstance(value, dict) else {"metric": value}
    if not given.keys() <= {"metric", "direction"} or "metric" not in given:
        raise unexpected(_LEARNING, value)
    metric, direction = given["metric"], given.get("direction")
    own = isinstance(metric, str) and metric.startswith("log:") and len(metric) > len("log:")
    if not own and not (isinstance(metric, str) and metric in OWN_METRICS):
        raise unexpected(_LEARNING, metric)
    if direction not in (None, "higher", "lower"):
        raise ValueError(f"direction: {unexpected('higher or lower', direction)}")
    if own and direction is None:
        raise ValueError(f"direction is missing: write {{metric: {metric}, direction: higher}}, or lower")
    name = "reward" if metric == "return" else str(metric)
    return {"metric": name, "direction": direction or OWN_METRICS.get(name, "")}


Learning = Annotated[dict[str, str], BeforeValidator(learning)]

Ranges = Mapping[str, tuple[float, float]]
Table = Mapping[str, Ranges]
"""As gpudebug.yaml has it: figure -> device's name or `default`, and the configuration if it holds for one
alone (`V100 / ppo`) -> least and most."""

OF = " / "
"""Between a device and the configuration of which the figure is known: words of the workload's command."""

DEFAULT = "default"
_HALF = 0.5
FAULT = "a configuration fault is likely"


class Rating(Word):
    """How well a figure compares; FAULTY is less than half as good as the worse end of what is expected."""

    FAULTY = "faulty"
    BELOW = "below"
    WITHIN = "within"
    ABOVE = "above"
    UNKNOWN = "unknown"


def rating(figure: str, least: float, most: float, measured: float | None) -> Rating:
    """Rate a figure beside the `least` and `most` that are expected of it."""
    if measured is None:
        return Rating.UNKNOWN
    if figure.startswith(LOWER_IS_BETTER):
        # A time of 0 would be a rate beyond every bound.
        least, most, measured = (1 / max(v, 1e-12) for v in (most, least, measured))
    if measured < _HALF * least:
        return Rating.FAULTY
    if measured < least:
        return Rating.BELOW
    return Rating.ABOVE if measured > most else Rating.WITHIN


def rows(
    table: Table,
    devices: Sequence[str],
    evidence: Sequence[Mapping[str, Any]],
    command: str = "",
    declared: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """What `table` says of runs of `command` on devices with these names: one row a figure that it knows, and
    one for each phase of which it has a row, `declared` or seen.

    `evidence` are the runs' evidence.json; a run without a figure leaves the mean to the others. `device` is
    the row of the table; `note` says what to make of a figure, None if there is no cause.
    """
    seen = [phase["name"] for facts in evidence for phase in facts.get("phases") or ()]
    phases = list({name.casefold(): name for name in (*declared, *seen)}.values())
    whole = {figure: _without(ranges, phases) for figure, ranges in table.items()}
    found = []
    for figure, ranges in table.items():
        device = row_for(whole[figure], devices, command)
        if device is not None:
            found.append(_row(figure, device, ranges[device], evidence, None, bool(evidence)))
        for phase in phases:
            device = row_for(_of(phase, ranges), devices, f"{command} {phase}")
            if device is not None:
                inside = [one for facts in evidence if (one := _in_phase(facts, phase)) is not None]
                found.append(_row(figure, device, ranges[device], inside, phase, bool(evidence)))
    return found


def _row(
    figure: str,
    device: str,
    range_: tuple[float, float],
    evidence: Sequence[Mapping[str, Any]],
    phase: str | None,
    made: bool,
) -> dict[str, Any]:
    measured = _mean(figure, evidence)
    standing = rating(figure, *range_, measured)
    note = _note(figure, standing) if evidence else "not measured yet"
    if made and not evidence:
        note = f"the runs did not come to phase {phase}"
    return {
        "figure": figure,
        "device": device,
        "range": [*range_],
        "measured": measured,
        "standing": standing.value,
        "note": note,
        "phase": phase,
    }


def _in_phase(facts: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """Return a phase of evidence.json, which has the figures of a run by the same names."""
    phases = facts.get("phases") or ()
    return next((one for one in phases if one["name"].casefold() == name.casefold()), None)


def _of(phase: str, ranges: Ranges) -> Ranges:
    """Return the rows that are of a phase: their configuration has its name."""
    return {row: span for row, span in ranges.items() if f" {phase.casefold()} " in _configuration(row)}


def _without(ranges: Ranges, phases: Sequence[str]) -> Ranges:
    return {row: span for row, span in ranges.items() if not any(row in _of(one, ranges) for one in phases)}


def _configuration(row: str) -> str:
    return f" {row.casefold().partition(OF)[2].strip()} "


def _mean(figure: str, evidence: Sequence[Mapping[str, Any]]) -> float | None:
    metric = Metric(figure)
    return metric.mean([value for facts in evidence if (value := metric.recorded(facts)) is not None])


def _note(figure: str, standing: Rating) -> str | None:
    if standing is Rating.FAULTY:
        far = "more than twice" if figure.startswith(LOWER_IS_BETTER) else "less than half of"
        return f"{far} what is expected: {FAULT}"
    if standing is not Rating.UNKNOWN:
        return None
    if figure in METRICS or figure.startswith((LOG, SECTION)):
        return Metric(figure).absent()
    return f"no metric has this name; there are {', '.join(METRICS)}"


def row_for(ranges: Ranges, devices: Sequence[str], command: str = "") -> str | None:
    """The row for the first of `devices` that has one: of its name, else the longest name that is part of it.

    Letter case does not count. A row of a configuration, all of whose words `command` has, goes before one of
    the device alone. `default` if no device has one; None if that is not there either.
    """
    fitting = [(row, *_parts(row)) for row in ranges if _fits(_parts(row)[1], command.casefold())]
    for device in devices:
        name = device.casefold()
        own = [(len(of), len(words), row) for row, of, words in fitting if of != DEFAULT and of in name]
        if own:
            return max(own)[2]
    rest = [(len(words), row) for row, of, words in fitting if of == DEFAULT]
    return max(rest)[1] if rest else None


def _parts(row: str) -> tuple[str, list[str]]:
    """Return the device of a row and the words of its configuration, in lower case."""
    device, _, configuration = row.casefold().partition(OF)
    return device.strip(), configuration.split()


def _fits(words: Sequence[str], command: str) -> bool:
    return all(word in command for word in words)
