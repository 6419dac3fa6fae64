"""Verdicts and baselines beside what is pinned: weaker terms, and runs that were played back."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.config.pins import weaker_terms
from gpudebug.core.errors import GpudebugError
from gpudebug.core.records import Verdict
from gpudebug.core.words import device_kind
from gpudebug.edges import git
from gpudebug.engine.campaign.files import REPLAYED, REPLAYED_NOTE, Written, replayed, sampled_from
from gpudebug.engine.campaign.pin_record import ComparedSettings, settings_of
from gpudebug.engine.campaign.verdicts import WEAKER
from gpudebug.engine.verify.findings import Finding, Findings
from gpudebug.engine.verify.runs import Checked


def pinned_of(written: Written) -> ComparedSettings | None:
    """Return the settings of a campaign beside the pinned ones; None outside of a git repository."""
    try:
        where = git.whereabouts(written.workspace.root)
    except GpudebugError:
        return None
    return settings_of(written.workspace, written.config, where)


def check_terms(settings: ComparedSettings | None, verdict: Verdict, findings: Findings) -> None:
    """Name the terms of a verdict that are weaker than the pinned ones: what it says is unknown by these."""
    if settings is None or verdict.terms is None:
        return
    weaker = weaker_terms(verdict.terms.model_dump(mode="json"), settings.bar)
    if weaker:
        text = "; ".join(d.text for d in weaker)
        findings.unchecked.append(f"hypothesis {verdict.hypothesis}: {WEAKER}: {text}")


def check_replayed(
    settings: ComparedSettings | None, runs: Sequence[Checked], where: Finding, findings: Findings
) -> None:
    """Name runs that were played back: evidence only if recordings are what a person pinned as the device."""
    played = [run for run in runs if _check_record(run, where, findings)]
    if not played:
        return
    if settings is None or settings.replay:
        if REPLAYED_NOTE not in findings.notes:
            findings.notes.append(REPLAYED_NOTE)
        return
    names = ", ".join(run.folder.name for run in played)
    why = f"{REPLAYED}: a recording is not evidence, the pinned device is {settings.bar.get('device')}"
    findings.differs(where.but(field="runs", found=names, why=why, run=played[0].folder.name))


def _check_record(run: Checked, where: Finding, findings: Findings) -> bool:
    """Tell whether a run was played back. That run.json and the sampler agree on it is checked as well."""
    if run.measured is None:
        return False
    record = run.measured.record.model_dump(mode="json")
    source, recorded = sampled_from(run.folder), record["replayed"]
    if isinstance(recorded, bool) and source is not None and recorded != device_kind(source).is_recording:
        path = run.folder.path / "run.json"
        why = f"its samples are from the source {source}"
        findings.differs(
            where.but(
                field="replayed",
                expected=not recorded,
                found=recorded,
                file=path,
                why=why,
                run=run.folder.name,
            )
        )
        return True
    return replayed(record, run.folder) is True


def check_one_pin(verdict: Verdict, runs: Sequence[Checked], where: Finding, findings: Findings) -> None:
    """The runs of one trial, the baseline's beside it among them, are made under the same settings."""
    own = {used.name for used in verdict.runs if used.part in ("trial", "crash") or used.fresh}
    records = [run.measured.record for run in runs if run.measured is not None]
    pins = {r.name: r.settings for r in records if r.name in own and r.settings is not None}
    if len(set(pins.values())) > 1:
        why = "the runs of this trial were made under different pinned settings"
        findings.differs(where.but(field="runs", found=", ".join(sorted(pins)), why=why))
