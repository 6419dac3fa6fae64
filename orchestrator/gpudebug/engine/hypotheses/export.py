"""`gpudebug export`: the accepted changes as patches that apply in order, and their worth together."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from email.utils import format_datetime
from pathlib import Path
from typing import Any

from gpudebug.core import progress
from gpudebug.core.answers.hypotheses import CombinedGain, ExportAnswer, ExportedHypothesis
from gpudebug.core.campaign import accepted_changes
from gpudebug.core.campaign.accepted_changes import AcceptedChange
from gpudebug.core.errors import GpudebugError
from gpudebug.core.progress import HypothesisEntry
from gpudebug.core.records import Estimate
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.words import counted
from gpudebug.edges import git, store, templates
from gpudebug.edges.store.exchange import refuse_foreign, replace_folder
from gpudebug.engine.campaign import worktrees
from gpudebug.engine.campaign.campaign import Baselines, Entries, MeasuredCode, Records, Setup, Trials
from gpudebug.engine.campaign.files import REPLAYED_NOTE
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.premises import standing_against
from gpudebug.engine.trial.together import together

HEADING = "# Accepted changes of campaign"
README = "README.md"
_TITLE = 200
_TEXT = 2000
_LABEL = "exported"


class NotExported(GpudebugError):
    """There is nothing to hand over, or it was not measured."""

    code = "export"


@dataclass(frozen=True)
class _ExportedChange:
    """One accepted hypothesis. If it has a patch that the checkout lacks, `name` is that of its file and
    `diff` makes the commit `made` of the commit `base`. `in_checkout`: the checkout has its patch."""

    entry: HypothesisEntry
    step: AcceptedChange
    verdict: dict[str, Any]
    name: str | None = None
    diff: bytes = b""
    base: str = ""
    made: str = ""
    in_checkout: bool = False

    @property
    def title(self) -> str:
        return progress.harmless(self.entry.title, limit=_TITLE) or f"Hypothesis {self.entry.number}"


def export(directory: Path, output: Path | None = None, session: str | None = None) -> ExportAnswer:
    """Write the accepted changes to `output`, by default runs/export.

    Raises NotExported if nothing is accepted, an accepted verdict does not stand on its runs, or what was
    accepted was not measured together since.
    """
    loaded = load(directory, session)
    entries = loaded.entries.recorded
    _refuse(loaded.setup, loaded.entries, loaded.history.baselines, entries)
    folder = output if output is not None else loaded.setup.workspace.runs / "export"
    refuse_foreign(folder, is_ours)
    parts = _parts(loaded.setup, loaded.entries, loaded.code, entries)
    worth = together(loaded, parts[0].verdict)
    named = [part for part in parts if part.name is not None]
    files = {
        str(p.name): _mail(loaded.setup, loaded.history.records, p, (n, len(named)))
        for n, p in enumerate(named, 1)
    }
    files[README] = _readme(loaded.setup, loaded.entries.trials, parts, worth).encode("utf-8", "replace")
    replace_folder(folder, files, is_ours=is_ours)
    return _answer(loaded.setup, folder, list(files), parts, worth)


def is_ours(name: str, head: bytes) -> bool:
    """Tell whether a file is one of an export, by its name and first bytes."""
    if name == README:
        return head.startswith(HEADING.encode())
    return name.endswith(".patch") and name[:4].isdecimal() and head.startswith(FIRST_LINE)


def _refuse(
    setup: Setup, entries: Entries, baselines: Baselines, accepted: Sequence[HypothesisEntry]
) -> None:
    where = str(setup.progress_path)
    by_hand = next((h for h in entries.document.hypotheses if entries.acceptances.by_hand(h)), None)
    if by_hand is not None:
        raise NotExported(
            f"the Accepted line of hypothesis {by_hand.number} was written by hand: UNVERIFIED",
            file=where,
            line=entries.document.line_of(by_hand, "accepted"),
            next=f"gpudebug accept {by_hand.number}, or delete the line",
        )
    if not accepted:
        raise NotExported("nothing is accepted yet", file=where, next="gpudebug accept H")
    for entry in accepted:
        if not entries.trials[entry.number].verified:
            raise NotExported(
                f"hypothesis {entry.number} is accepted but UNVERIFIED by its runs",
                file=where,
                line=entry.line,
                next=f"gpudebug verify {entry.number}, or delete an Accepted line that was written by hand",
            )
        against = standing_against(setup, entries, entry.number)
        if against:
            raise NotExported(
                f"hypothesis {entry.number} is accepted, and its verdict does not count: {against}",
                file=where,
                line=entry.line,
                next=f"gpudebug accept {entry.number} --terms-differ, or delete its Accepted line",
            )
    baseline = baselines["workload"]
    if baseline.why is not None or baseline.unverified:
        why = baseline.why or "the progress file does not match its runs"
        raise NotExported(
            f"what was accepted was not measured together since: baseline workload: {why}",
            file=where,
            next="gpudebug next",
        )


def _parts(
    setup: Setup, entries: Entries, code: MeasuredCode, accepted: Sequence[HypothesisEntry]
) -> list[_ExportedChange]:
    """Return the accepted hypotheses, each patch as the difference that it makes to those before it."""
    top, found = setup.checkout.top, list[_ExportedChange]()
    patches = iter(enumerate(code.patches))
    base = worktrees.checkout_base(setup, code).commit if code.patches else ""
    there = git.first_there(top, base, code.patches)
    for entry, step in zip(accepted, accepted_changes.changes(entries.document, accepted), strict=True):
        part = _ExportedChange(entry, step, entries.trials[entry.number].verdict or {})
        file = step.intervention.patch
        place, patch = next(patches) if file is not None else (0, None)
        if patch is not None and (code.applied or place < there or git.already_there(top, base, patch)):
            part = replace(part, in_checkout=True)
        elif patch is not None:
            made = git.with_patch(top, base, patch, label=_LABEL, file=str(file)).commit
            slug = store.slug(setup.workspace.scrub(entry.title))
            name = "-".join(filter(None, (f"{_named(found) + 1:04d}", slug))) + ".patch"
            part = replace(part, name=name, diff=git.difference(top, base, made), base=base, made=made)
            base = made
        found.append(part)
    return found


def _named(parts: Sequence[_ExportedChange]) -> int:
    return sum(part.name is not None for part in parts)


def _mail(setup: Setup, records: Records, part: _ExportedChange, place: tuple[int, int]) -> bytes:
    """A patch as it is handed over, tried as it is: it must make what its hypothesis was measured with."""
    scrub = setup.workspace.scrub_prose
    paragraphs = [
        f"Hypothesis {part.entry.number} of the gpudebug campaign {setup.config.campaign}.",
        scrub(part.entry.description),
        f"Measured alone: {_gain(part.verdict)}.",
        _also(part.step),
    ]
    mail = patch_mail(
        part.diff,
        title=scrub(part.title),
        paragraphs=[progress.harmless(text, limit=_TEXT) for text in paragraphs],
        place=place,
        date=_measured_at(records, part.entry),
    )
    tried = git.with_patch(setup.checkout.top, part.base, mail, label=_LABEL, file=str(part.name))
    if tried.commit != part.made:
        raise NotExported(
            f"the patch of hypothesis {part.entry.number} would not make what was measured",
            file=str(setup.progress_path),
            line=part.entry.line,
            next=f"apply {part.step.intervention.patch} itself",
        )
    return mail


def _also(step: AcceptedChange) -> str:
    """Return what belongs to the change and is in no patch."""
    others = [" ".join(c.words) for c in step.intervention.changes if c.kind != "patch"]
    return f"Measured with {' '.join(others)}, which is not in this patch." if others else ""


def _measured_at(records: Records, entry: HypothesisEntry) -> datetime:
    """When the last run of a hypothesis ended."""
    record = records.get(entry.runs[-1], {})
    time = record.get("end") or record.get("start")
    return datetime.fromisoformat(time) if time else datetime.fromtimestamp(0, timezone.utc)


def _gain(verdict: dict[str, Any]) -> str:
    """`GPU util 20.0% to 60.0%: +40.0pp (95% CI …), throughput 10 to 30 steps/s: 3.00x (95% CI …)`.

    A metric that is a throughput itself is given once.
    """
    fields = numbers.result_fields(verdict)
    metric = fields.get("metric") or f"GPU util {fields['gpu util before']} to {fields['gpu util after']}"
    text = f"{metric}: {fields['improvement']}"
    return (
        text if Metric(verdict["metric"]).throughput else f"{text}, throughput {_throughput(verdict, fields)}"
    )


def _throughput(verdict: dict[str, Any], fields: dict[str, str]) -> str:
    return f"{fields['throughput']}: {numbers.factor(verdict['throughput_ratio'])}"


def _exported(part: _ExportedChange) -> ExportedHypothesis:
    """Return an accepted hypothesis in the answer and in the README."""
    verdict = part.verdict
    fields = numbers.result_fields(verdict)
    return ExportedHypothesis(
        number=part.entry.number,
        title=part.title,
        order=part.entry.accepted,
        intervention=part.step.intervention.text,
        improvement=fields["improvement"],
        throughput=_throughput(verdict, fields),
        metric=verdict["metric"],
        delta=_estimate(verdict["delta"]),
        throughput_ratio=_estimate(verdict["throughput_ratio"]),
        patch=part.name,
        in_checkout=part.in_checkout,
    )


def _estimate(figure: dict[str, object] | None) -> Estimate | None:
    return None if figure is None else Estimate.model_validate(figure)


def _readme(setup: Setup, trials: Trials, parts: Sequence[_ExportedChange], worth: CombinedGain) -> str:
    workload = setup.config.workload
    scrub = setup.workspace.scrub
    names = dict.fromkeys(c.name for p in parts for c in p.step.intervention.changes if c.kind == "env")
    variables = [(name, shlex.quote(scrub(workload.env[name]))) for name in names if name in workload.env]
    return templates.render(
        "export.md.j2",
        heading=HEADING,
        campaign=setup.config.campaign,
        combined=worth,
        once=Metric(worth.metric).throughput,
        runs_before=_counted(worth.runs_before),
        runs_after=_counted(worth.runs_after),
        replayed=REPLAYED_NOTE if setup.compared.replay else None,
        doubts=[
            f"hypothesis {part.entry.number}: {line}"
            for part in parts
            for line in trials[part.entry.number].doubts.against
        ],
        hypotheses=[_exported(part) for part in parts],
        patches=[part.name for part in parts if part.name is not None],
        variables=variables,
        command=scrub(workload.text),
        folder=workload.cwd,
    )


def _answer(
    setup: Setup, folder: Path, names: list[str], parts: Sequence[_ExportedChange], worth: CombinedGain
) -> ExportAnswer:
    patches = [part.name for part in parts if part.name is not None]
    notes = [
        f"the patch of hypothesis {part.entry.number} is in the checkout already"
        for part in parts
        if part.in_checkout
    ]
    apply = f"git apply {' '.join(shlex.quote(str(folder / name)) for name in patches)}" if patches else None
    return ExportAnswer(
        campaign=setup.config.campaign,
        directory=str(folder),
        patches=tuple(patches),
        hypotheses=tuple(map(_exported, parts)),
        combined=worth,
        command=setup.workspace.scrub(setup.config.workload.text),
        replayed=setup.compared.replay,
        notes=(*((REPLAYED_NOTE,) if setup.compared.replay else ()), *notes, *worth.notes),
        next_command=apply,
        files=tuple(str(folder / name) for name in names),
    )


def _counted(names: Sequence[str]) -> str:
    shown = ", ".join(f"runs/{name}" for name in names)
    return f"{counted(len(names), 'run')} ({shown})"


_WIDTH = 76
_SENDER = "gpudebug <gpudebug@localhost>"
FIRST_LINE = b"From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n"
"""That of every file of ours, as `git format-patch` begins one."""

# What `git am` takes for a header or for the end of the message, and `git apply` for a patch's beginning.
_MEANT = re.compile(r"[-+@*>]|(?:diff|index|Index|From|Date|Subject|GIT)\b|\w+:")


def patch_mail(
    diff: bytes, *, title: str, paragraphs: Sequence[str], place: tuple[int, int], date: datetime
) -> bytes:
    """`diff` with its head. `place` is which of how many patches; each paragraph is one line of text.

    `title` and `paragraphs` have no line breaks and no control characters (`progress.harmless`).
    """
    number, count = place
    head = [
        f"From: {_SENDER}",
        f"Date: {format_datetime(date.astimezone(timezone.utc))}",
        f"Subject: [PATCH {number}/{count}] {title}",
        "MIME-Version: 1.0",
        "Content-Type: text/plain; charset=UTF-8",
        "Content-Transfer-Encoding: 8bit",
    ]
    body = "\n\n".join("\n".join(_wrapped(text)) for text in paragraphs if text)
    text = "\n".join(head) + f"\n\n{body}\n---\n\n"
    return FIRST_LINE + text.encode("utf-8", "replace") + diff


def _wrapped(text: str) -> list[str]:
    """Return the lines of a paragraph; one that means something to git is indented."""
    lines = textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return [f" {line}" if _MEANT.match(line) else line for line in lines]
