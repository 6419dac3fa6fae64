"""What run.json says was counted of a run's files, and of the code that it ran, beside what is here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from gpudebug.core.errors import GpudebugError
from gpudebug.core.records import Counted, RunRecord
from gpudebug.core.redaction.redact import REDACTED
from gpudebug.core.words import INFRASTRUCTURE
from gpudebug.edges import git, launcher, store
from gpudebug.engine.campaign.files import Written
from gpudebug.engine.campaign.measured_code import digest_of, look
from gpudebug.engine.run import counts
from gpudebug.engine.run.evidence import LONGEST_RECORD
from gpudebug.engine.run.files import files_of, files_with
from gpudebug.engine.verify.findings import Finding, Findings

_FILES = (counts.SAMPLES, counts.LOG, launcher.PROBE, counts.PATCH)


def check_written(
    folder: store.RunFolder, record: RunRecord, where: Finding, altered: frozenset[str], findings: Findings
) -> None:
    """Each file of a run beside what its writer counted, and its patch beside the digest of its change. A
    record of 0.1.0 says nothing of that."""
    # Of a run that was cut off nothing is believed; what was altered since it was sealed is named already.
    if record.written is None or record.outcome in INFRASTRUCTURE:
        return
    beside = files_with(files_of(folder), record.devices, record.node).beside.values()
    for name in (*_FILES, *(path.name for path in beside)):
        count = record.written.get(name)
        if count is None or name in altered or (name == launcher.PROBE and count.bytes > LONGEST_RECORD):
            continue
        how = counts.change_of(folder.path / name, count, whole=name not in counts.GROWING)
        if how is not None:
            findings.differs(
                where.but(
                    field=f"written.{name}",
                    expected=_shown(count),
                    found=how,
                    file=folder.path / name,
                    why="not what was counted while the run wrote it",
                )
            )
    if counts.PATCH not in altered:
        _check_patch(folder, record, where, findings)


def _check_patch(folder: store.RunFolder, record: RunRecord, where: Finding, findings: Findings) -> None:
    """The patch that lies here is that of the change whose digest the record has."""
    # The digest is of the change as it was written.
    if record.change is None or record.change_digest is None or REDACTED in record.change:
        return
    path = folder.path / counts.PATCH
    found = digest_of(record.change, store.read_file(path) if folder.has(counts.PATCH) else None)
    if found != record.change_digest:
        why = "the patch is not that of the change that was tested"
        findings.differs(
            where.but(field=counts.PATCH, expected=record.change_digest, found=found, file=path, why=why)
        )


def _shown(count: Counted) -> str:
    return f"{count.bytes} bytes, sha256 {count.sha256[:16]}…"


def check_code(written: Written, records: Sequence[RunRecord], findings: Findings) -> None:
    """The code that each run was started in, as it lay there, beside that of the others of the same code."""
    known = [r for r in records if r.checked_out is not None]
    worktrees = [r for r in known if _in_worktree(r)]
    by_commit: dict[str | None, RunRecord] = {}
    for record in known:
        if record not in worktrees:
            tree = record.identity.get("tree")
            if tree not in (None, record.checked_out):
                _differs(written, findings, record, str(tree), "the code was another when its run began")
            continue
        first = by_commit.setdefault(record.commit, record)
        if record.commit is not None and first.checked_out != record.checked_out:
            why = f"runs/{first.name} ran the same commit"
            _differs(written, findings, record, str(first.checked_out), why)
    _check_bases(written, [r for r in worktrees if r.hypothesis is not None], known, findings)


def _in_worktree(record: RunRecord) -> bool:
    """Tell whether the run was in a worktree of gpudebug's, wherever the repository was then."""
    parts = Path(record.cwd).parts
    return store.WORKTREES in pairwise(parts)


def _check_bases(
    written: Written, trials: Sequence[RunRecord], known: Sequence[RunRecord], findings: Findings
) -> None:
    """What each trial changed is the code of the baseline, if both can still be seen."""
    trees = {r.checked_out for r in known if r.role.startswith("baseline-") and r not in trials}
    if not trials:
        return
    try:
        here = look(written.workspace, written.progress_path)
    except GpudebugError:
        return
    for trial in trials:
        if trial.commit is None or trial.identity.get("tree") != here.tree or here.tree not in trees:
            continue
        patched = written.workspace.run(trial.name).has(counts.PATCH)
        base = git.base_of(here.top, trial.commit, patched=patched)
        other = _other(base, here.entries) if base is not None else []
        if other:
            found = f"{', '.join(other[:3])}{' and more' if len(other) > 3 else ''} of its base"
            why = f"its {'patch went onto' if patched else 'flags ran'} other code than the baseline measured"
            _differs(written, findings, trial, here.tree, why, found)


def _other(base: Mapping[bytes, bytes], here: Mapping[bytes, bytes]) -> list[str]:
    """Return the files of the checkout that the commit has with another content."""
    changed = [path for path, content in here.items() if base.get(path, content) != content]
    return [path.decode("utf-8", "replace") for path in sorted(changed)]


def _differs(
    written: Written, findings: Findings, record: RunRecord, expected: str, why: str, found: str | None = None
) -> None:
    folder = written.workspace.run(record.name).path
    findings.differs(
        Finding(
            "checked_out",
            expected=expected,
            found=found or record.checked_out,
            file=folder / "run.json",
            why=why,
            hypothesis=record.hypothesis,
            run=record.name,
        )
    )
