"""A campaign as its files record it: what all work on it is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpudebug.core import progress
from gpudebug.core.campaign import decide
from gpudebug.core.campaign.accepted_changes import AcceptedChange
from gpudebug.core.change.intervention import Intervention
from gpudebug.core.change.intervention import parse as parse_intervention
from gpudebug.core.config import Config
from gpudebug.core.errors import InterventionError
from gpudebug.core.progress import claims
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.statistics.units import AUTO
from gpudebug.core.text.values import short_digest
from gpudebug.core.words import Status
from gpudebug.edges import git, store
from gpudebug.edges.store import leases
from gpudebug.engine.campaign.accepted import Acceptances, recorded
from gpudebug.engine.campaign.files import ROLES, workload_of
from gpudebug.engine.campaign.judged import judged, mean_of
from gpudebug.engine.campaign.pin_record import ComparedSettings
from gpudebug.engine.campaign.verdicts import Judged, Unlisted


def in_force(
    entries: Sequence[progress.HypothesisEntry], trials: Mapping[int, Judged], acceptances: Acceptances
) -> tuple[progress.HypothesisEntry, ...]:
    """Those whose changes are part of what runs: verdict and change are still those that were accepted.

    A campaign of 0.1.0 recorded no acceptance: of its lines, those of runs that git tracks do not count.
    """
    if acceptances.entries is None:
        return tuple(h for h in entries if trials[h.number].recorded_here)
    return tuple(h for h in entries if trials[h.number].held)


@dataclass(frozen=True)
class CampaignBaseline:
    """A baseline as the run folders record it. `why` is None when it is valid now, `devices` is the
    campaign's `criteria.devices`."""

    role: str
    why: str | None
    runs: tuple[str, ...] = ()
    evidence: tuple[dict[str, Any], ...] = ()
    records: tuple[dict[str, Any], ...] = ()
    unverified: bool = False
    devices: str | None = None

    @property
    def utilisation(self) -> float | None:
        """The mean over devices, as it was measured."""
        return mean_of(Metric(), self.evidence)

    def figure(self, metric: Metric) -> float | None:
        """The mean of a metric over the runs that have it; utilisation as the campaign is judged by it."""
        return mean_of(metric, judged(self.devices, self.evidence) if metric.points else self.evidence)


@dataclass(frozen=True)
class MeasuredCode:
    """The code that a campaign measures: the tree that its base was made of, and the patches accepted since.

    `drifted` says that the checkout is another tree by now, which this caller may not make the base. `stack`
    are the changes of the accepted hypotheses, patches and others. `applied` says that the checkout has
    all these patches by now, and nothing else changed: it is the tree that the baseline ran in.
    """

    tree: str
    patches: tuple[bytes, ...]
    drifted: bool = False
    stack: tuple[AcceptedChange, ...] = ()
    applied: bool = False

    @property
    def digest(self) -> str:
        """What a baseline of this code is valid for: the tree's own digest if nothing was accepted."""
        if not self.patches:
            return self.tree
        return short_digest("\0".join([self.tree, *map(short_digest, self.patches)]).encode())


Trials = Mapping[int, Judged]
"""What the runs say of each hypothesis, by its number."""
Records = dict[str, dict[str, Any]]
"""run.json of run folders, by their names."""
Baselines = Mapping[str, CampaignBaseline]
Identities = Mapping[str, dict[str, str]]
"""By the role of a workload: its baseline, and what one is valid for now."""


@dataclass(eq=False)
class Setup:
    """Where a campaign is, what it was asked for, and who asks: `session` is the caller's.

    `config.workload` is the effective one: gpudebug.yaml's with the flags and variables that were accepted,
    by a command and whose verdicts have their runs here: no hand edit of the file becomes a command.
    `compared` are the settings of gpudebug.yaml as it was read, beside the pinned ones.
    """

    workspace: store.Workspace
    config: Config
    progress_path: Path
    checkout: git.Checkout
    compared: ComparedSettings
    session: str | None = None

    @property
    def metric(self) -> Metric:
        work = "" if self.config.work == AUTO else self.config.work
        return Metric(self.config.metric, lower=self.config.direction == "lower", work=(work, ""))

    @property
    def roles(self) -> tuple[str, ...]:
        return tuple(r for r in ROLES if workload_of(self.config, r) is not None)


@dataclass(frozen=True)
class Entries:
    """The hypotheses as the progress file has them, and what runs and commands say of each.

    `acceptances` is what `accept` recorded, `leases` all that hold, whichever session has them;
    `interventions` are the changes still to be judged, `problems` what is wrong with those that cannot be.
    """

    document: progress.ProgressFile
    trials: Trials
    acceptances: Acceptances
    interventions: Mapping[int, Intervention] = field(default_factory=dict)
    problems: Mapping[int, InterventionError] = field(default_factory=dict)
    leases: Mapping[int, leases.Lease] = field(default_factory=dict)
    session: str | None = None

    def claimed(self, entry: progress.HypothesisEntry) -> decide.Claimed | None:
        """Whose live lease a TESTING entry is under; None if the claim of the entry has none."""
        if entry.status is not Status.TESTING:
            return None
        held, lease = claims.on(entry), self.leases.get(entry.number)
        if held is None or lease is None or (lease.session, lease.since) != held:
            return None
        return decide.Claimed.MINE if lease.session == self.session else decide.Claimed.OTHERS

    def change_of(self, entry: progress.HypothesisEntry) -> Intervention | None:
        """Return an entry's change; None if it has none or none that can be read."""
        if entry.number in self.interventions:
            return self.interventions[entry.number]
        try:
            return parse_intervention(entry.intervention) if entry.intervention else None
        except InterventionError:
            return None

    @property
    def accepted(self) -> tuple[progress.HypothesisEntry, ...]:
        """The hypotheses whose changes are part of what runs, in the order of acceptance."""
        return in_force(self.recorded, self.trials, self.acceptances)

    @property
    def recorded(self) -> tuple[progress.HypothesisEntry, ...]:
        """The hypotheses that were accepted, whatever became of their runs since."""
        return recorded(self.document, self.acceptances, self.session)

    def order(self, entry: progress.HypothesisEntry) -> int | None:
        """As which one a hypothesis is accepted; None if it is not."""
        return self.acceptances.order(entry, self.session)


@dataclass(frozen=True)
class History:
    """What the run folders hold. `records` has the run.json of each folder with a sound one.

    `judged` are the runs that hold a verdict, `unlisted` the verdicts of them that no entry lists;
    `identities` is what a baseline is valid for now, by its role.
    """

    records: Records
    baselines: Baselines
    identities: Identities
    judged: tuple[str, ...] = ()
    unlisted: tuple[Unlisted, ...] = ()


@dataclass(frozen=True, eq=False)
class Loaded:
    """A campaign with everything at hand; `campaign` is what of it the state machine needs."""

    setup: Setup
    entries: Entries
    history: History
    code: MeasuredCode
    campaign: decide.Campaign
