"""A campaign as Markdown for a pull request: what was tested, what was accepted, how it can be checked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpudebug.core.campaign import overview
from gpudebug.core.campaign.decide import ActionKind
from gpudebug.core.statistics import numbers
from gpudebug.core.text.shown import inline, legible, verbatim
from gpudebug.core.words import Status, counted
from gpudebug.edges import templates
from gpudebug.engine.report.headline import figure_name, headline

ROWS = 40
"""So many of the tested hypotheses have a row."""
CHANGES = 10
"""So many accepted changes are listed."""
COMMAND = 1500
"""Characters of a command at most."""
LINES, WIDTH = 80, 300
"""So much of a patch is shown."""
_SOME, _PATCH = 10, 4000
# What is less probable only draws the eye away.
_LIKELY = 0.1
_FOLDERS = re.compile(r"(?:(?<=[\s=:'\",])|^)~?/(?:[^\s/'\",]+/)+")
_TICKS = re.compile("`{3,}")
# What a training's speed depends on; a list of everything that is installed would drown it.
_PACKAGES = ("torch", "lerobot", "lightning", "transformers", "accelerate", "jax", "tensorflow", "numpy")

Data = Mapping[str, Any]
Hypothesis = Mapping[str, Any]


def summary(data: Data) -> str:
    """GitHub-flavoured Markdown of a report's data, far shorter than a pull request may be.

    Free text makes no markup, no mention and no link. It names no folder and no machine.
    """
    hypotheses = data["hypotheses"]
    rows = overview.rows(hypotheses, ROWS)
    steps = data["gain"]["accepted"] if data["gain"] else []
    return templates.render(
        "report.md.j2",
        figure_name=inline(figure_name(data)),
        campaign=inline(data["status"]["campaign"]),
        headline=inline("".join(part.text for part in headline(data)), 600),
        tally=overview.tally(hypotheses),
        replayed=data.get("replayed"),
        rows=[_row(h) for h in rows],
        left_out=len(overview.tested(hypotheses)) - len(rows),
        together=_together(data["gain"]) if steps else "",
        accepted=_accepted(data, steps[:CHANGES]),
        more=len(steps[CHANGES:]),
        environment=list(_environment(data)),
        command=on_paper(data["machine"].get("command", "")) if data["machine"] else "",
        sections=sections(data["machine"] or {}),
        runs=len(data["runs"]),
        left=list(_left(data)),
        version=data["gpudebug"],
        made=data["made"][:10],
    )


def _row(h: Hypothesis) -> dict[str, object]:
    own = " (its own word)" if h.get("throughput_source") == "log" else ""
    ratio, loss = h["throughput_ratio"], h["figures"].get("loss")
    return {
        "number": h["number"],
        "title": inline(h["title"], 120),
        "change": verbatim(h["intervention"] or "not written", 160),
        "verdict": ", ".join([h["status"], *_marks(h)]),
        "effect": inline(overview.effect_text(h), 80),
        "throughput": numbers.UNKNOWN if ratio is None else f"{ratio:.2f}x{own}",
        "loss": inline(loss or numbers.UNKNOWN, 40),
    }


def _marks(h: Hypothesis) -> list[str]:
    """Return the notes beside a verdict."""
    doubts = [line.partition(":")[0] for line in h.get("doubts", ())]
    return [*doubts, *(["accepted"] if h["accepted"] is not None else [])]


def _accepted(data: Data, steps: Sequence[Mapping[str, Any]]) -> list[dict[str, object]]:
    """These accepted changes, each with its patch."""
    known = {h["number"]: h for h in data["hypotheses"]}
    found = [(step, known[step["hypothesis"]]) for step in steps]
    return [
        {
            "number": h["number"],
            "title": inline(h["title"], 120),
            "change": verbatim(h["intervention"] or "not written", 160),
            "alone": inline(step["change_text"], 120),
            **_patch(h["diff"] or ""),
        }
        for step, h in found
    ]


def _patch(text: str) -> dict[str, object]:
    """Return the first lines of a patch, and a fence that none of them closes."""
    lines = text.removesuffix("\n").split("\n") if text else []
    shown: list[str] = []
    room = _PATCH
    for line in lines[:LINES]:
        room -= len(line[:WIDTH])
        if room < 0:
            break
        shown.append(legible(line[:WIDTH]))
    ticks = max(map(len, _TICKS.findall(text)), default=2) + 1
    return {"lines": shown, "cut": len(lines) - len(shown), "fence": "`" * ticks}


def _together(gain: Mapping[str, Any]) -> str:
    """Return what all that was accepted is worth together."""
    if gain["now"] is None:
        return "Together: not measured yet; `gpudebug next` measures it."
    change = f"{gain['metric']} {gain['start_text']} to {gain['now_text']}"
    notes = "".join(f"\n\nNote: {inline(note, 600)}." for note in gain.get("gained_notes") or ())
    why = f": {inline(gain['gained_why'], 600)}" if gain["gained_why"] else ""
    return f"Together, as measured: {inline(change)}: **{inline(gain['gained_text'])}**{why}.{notes}"


def _environment(data: Data) -> Iterator[tuple[str, str]]:
    machine = data["machine"]
    if machine is None:
        return
    yield "Device", inline(overview.device(data))
    for line in data["runs"].get(machine.get("run"), {}).get("across", ()):
        yield "GPUs", inline(line)
    drivers = {d["driver"] for d in machine["devices"] if d.get("driver")}
    if drivers:
        yield "Driver", inline(", ".join(sorted(drivers)))
    if machine["cpu_quota"] is not None:
        yield "CPU quota", numbers.number(machine["cpu_quota"], "cores")
    yield from setup(machine)
    if machine["commit"]:
        yield "Commit of the baseline", inline(machine["commit"])
    outcomes = Counter(run["outcome"] for run in data["runs"].values())
    if outcomes:
        yield "Runs", ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))


def setup(machine: Data) -> Iterator[tuple[str, str]]:
    """Yield what was trained, in which versions, and the memory of its devices."""
    memory = {d["memory_total_mb"] for d in machine["devices"] if d.get("memory_total_mb")}
    if memory:
        yield "Memory of a device", ", ".join(f"{mb / 1024:.3g} GB" for mb in sorted(memory))
    model = [inline(machine["model"], 80)] if machine.get("model") else []
    model += [f"{machine['weights']:,} parameters trained"] if machine.get("weights") else []
    if model:
        yield "Model", ", ".join(model)
    if machine.get("rate"):
        yield "Throughput", inline(machine["rate"])
    for one in machine.get("rewards", ()):
        yield (
            "Reward",
            f"{inline(one['name'], 80)} {numbers.number(one['first'])} to {numbers.number(one['last'])}",
        )
    packages = {name.lower(): version for name, version in (machine["packages"] or {}).items()}
    versions = [f"{name} {packages[name]}" for name in _PACKAGES if name in packages]
    if versions:
        yield "Packages", inline(", ".join(versions))


def on_paper(command: str) -> str:
    """Return a command in one line, without the folders of absolute paths: these name people and machines."""
    return verbatim(_FOLDERS.sub("", command), COMMAND)


def sections(machine: Data) -> list[dict[str, str]]:
    """Return the rows of a table of sections."""
    return [
        {
            "name": inline(one["name"], 80),
            "calls": str(one["calls"]),
            "mean": numbers.seconds(one["mean_s"]),
            "share": f"{one['share']:.0%}",
        }
        for one in machine.get("sections", ())
    ]


def _left(data: Data) -> Iterator[str]:
    """Yield what is still to be gained, what comes next, and what is not tested."""
    gain, status, budget = data["gain"], data["status"], data["status"]["budget"]
    if gain is not None and gain["gap"] is not None:
        yield f"Gap: {inline(gain['gap_text'])}."
    stopped = status["next"]["action"] == ActionKind.STOP
    step = "Stopped" if stopped else "Under way" if status["running"] else "Next"
    yield f"{step}: {inline(status['next']['why'].rstrip('.'))}."
    untold = budget["hypotheses_used"] - len(overview.tested(data["hypotheses"]))
    beside = f", {untold} of them by tests that no entry lists" if untold > 0 else ""
    whole = counted(budget["hypotheses"], "hypothesis", "hypotheses")
    yield f"Budget: {budget['hypotheses_used']} of {whole} used{beside}."
    sound = [h for h in data["hypotheses"] if h["status"] == Status.VALIDATED.value and h["verified"]]
    yield from _some("Not accepted", [_titled(h) for h in sound if h["accepted"] is None])
    untested = [h for h in data["hypotheses"] if h["status"] == Status.UNTESTED.value]
    yield from _some("Not tested", [_titled(h) for h in untested])
    likely = [c for c in data["causes"] if c["probability"] >= _LIKELY]
    yield from _some("Suspected", [f"{inline(c['title'], 120)} ({_likely(c)})" for c in likely])
    skipped = [f"run {inline(s['run'])}, {inline(s['why'])}" for s in data["skipped"]]
    yield from _some("Left out", skipped)


def _some(what: str, lines: Sequence[str]) -> Iterator[str]:
    """Yield a line each of the first, and how many more there are."""
    yield from (f"{what}: {line}" for line in lines[:_SOME])
    if len(lines) > _SOME:
        yield f"{what}: {len(lines) - _SOME} more"


def _titled(h: Hypothesis) -> str:
    return f"hypothesis {h['number']}, {inline(h['title'], 120)}"


def _likely(cause: Mapping[str, Any]) -> str:
    text = f"probability {cause['probability']:.2f}"
    ceiling = cause["ceiling_pp"]
    return text if ceiling is None else f"{text}, at most {ceiling:.0f}pp"
