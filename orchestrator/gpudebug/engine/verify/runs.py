"""One run folder: its digests against its manifest, its evidence derived again. Each is read once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpudebug import __version__
from gpudebug.core.errors import GpudebugError
from gpudebug.core.evidence import sound
from gpudebug.core.evidence.build import EVIDENCE_RULE
from gpudebug.core.records import Evidence, Manifest, RunRecord
from gpudebug.core.redaction import alike
from gpudebug.core.text.json_lines import line_of
from gpudebug.core.words import Outcome
from gpudebug.edges import store
from gpudebug.engine.run.evidence import evidence_again
from gpudebug.engine.run.job import MeasuredRun
from gpudebug.engine.verify.findings import Finding, Findings
from gpudebug.engine.verify.measured import check_written

# What later commands read from a run folder; any other file in it proves and spoils nothing.
_OURS = frozenset(
    {
        "run.json",
        "samples.csv",
        "sampler.json",
        "train.log",
        "server.log",
        "probe.jsonl",
        "loaded.jsonl",
        "sections.json",
        "change.patch",
        "learning.jsonl",
        "evidence.json",
        "verdict.json",
    }
)


@dataclass(frozen=True)
class Checked:
    """A run folder that is here. `measured` is None if nothing can be judged from it.

    `altered` are files that are not as they were sealed. The evidence is what follows from samples and log.
    """

    folder: store.RunFolder
    measured: MeasuredRun | None = None
    altered: frozenset[str] = frozenset()


def is_older(runs: Iterable[MeasuredRun]) -> bool:
    """Tell whether another version recorded one of these runs, so that its prose may have other words."""
    return any(map(_is_older, (run.record for run in runs)))


def _is_older(record: RunRecord) -> bool:
    return (record.gpudebug, record.evidence_rule) != (__version__, EVIDENCE_RULE)


class CheckedRuns:
    """The run folders of a campaign, each checked when it is first asked for."""

    def __init__(self, workspace: store.Workspace, findings: Findings, report: Callable[[str], None]) -> None:
        self._workspace = workspace
        self._report = report
        self._findings = findings
        self._here = frozenset(workspace.run_names())
        self._checked: dict[str, Checked] = {}
        self.files = 0

    @property
    def all_absent(self) -> bool:
        """Whether there is no run folder at all, as in a clone: runs/ is ignored by git."""
        return not self._here

    @property
    def names(self) -> list[str]:
        return sorted(self._checked, key=store.run_number)

    @property
    def records(self) -> list[RunRecord]:
        """run.json of each run that was checked, in the order of their numbers."""
        found = (self._checked[name].measured for name in self.names)
        return [measured.record for measured in found if measured is not None]

    def get(self, name: str, hypothesis: int | None) -> Checked | None:
        """The run, checked; None if it is not here. `hypothesis` is the one that names it as evidence."""
        if name not in self._here:
            return None
        if name not in self._checked:
            self._report(f"checking runs/{name}")
            self._checked[name] = self._check(self._workspace.run(name), hypothesis)
        return self._checked[name]

    def named(self, names: Sequence[str], where: Finding) -> list[Checked] | None:
        """Return the runs that `where` names, checked; None if one is missing, which is a problem there."""
        checked = [self.get(name, where.hypothesis) for name in names]
        missing = [name for name, run in zip(names, checked, strict=True) if run is None]
        for name in missing:
            why = "the run folder is not here, others are"
            self._findings.differs(where.but(found=f"runs/{name}", why=why, run=name))
        return None if missing else [run for run in checked if run is not None]

    def _check(self, folder: store.RunFolder, hypothesis: int | None) -> Checked:
        where = Finding("", file=folder.path, hypothesis=hypothesis, run=folder.name)
        try:
            altered = self._altered(folder, where)
            if altered is None:
                return Checked(folder)
            return Checked(folder, self._measured(folder, where, altered), altered)
        except (store.OtherFormat, store.NotPermitted) as e:
            self._findings.unchecked.append(f"run {folder.name}: {e.file} {e.message}")
        except GpudebugError as e:
            # What names no file is wrong with how run.json says to read the others.
            path = Path(e.file or folder.path / "run.json")
            self._findings.differs(where.but(field=path.name, file=path, line=e.line, why=e.message))
        return Checked(folder)

    def _altered(self, folder: store.RunFolder, where: Finding) -> frozenset[str] | None:
        """Names of files that are not as they were sealed; None if the run was never sealed."""
        manifest = folder.path / "manifest.json"
        if not folder.sealed:
            why = "the run was never finished: an unsealed run is not evidence"
            self._findings.differs(where.but(field="manifest.json", file=manifest, why=why))
            return None
        sealed = _valid(Manifest, folder.read("manifest.json"), folder, "manifest.json")
        if sealed.run != folder.name:
            why = "the folder is another run's, under a new name"
            self._findings.differs(where.but(field="run", expected=sealed.run, found=folder.name, why=why))
        # A training of 0.1.0 may have named folders of its own like these.
        found = folder.digests(job=any(name.startswith(("job/", "records/")) for name in sealed.files))
        self.files += len(found)
        altered = set()
        for name in sorted(sealed.files.keys() | (found.keys() & _OURS)):
            expected, now = sealed.files.get(name), found.get(name)
            if expected != now:
                altered.add(name)
                why = "missing" if now is None else "altered" if expected else "added"
                self._findings.differs(
                    where.but(
                        field=name,
                        expected=short_digest(expected),
                        found=short_digest(now),
                        file=folder.path / name,
                        why=f"{why} since the run was sealed",
                    )
                )
        return frozenset(altered)

    def _measured(
        self, folder: store.RunFolder, where: Finding, altered: frozenset[str]
    ) -> MeasuredRun | None:
        if any(not folder.has(name) for name in altered & {"run.json", "evidence.json"}):
            return None
        record = _valid(RunRecord, folder.read("run.json"), folder, "run.json")
        check_written(folder, record, where, altered, self._findings)
        stored = folder.read("evidence.json")
        evidence = _valid(Evidence, stored, folder, "evidence.json")
        if any(not folder.has(name) for name in altered & {"samples.csv", "train.log"}):
            return MeasuredRun(folder, record, evidence)
        # What was cut off is sealed with blank evidence, whatever its files would say.
        if record.outcome in (None, Outcome.INTERRUPTED):
            return MeasuredRun(folder, record, evidence)
        try:
            again = evidence_again(folder, record)
        except (ValueError, TypeError, ArithmeticError, LookupError):
            why = "its samples and log do not read as it records"
            raise GpudebugError(why, file=str(folder.path / "run.json")) from None
        older = _is_older(record)
        differences = list(alike.differences(again.model_dump(mode="json"), stored, older=older))
        if not differences:
            return MeasuredRun(folder, record, evidence)
        if older and not altered:
            self._read_otherwise(folder, record, differences)
            return MeasuredRun(folder, record, evidence)
        # Where samples or log are not what they were, the evidence that was sealed is nearer to the truth.
        kept = bool(altered) and "evidence.json" not in altered
        if kept:
            where = where.but(why=f"as {' and '.join(sorted(altered))} reads now")
        report(self._findings, where, folder, "evidence.json", differences)
        return MeasuredRun(folder, record, evidence if kept else again)

    def _read_otherwise(
        self, folder: store.RunFolder, record: RunRecord, differences: list[alike.ValueDifference]
    ) -> None:
        fields = ", ".join(d.field for d in differences[:5]) + (", …" if len(differences) > 5 else "")
        self._findings.unchecked.append(
            f"run {folder.name}: gpudebug {record.gpudebug or 'of an earlier version'} read its samples and "
            f"log otherwise than this one does ({fields})"
        )


def report(
    findings: Findings,
    where: Finding,
    folder: store.RunFolder,
    name: str,
    differences: Sequence[alike.ValueDifference],
) -> None:
    """A problem for each field of the JSON file `name` that differs, with its line."""
    path = folder.path / name
    text = store.read_file(path).decode("utf-8", "surrogateescape")
    for d in differences:
        line = line_of(text, (s.place if isinstance(s, alike.ListItem) else s for s in d.steps))
        findings.differs(where.but(field=d.field, expected=d.expected, found=d.found, file=path, line=line))


def _valid(model: Any, data: Any, folder: store.RunFolder, name: str) -> Any:
    try:
        if sound.plain({key: value for key, value in dict(data).items() if key != "loss"}):
            return model.model_validate(data)
    except (TypeError, ValueError):
        pass
    raise GpudebugError("is not what gpudebug writes", file=str(folder.path / name))


def short_digest(digest: str | None) -> str | None:
    """Return a SHA-256 as it is shown; None for no file."""
    return f"sha256 {digest[:16]}…" if digest else None
