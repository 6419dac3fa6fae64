"""`gpudebug baseline --import`: a run that was completed under another monitor becomes a baseline."""

from __future__ import annotations

import shlex
from pathlib import Path

from gpudebug import __version__
from gpudebug.core import progress
from gpudebug.core.answers.next import RecordedBaseline
from gpudebug.core.errors import GpudebugError, UsageError
from gpudebug.core.evidence.build import EVIDENCE_RULE
from gpudebug.core.records import RunRecord
from gpudebug.core.redaction.redact import Redactor
from gpudebug.core.verdict.gates.outcome import WITHOUT_LOG
from gpudebug.core.words import Outcome, counted
from gpudebug.edges import store, templates
from gpudebug.edges.host import now
from gpudebug.engine.campaign.files import training_environment, workload_of
from gpudebug.engine.campaign.progress_edit import splice
from gpudebug.engine.run.evidence import evidence_again
from gpudebug.engine.run.job import MeasuredRun
from gpudebug.engine.run.live_line import Report
from gpudebug.engine.run.prepare import Cycle, claimed_campaign
from gpudebug.engine.run.readings import read_log, refuse_binary
from gpudebug.engine.run.recordings import HEAD, one_run, recording
from gpudebug.engine.trial import baseline
from gpudebug.engine.trial.baseline_entry import entry_fields, learning_of


class NotImported(GpudebugError):
    """A baseline that was not measured here is a person's word, not an agent's."""

    code = "import"


def import_baseline(
    directory: Path,
    role: str,
    csv: Path,
    log: Path | None,
    report: Report,
    session: str | None = None,
    number: int | None = None,
) -> RecordedBaseline:
    """Copy a completed run's samples and log into a run folder and enter it as the `role` baseline.

    The samples are ours or of another monitor, which become rows of ours; of several runs in a file `number`
    says which. That the run was of this command, code and
    device is the caller's word: it is recorded as such. Raises NotImported where an agent's session calls.
    """
    if session is not None:
        raise NotImported(
            f"session {session} cannot import a baseline: every verdict would rest on figures that it wrote",
            file=str(csv),
            next="gpudebug baseline measures one; a person can import",
        )
    with claimed_campaign(directory, report, "gpudebug baseline --import", pins=True) as cycle:
        if role not in cycle.setup.roles:
            raise UsageError(f"this campaign has no {role}", next="add `reference:` to gpudebug.yaml")
        measured, dropped = _import(cycle, role, csv, log, number)
        learning = learning_of(cycle.setup.config, [measured])
        fields = entry_fields(role, [measured], cycle.setup.metric, learning=learning)
        text = templates.render("baseline.md.j2", **fields)
        splice(cycle.setup, lambda d: progress.set_baseline(d, role, text))
        return baseline.answer(
            cycle.setup, cycle.loaded.campaign, role, f"imported from {csv}", [measured], dropped
        )


def _import(
    cycle: Cycle, role: str, csv: Path, log: Path | None, number: int | None
) -> tuple[MeasuredRun, tuple[str, ...]]:
    """Return the imported run, and what of its file was assumed, left out or could not be read."""
    loaded = cycle.loaded
    workload = workload_of(loaded.setup.config, role)
    assert workload is not None
    recorded = recording(csv)
    run = one_run(recorded, number, str(csv))
    if not recorded.timed:
        raise GpudebugError(
            "has no time of its rows", file=str(csv), next="record again with --query-gpu=timestamp,index,…"
        )
    samples = run.samples
    notes = recorded.notes
    if samples.unreadable and not notes:
        notes = (f"{counted(samples.unreadable, 'row')} of {csv.name} could not be read",)
    if not samples.rows:
        raise GpudebugError("has no sample", file=str(csv), next="import a CSV with rows")
    output = store.read_file(log, follow=True) if log else b""
    if log:
        refuse_binary(log, output[:HEAD], "the run's output")
    folder = loaded.setup.workspace.new_run(f"baseline-{role}")
    text = run.text.encode() if run.text is not None else store.read_file(csv, follow=True)
    store.copy_into(folder.samples, text)
    store.copy_into(folder.log, output)
    failure = read_log(
        folder.log, samples, loaded.setup.config.patterns, exit_status=None, signal=None
    ).failure
    argv = Redactor(training_environment(workload), workload.argv()).redact_argv(workload.argv())
    record = RunRecord(
        gpudebug=__version__,
        evidence_rule=EVIDENCE_RULE,
        name=folder.name,
        campaign=loaded.setup.config.campaign,
        role=f"baseline-{role}",
        command=shlex.join(argv),
        argv=argv,
        cwd=workload.cwd,
        identity=loaded.history.identities[role],
        settings=loaded.setup.compared.digest,
        warmup_s=loaded.setup.config.protocol.warmup,
        patterns=loaded.setup.config.patterns,
        start=now(),
        end=now(),
        duration_s=samples.rows[-1].elapsed,
        outcome=Outcome.CRASHED if failure else Outcome.COMPLETED,
        reason=f"imported from {csv.name}{'' if log else WITHOUT_LOG}",
        failure=failure,
    )
    evidence = evidence_again(folder, record)
    folder.write("run.json", record)
    folder.write("evidence.json", evidence)
    loaded.setup.workspace.seal(folder)
    if failure:
        raise GpudebugError(
            f"the imported run failed ({failure.kind})", file=str(log), next="import a run that completed"
        )
    return MeasuredRun(folder, record, evidence), notes
