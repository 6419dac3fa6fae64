"""`init --from RUN`: the command of one look becomes a campaign, and the look its first baseline run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpudebug.core.command.synonyms import used_by
from gpudebug.core.compare.checklist import command_of
from gpudebug.core.errors import StoreError, UsageError
from gpudebug.core.records import Evidence, Manifest, RunRecord
from gpudebug.core.redaction.redact import REDACTED
from gpudebug.core.verdict.run_plan import LEAST_WINDOW_S, losses_awaited
from gpudebug.core.words import AS_PLANNED, Outcome
from gpudebug.edges import store
from gpudebug.engine.campaign.load import load
from gpudebug.engine.run import adapters
from gpudebug.engine.run.reach import beyond_reach
from gpudebug.engine.trial.as_baseline import copied

_AGAIN = "gpudebug why -- CMD makes another"
_DEVICE = " CUDA_VISIBLE_DEVICES="


@dataclass(frozen=True)
class Look:
    """A run that `init` begins with. Its folder is sealed."""

    folder: store.RunFolder
    record: RunRecord
    evidence: Evidence

    @property
    def command(self) -> str:
        """Its command as it was asked for, for a shell to split. UsageError if parts are redacted."""
        if any(REDACTED in word for word in self.record.argv):
            raise UsageError(
                f"the command of {self.folder.name} has a secret that was not recorded",
                next=f"gpudebug init --from {self.folder.name} --command 'YOUR TRAINING COMMAND'",
            )
        return command_of(self.record)

    @property
    def settings(self) -> dict[str, str]:
        """The settings of gpudebug.yaml under which it was made, beyond the defaults."""
        device = self.record.identity.get("device", "auto").partition(_DEVICE)[0]
        return {"device": device} if device != "auto" else {}


def look_of(directory: Path, run: str) -> Look:
    """A run by its folder. UsageError if it is none, StoreError if it was not finished or is not ours."""
    path = directory / run
    if not os.path.isfile(path / "run.json"):
        raise UsageError(f"{run} is not a run folder", next="name the folder that gpudebug why printed")
    folder = store.RunFolder(path, lambda text: text)
    if not folder.sealed:
        raise StoreError("the run was not finished", file=str(path), next=_AGAIN)
    try:
        record = RunRecord.model_validate(folder.read("run.json"))
        evidence = Evidence.model_validate(folder.read("evidence.json"))
    except ValueError:
        raise StoreError(
            "its records are not what gpudebug writes",
            file=str(path),
            next="gpudebug why -- CMD makes another",
        ) from None
    return Look(folder, record, evidence)


def few_losses(look: Look) -> list[str]:
    """Return what the campaign's runs will wait for if the look shows too little of the loss."""
    awaited, advice = losses_awaited(look.evidence), look.evidence.loss.advice
    return [f"{awaited}; {advice}" if advice else awaited] if awaited else []


def carried_over(directory: Path, look: Look, session: str | None) -> str:
    """Make the look the first run of the workload's baseline if it is one of the campaign in `directory`; one
    line that says so, or why it stays a diagnosis."""
    why = next(_against(directory, look, session), None)
    if why is not None:
        return f"{look.folder.name} stays a diagnosis and is no run of the baseline: {why}"
    name = _carry(directory, look)
    return f"{look.folder.name} is the first run of the baseline: runs/{name}"


def _against(directory: Path, look: Look, session: str | None) -> Iterator[str]:
    record, evidence = look.record, look.evidence
    if session is not None:
        yield "a person has to run init --from"
    if record.attached is not None:
        yield "gpudebug did not start it: it is a look at a job that ran already"
    if not record.identity:
        yield "its code was in no git repository with a commit when it ran"
    if record.replayed:
        yield "it was played back from a recording"
    if record.outcome not in AS_PLANNED or evidence.window is None:
        yield f"it did not complete ({record.outcome}) or has no steady window"
    window = evidence.window.duration_s if evidence.window else 0.0
    if record.outcome is Outcome.ENDED_BY_PLAN and window < LEAST_WINDOW_S:
        yield f"it was ended after {window:.0f} s of steady training, a baseline after {LEAST_WINDOW_S:.0f}"
    if record.set_aside:
        yield record.set_aside
    beyond = beyond_reach(record.argv, Path(record.cwd))
    if beyond is not None:
        yield beyond.unseen
    files = Manifest.model_validate(look.folder.read("manifest.json")).files
    if not look.folder.intact(*files):
        yield "its files were altered after it was sealed"
    wanted = load(directory, session).history.identities["workload"]
    differ = [key for key in wanted if record.identity.get(key) != wanted[key]]
    if differ:
        yield f"{' and '.join(differ)} differ{'s' if len(differ) == 1 else ''} from the campaign's"


def _carry(directory: Path, look: Look) -> str:
    """Copy it into the campaign's runs as a sealed run of the baseline; its name there."""
    setup = load(directory).setup
    synonyms = adapters.synonyms_of(setup.workspace.root, setup.config.workload)
    now = {
        "campaign": setup.config.campaign,
        "settings": setup.compared.digest,
        "synonyms": used_by(look.record.argv, synonyms),
    }
    return copied(setup.workspace, look.folder, now).folder.name
