"""`gpudebug catalogue`: the root causes by group, one of them in full, or the evidence that they read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gpudebug.core.answers.catalogue import (
    CatalogueAnswer,
    CauseAnswer,
    CauseGroup,
    CauseKnob,
    CauseSign,
    FrameworkTest,
    ListedCause,
    OffersHere,
    ReadSignal,
    SignalsAnswer,
)
from gpudebug.core.catalogue import GROUPS, Catalogue, Cause
from gpudebug.core.catalogue.model import GENERAL, text_of
from gpudebug.core.catalogue.offers import KnownCommand, interventions_for
from gpudebug.core.catalogue.signals import SIGNALS, said, said_own, said_share, search, shows
from gpudebug.core.errors import UsageError
from gpudebug.core.yaml.document import nearest
from gpudebug.edges import store
from gpudebug.engine.campaign.files import read_config, training_environment
from gpudebug.engine.run import adapters, catalogue

_BEGIN = "gpudebug init --command 'YOUR TRAINING COMMAND'"


def signals() -> SignalsAnswer:
    """Return what conditions can read: the names, units and sentences of all evidence."""
    rows = tuple(ReadSignal(name=name, **signal._asdict()) for name, signal in SIGNALS.items())
    return SignalsAnswer(signals=rows, next_command="gpudebug catalogue")


def overview(directory: Path, group: str | None = None) -> CatalogueAnswer:
    """Return the causes of one group or of all, each with the sign that speaks most for it."""
    if group is not None and group not in GROUPS:
        near = nearest(group, GROUPS)
        raise UsageError(
            f"no group is called {group!r}",
            next=f"gpudebug catalogue --group {near}" if near else f"name one of {', '.join(GROUPS)}",
        )
    known = catalogue.load(store.find_root(directory), strict=True)
    groups = {name: causes for name, causes in known.groups().items() if group in (None, name)}
    return CatalogueAnswer(
        groups=tuple(
            CauseGroup(group=name, causes=tuple(_listed(known, cause) for cause in causes))
            for name, causes in groups.items()
        ),
        count=sum(map(len, groups.values())),
        next_command="gpudebug catalogue ID",
    )


def asked(directory: Path, text: str) -> CauseAnswer | CatalogueAnswer:
    """Return the cause of this id in full, else the causes that these words are of, the best first.

    Raises UsageError that names the nearest id if there are none, or if the text is nearly one.
    """
    known = catalogue.load(store.find_root(directory), strict=True)
    nearly = "-" in text and nearest(text, [cause.id for cause in known.causes]) is not None
    found = () if known.get(text) or nearly else search(known.causes, text)
    if not found:
        return one(directory, text)
    groups: dict[str, list[ListedCause]] = {}
    for cause in found:
        groups.setdefault(cause.group or "", []).append(_listed(known, cause))
    return CatalogueAnswer(
        groups=tuple(CauseGroup(group=name, causes=tuple(causes)) for name, causes in groups.items()),
        count=len(found),
        next_command=f"gpudebug catalogue {found[0].id}",
    )


def _listed(known: Catalogue, cause: Cause) -> ListedCause:
    return ListedCause(
        id=cause.id, title=cause.title, shows=shows(cause), gate=cause.gate, own=cause.id in known.own
    )


def one(directory: Path, id: str) -> CauseAnswer:
    """Return all that the catalogue says of one cause, and what tests it in this campaign's framework.

    Raises UsageError that names the nearest id if there is none.
    """
    root = store.find_root(directory)
    known = catalogue.load(root, strict=True)
    cause = known.cause(id)
    here = _here(root, cause) if root else None
    return CauseAnswer(
        **vars(_listed(known, cause)),
        group=cause.group,
        explanation=cause.explanation.strip(),
        prior=cause.prior,
        requires=tuple(map(said, cause.requires)),
        signs=tuple(
            CauseSign(says=said(sign), weight=sign.weight, otherwise=sign.otherwise)
            for sign in cause.signature
        ),
        exposed=tuple(map(said_share, cause.exposed)),
        here=here,
        tests=tuple(_tests(cause, here.framework if here else None)),
        knobs=tuple(CauseKnob(names=k.names, direction=k.direction) for k in cause.knobs),
        layer=cause.layer,
        fix=cause.fix.strip(),
        own_signal=tuple(map(said_own, cause.own_signal)),
        hollow_if=cause.hollow_if,
        sources=cause.sources,
        file=known.files[cause.id],
        next_command=f"gpudebug propose --from-catalogue {cause.id}" if root else _BEGIN,
    )


def _here(root: Path, cause: Cause) -> OffersHere:
    """What tests the cause in the campaign's own command, by its framework, its options and its source."""
    config = read_config(store.Workspace(root))
    workload = config.workload
    of = adapters.of(root, workload)
    found = interventions_for(
        cause,
        KnownCommand(workload.argv(), training_environment(workload), of.found, program=of.program),
        locked=config.locked,
        allowed=config.allowed,
    )
    return OffersHere(
        framework=of.framework.name if of.framework else None,
        offers=found.offers,
        refused=found.refused,
    )


def _tests(cause: Cause, here: str | None) -> Iterator[FrameworkTest]:
    """Yield what tests the cause in each framework, that of this campaign first."""
    titles = {known.name: known.title for known in adapters.known()}
    titles |= {"any": "any program", "env": "any program, by a variable"}
    for name in sorted(cause.interventions, key=lambda name: (name != here, name in GENERAL)):
        intervention = cause.interventions[name]
        yield FrameworkTest(
            framework=name,
            title=titles.get(name, name),
            change=text_of(intervention),
            code=intervention.code,
            versions=intervention.versions,
            note=intervention.note,
        )
