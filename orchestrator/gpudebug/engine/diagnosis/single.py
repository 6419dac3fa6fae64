"""One run diagnosed by itself, of a campaign or of none: its facts, and what would test each cause here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpudebug.core.answers.diagnosis import CauseTest, DiagnosedCause, KnownCause
from gpudebug.core.catalogue import Cause
from gpudebug.core.catalogue.model import text_of
from gpudebug.core.catalogue.offers import KnownCommand, interventions_for
from gpudebug.core.change.permits import NOTHING_MORE, Allowed
from gpudebug.core.diagnosis.code_lines import calls_of, cores_for
from gpudebug.core.diagnosis.facts import facts_of
from gpudebug.core.diagnosis.model import Diagnosis, DiagnosisFacts, Ranked
from gpudebug.core.errors import GpudebugError, StoreError
from gpudebug.edges import store
from gpudebug.engine.campaign.files import read_config
from gpudebug.engine.run import adapters
from gpudebug.engine.run.adapters import Known

Record = Mapping[str, Any]


@dataclass(frozen=True)
class SingleRun:
    """A run with what is known of its command: `argv`, () if it was not recorded, its program, the version of
    its framework; `record` is run.json, None without a run folder. `locked` and `allowed` are the settings of
    the campaign `root`, None without one."""

    facts: DiagnosisFacts
    evidence: Record
    argv: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    known: Known = field(default_factory=lambda: Known(None, None))
    version: str | None = None
    root: Path | None = None
    locked: Sequence[str] = ()
    allowed: Allowed = NOTHING_MORE
    record: Record | None = None

    def test_of(self, ranked: Ranked, cause: Cause) -> CauseTest:
        """Return what would test the cause in this command; of a run without one, in its framework or any."""
        command = f"gpudebug propose --from-catalogue {ranked.id}" if self.root is not None else None
        change, instructions = self._offer(cause) if self.argv else _general(cause, self.facts.framework)
        return CauseTest(title=ranked.title, change=change, instructions=instructions, command=command)

    def _offer(self, cause: Cause) -> tuple[str | None, str | None]:
        found = interventions_for(
            cause,
            KnownCommand(
                self.argv,
                self.variables,
                self.known.found,
                self.version,
                self.known.program,
                calls_of(cause, self.facts),
            ),
            cores=cores_for(cause, self.facts),
            locked=self.locked,
            allowed=self.allowed,
            printed=self.evidence.get("printed") or {},
            total_steps=self.evidence.get("total_steps"),
        ).offers
        return (found[0].change, found[0].instructions) if found else (None, None)


def single_run(evidence: Record, record: Record, root: Path | None) -> SingleRun:
    """Return a run from its evidence.json and run.json; in the campaign at `root` under its settings."""
    argv = tuple(str(word) for word in record.get("argv") or ())
    known = adapters.of_command(argv, Path(str(record.get("cwd") or "."))) if argv else Known(None, None)
    packages = {str(k): str(v) for k, v in (record.get("packages") or {}).items()}
    version = adapters.version_of(known.framework, packages) if known.framework else None
    facts = facts_of([evidence], [record], known.started(argv), trace=evidence.get("trace"))
    locked, allowed = _settings(root)
    seen = {**(record.get("knobs") or {}), **(record.get("variables") or {})}
    variables = {str(name): str(value) for name, value in seen.items() if value is not None}
    return SingleRun(facts, evidence, argv, variables, known, version, root, locked, allowed)


def of_folder(folder: store.RunFolder, root: Path | None) -> SingleRun:
    """Return a run from its folder. StoreError if it was not finished."""
    record = read_record(folder, "run.json")
    return replace(single_run(read_record(folder, "evidence.json"), record, root), record=record)


def read_record(folder: store.RunFolder, name: str) -> dict[str, object]:
    """Return a record of the run. StoreError if it is none."""
    found = folder.read(name)
    if not isinstance(found, dict):
        raise StoreError("is not a run's record", file=str(folder.path / name), next="name another run")
    return found


def _settings(root: Path | None) -> tuple[Sequence[str], Allowed]:
    """What the campaign locks and allows; one whose settings cannot be read still has runs to look at."""
    if root is None:
        return (), NOTHING_MORE
    try:
        config = read_config(store.Workspace(root))
    except GpudebugError:
        return (), NOTHING_MORE
    return config.locked, config.allowed


def _general(cause: Cause, framework: str | None) -> tuple[str | None, str | None]:
    """Return the catalogue's change for the framework, in `propose`'s syntax, or what is to be written."""
    interventions = cause.interventions
    found = (interventions[name] for name in (framework, "env", "any") if name in interventions)
    known = next((one for one in found if not one.needs), None)
    return (None, None) if known is None else (text_of(known), known.code)


def diagnosed(ranked: Ranked, test: CauseTest) -> DiagnosedCause:
    """Return a cause with what would test it."""
    return DiagnosedCause(
        id=ranked.id,
        title=ranked.title,
        probability=ranked.probability,
        exposed=ranked.exposed,
        ceiling_pp=ranked.ceiling_pp,
        expected_util=ranked.expected_util,
        ceiling_ratio=ranked.ceiling_ratio,
        ceiling_steps_per_s=ranked.ceiling_steps_per_s,
        for_=ranked.speaks_for,
        against=ranked.speaks_against,
        hypothesis=test,
        line=str(ranked.line) if ranked.line else None,
    )


def known_causes(diagnosis: Diagnosis) -> tuple[KnownCause, ...]:
    """Return those that need no run to be known."""
    return tuple(KnownCause(id=g.id, title=g.title, for_=g.speaks_for) for g in diagnosis.gates)
