"""What the commands on hypotheses answer: `propose`, `accept`, `release`, `reopen`, `export` and `loop`."""

from __future__ import annotations

from dataclasses import dataclass

from gpudebug.core.answers.answer import Answer
from gpudebug.core.answers.status import HypothesisRow
from gpudebug.core.records import Estimate
from gpudebug.core.words import Status


@dataclass(frozen=True, kw_only=True)
class ProposedHypothesis:
    """One that was added. `intervention` is null until it is set, `cause` without one of the catalogue."""

    hypothesis: int
    title: str
    intervention: str | None
    cause: str | None


@dataclass(frozen=True, kw_only=True)
class ProposeAnswer(Answer):
    """The added hypotheses; the answer's own `hypothesis` to `cause` are those of the first."""

    action: str = "proposed"
    campaign: str
    hypothesis: int
    title: str
    intervention: str | None
    cause: str | None
    hypotheses: tuple[ProposedHypothesis, ...]
    notes: tuple[str, ...]
    next_command: str = "gpudebug next"
    files: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AcceptAnswer(Answer):
    """`order` counts the accepted ones from 1; `already`: it was accepted before this call. `command` is the
    workload with all that is accepted: what to run from now on."""

    action: str = "accepted"
    campaign: str
    hypothesis: int
    title: str
    intervention: str | None
    order: int
    already: bool
    notes: tuple[str, ...]
    why: str
    command: str
    next_command: str = "gpudebug next"
    files: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ReleaseAnswer(Answer):
    """`kept` is the patch or worktree with the change that was begun; null if there was none."""

    action: str = "released"
    campaign: str
    hypothesis: int
    kept: str | None
    why: str
    next_command: str = "gpudebug next"
    files: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ReopenAnswer(Answer):
    """`was` is the status before; `already`: it was UNTESTED. `earlier_runs` are names of kept runs."""

    action: str = "reopened"
    campaign: str
    hypothesis: int
    title: str
    was: Status
    already: bool
    earlier_runs: tuple[str, ...]
    why: str
    next_command: str = "gpudebug next"
    files: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CombinedGain:
    """What the accepted changes are worth together: the workload with all of them against that without any.

    `paired` says that both sides were run in turn, when the baseline was recorded after the last `accept`;
    else it is known of a lone change alone, whose trial's runs are the baseline: by its verdict. `agrees`
    says whether the only accepted change gained as much in its trial, as far as both intervals tell; null if
    that is no question. `delta` is the metric's change: percentage
    points of utilisation, else a ratio above 1 if it is better. `before` and `after` are mean utilisations
    in percent, `metric_before` and `metric_after` those of the metric in its unit. `why` says why all of
    these are null; else `throughput_ratio`, and `throughput` as text, are null if a run lacks it. `notes`:
    what else the figure holds beside the changes.
    """

    metric: str
    delta: Estimate | None = None
    throughput_ratio: Estimate | None = None
    before: float | None = None
    after: float | None = None
    metric_before: float | None = None
    metric_after: float | None = None
    text: str | None = None
    throughput: str | None = None
    why: str | None = None
    paired: bool = False
    agrees: bool | None = None
    notes: tuple[str, ...] = ()
    runs_before: tuple[str, ...]
    runs_after: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ExportedHypothesis:
    """An accepted one, measured alone. `order` counts the accepted ones from 1.

    `delta` is as in `CombinedGain`, `improvement` and `throughput` are texts of it and of the ratio. `patch`
    names its file of the export; null if it has none, or if the checkout has it (`in_checkout`).
    """

    number: int
    title: str
    order: int | None
    intervention: str
    improvement: str
    throughput: str
    metric: str
    delta: Estimate | None
    throughput_ratio: Estimate | None
    patch: str | None
    in_checkout: bool


@dataclass(frozen=True, kw_only=True)
class ExportAnswer(Answer):
    """`patches` are names of files in `directory`, in the order in which `next_command` applies them.

    `next_command` is null without patches, `command` the workload's, `replayed` whether recordings were the
    device.
    """

    action: str = "exported"
    campaign: str
    directory: str
    patches: tuple[str, ...]
    hypotheses: tuple[ExportedHypothesis, ...]
    combined: CombinedGain
    command: str
    replayed: bool
    notes: tuple[str, ...]
    next_command: str | None
    files: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LoopSession:
    """An agent's session: what it was asked (`action`), how it ended, and what came of it.

    `exit_status` is null if a `signal` ended it; these and `outcome` are null if its end was not seen.
    `proposed` are numbers of hypotheses; `kept` is the change that was begun and given back. `hypothesis` is
    the one that was tested, else the one that was asked for.
    """

    session: str
    exit_status: int | None
    signal: int | None
    outcome: str | None
    duration_s: float | None
    action: str
    proposed: tuple[int, ...] | None
    verdict: str | None
    why: str | None
    kept: str | None
    hypothesis: int | None
    transcript: str


@dataclass(frozen=True, kw_only=True)
class LoopAnswer(Answer):
    """`hypotheses` are those of `status`, all of them.

    `ending` is `failures`, `idle`, `settings changed` or `error` if the loop gave up, else the word for how
    the campaign or a budget ended. `accepted` are numbers in the order of their acceptance,
    `checkout_changed` paths that changed meanwhile, not by gpudebug.
    """

    action: str = "stop"
    ending: str
    why: str
    campaign: str
    sessions: tuple[LoopSession, ...]
    hypotheses: tuple[HypothesisRow, ...]
    accepted: tuple[int, ...]
    checkout_changed: tuple[str, ...]
    next_command: str
    files: tuple[str, ...]
