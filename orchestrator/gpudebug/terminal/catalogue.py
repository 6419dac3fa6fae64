"""The catalogue as text for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpudebug.core.answers.catalogue import (
    CatalogueAnswer,
    CauseAnswer,
    CauseSign,
    FrameworkTest,
    OffersHere,
    SignalsAnswer,
)
from gpudebug.core.words import counted
from gpudebug.terminal.fit import short, wrap

_WIDTH = 80
_WIDEST = 118
_LABEL = 9


INDEX = 3000
"""Characters of the index at most, however many causes a user adds."""
_SIGNS = {
    "data-loading": "training waits for batches, or its workers for data",
    "preprocessing": "samples cost CPU before the model sees them",
    "transfer": "copies between host and device take time",
    "sync": "the host waits for the device in the middle of a step",
    "launch": "many small operations, or a small batch; the device is busy in short bursts",
    "python": "the main thread computes in Python while the device idles",
    "stalls": "some steps are long: evaluation, checkpoints, logs",
    "rollout": "simulation, rendering or a small policy takes the time",
    "inference": "one request at a time, or more work than the answer needs",
    "distributed": "ranks wait for each other or for the network",
    "memory": "memory is full, fragmented or swapped",
    "hardware": "clocks, links, other programs on the host",
    "setup": "debug modes, builds and settings that are known without a run",
}


def index(answer: CatalogueAnswer) -> str:
    """List the ids of all causes by group, with how each group shows."""
    last = "Groups with titles and signs: gpudebug catalogue --group G; by words: gpudebug catalogue slow NFS"
    lines: list[str] = []
    left = INDEX - len(last) - 100
    for group in answer.groups:
        sign = _SIGNS.get(group.group)
        ids = ", ".join(cause.id for cause in group.causes)
        lines += wrap(f"{group.group}{f' ({sign})' if sign else ''}: {ids}", _WIDEST, rest="  ")
    shown = list(_fitting(lines, left))
    if len(shown) < len(lines):
        shown.append(f"… {len(lines) - len(shown)} more lines: gpudebug catalogue --group G")
    return "\n".join([*shown, "", f"{answer.count} root causes. One in full: {answer.next_command}", last])


def _fitting(lines: Iterable[str], left: int) -> Iterator[str]:
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            return
        yield line


def overview(answer: CatalogueAnswer) -> str:
    """List each group's causes: id, title and how it shows."""
    if not answer.groups:
        return "No root cause found."
    lines: list[str] = []
    for group in answer.groups:
        lines += [group.group]
        for cause in group.causes:
            marks = [*(["gate"] if cause.gate else []), *(["own"] if cause.own else [])]
            lines.append(f"  {cause.id}" + (f"  ({', '.join(marks)})" if marks else ""))
            lines += _indented(cause.title, 4)
            lines += _indented(f"shows: {cause.shows}", 4)
        lines.append("")
    count = answer.count
    lines.append(f"{counted(count, 'root cause')}. One in full: {answer.next_command}")
    return "\n".join(lines)


def asked(answer: CauseAnswer | CatalogueAnswer) -> str:
    """Render what the words found: one cause in full, or a list of causes."""
    return one(answer) if isinstance(answer, CauseAnswer) else overview(answer)


def one(answer: CauseAnswer) -> str:
    """Render one cause in full."""
    lines = [f"{answer.id}: {answer.title}", ""]
    for paragraph in answer.explanation.split("\n\n"):
        lines += [*_indented(paragraph, 0), ""]
    lines += _labelled("Group", f"{answer.group}{' (a gate: it needs no run)' if answer.gate else ''}")
    lines += _listed("Only if", answer.requires)
    lines += _listed("Signs", [_sign(sign) for sign in answer.signs])
    lines += _listed("Explains", answer.exposed)
    lines += _here(answer.here) if answer.here else []
    lines += ["", "Tests"]
    for test in answer.tests:
        lines += _test(test)
    for knob in answer.knobs:
        names = ", ".join(f"/{short(name, 60)}/" for name in knob.names)
        lines += _indented(f"options of other programs like {names}: {knob.direction}", 2)
    if answer.layer:
        lines += _indented(f"bounded by the layer test {answer.layer.replace('_', '-')}", 2)
    lines.append("")
    lines += _labelled("Fix", answer.fix)
    lines += _listed("Moves", answer.own_signal)
    lines += _labelled("Hollow", answer.hollow_if) if answer.hollow_if else []
    lines += _listed("Sources", answer.sources)
    lines += _labelled("File", answer.file)
    return "\n".join([*lines, f"Next: {answer.next_command}"])


def signals(answer: SignalsAnswer) -> str:
    """List the evidence that conditions can read."""
    rows = answer.signals
    columns = zip(*((row.name, row.unit, row.source) for row in rows), strict=True)
    name, unit, source = (max(map(len, texts)) for texts in columns)
    return "\n".join(
        f"{row.name:<{name}}  {row.unit:<{unit}}  {row.source:<{source}}  {row.said.format('…')}"
        for row in rows
    )


def _sign(sign: CauseSign) -> str:
    otherwise = f", else x{sign.otherwise:g}" if sign.otherwise != 1 else ""
    return f"x{sign.weight:g}{otherwise}  {sign.says}"


def _here(here: OffersHere) -> list[str]:
    """List the changes to gpudebug.yaml's command that test the cause, else what to write."""
    changes = [offer.change for offer in here.offers if offer.change]
    lines = ["", "For the command in gpudebug.yaml", *(f"  {change}" for change in changes)]
    written = [offer.instructions for offer in here.offers if offer.instructions]
    if not changes:
        lines += _indented(written[0] if written else "the catalogue has no test for it", 2)
    return lines + [line for why in here.refused for line in _indented(f"not offered: {why}", 2)]


def _test(test: FrameworkTest) -> list[str]:
    holds = f" {test.versions}" if test.versions else ""
    lines = [f"  {test.title}{holds}"]
    if test.change:
        lines.append(f"    {test.change}")
    if test.code:
        lines += _indented(test.code, 4)
    if test.note:
        lines += _indented(test.note, 4)
    return lines


def _labelled(label: str, text: str) -> list[str]:
    lines = _indented(text, _LABEL)
    return [f"{label:<{_LABEL}}{lines[0].strip()}", *lines[1:]] if lines else []


def _listed(label: str, items: Iterable[str]) -> list[str]:
    lines: list[str] = []
    for item in items:
        lines += _labelled(label if not lines else "", item)
    return lines


def _indented(text: str, indent: int) -> list[str]:
    return wrap(" ".join(text.split()), _WIDTH, " " * indent)
