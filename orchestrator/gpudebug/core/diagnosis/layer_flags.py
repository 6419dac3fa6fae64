"""The flags by which a command goes without logging, evaluation and saving, or takes twice the batch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from gpudebug.core.catalogue.model import CatalogueIntervention, Cause, Knob
from gpudebug.core.catalogue.offers import KnownCommand, interventions_for
from gpudebug.core.catalogue.program import folded
from gpudebug.core.change import intervention as interventions
from gpudebug.core.change.intervention import Intervention
from gpudebug.core.change.permits import Allowed
from gpudebug.core.command import command_line
from gpudebug.core.diagnosis.layers import LayerError
from gpudebug.core.lazy import regex

NEVER = 1_000_000_000
"""Steps between two evaluations, more than any run has; below 2**31, which some programs hold it in."""

_WHEN = (
    r"(every(_n)?|interval|freq(uency)?|period)"
    r"(_(n_)?(steps?|iters?|iterations?|batch(es)?|updates?|epochs?))?"
)
_STOPS = (
    rf"(\w+_)?(eval|evaluate|evaluation|val|valid|validate|validation|test)_{_WHEN}",
    rf"(\w+_)?(save|saving|checkpoint(ing)?|ckpt|snapshot)_{_WHEN}",
    r"checkpointing_steps",
)
_LOGS = (rf"(\w+_)?(log|logging|print|report|wandb|tensorboard|tb|image|media|plot|histogram)_{_WHEN}",)
_TOLD = regex(r"(^|[._])(log|logging|logger|report|wandb|tensorboard|print)", re.IGNORECASE)
_BATCH = regex(r"((per_device|per_gpu|device|train|training|micro|global)_)*batch_?size|batch|bs")

_OFTEN = Knob(names=_STOPS, direction="up", value=NEVER)
_SELDOM_TOLD = Knob(names=_LOGS, direction="up", value=NEVER)
_UNTOLD = Knob(names=(r"(use_|log_to_|with_)?(wandb|tensorboard)(_log)?",), direction="off")


def quiet(command: KnownCommand, *, told: bool) -> Intervention:
    """Return the change with which nothing is logged, evaluated or saved; `told` says that logging need not
    print of steps. LayerError if no flag is known."""
    _refuse_shell(command)
    framework = command.found.framework if command.found else None
    known = framework.quiet if framework else CatalogueIntervention()
    parts = [
        CatalogueIntervention(set={name: value})
        for name, value in known.set.items()
        if told or not _TOLD.search(name)
    ]
    parts += [CatalogueIntervention(unset=(name,)) for name in known.unset]
    changes = [change for part in parts for change in _offered(command, part, ())]
    changes += _offered(
        command, CatalogueIntervention(), (_OFTEN, *((_SELDOM_TOLD, _UNTOLD) if told else ()))
    )
    if not changes:
        raise LayerError(
            "no known flag turns off logging, evaluation and saving in this command",
            next="give the program flags such as --eval_every, --save_every and --log_every, or take these "
            "parts out in a hypothesis of its own: gpudebug propose --code",
        )
    return _together(changes)


def doubled(command: KnownCommand) -> Intervention:
    """The change with which a step takes twice the samples. LayerError if no single flag sets how many."""
    _refuse_shell(command)
    framework = command.found.framework if command.found else None
    options = command.options
    named = framework.batch if framework else None
    if command.found is not None and named is not None and command.found.takes_flags:
        option = options.get(folded(named.flag))
        size = _number(option.value) if option is not None else named.default
        if size is not None:
            return _set(option.name if option is not None else named.flag, 2 * size)
    found = {key: o for key, o in options.items() if _BATCH.fullmatch(key.rpartition(".")[2].lower())}
    sizes = {key: size for key, o in found.items() if (size := _number(o.value)) is not None}
    chosen = [key for key in sizes if found[key].given] or list(sizes)
    if len(chosen) == 1:
        option = found[chosen[0]]
        if option.variable:
            return interventions.from_options(env=[f"{option.name}={2 * sizes[chosen[0]]}"])
        return _set(option.name, 2 * sizes[chosen[0]])
    if chosen:
        names = ", ".join(found[key].name for key in chosen)
        raise LayerError(
            f"several flags set the batch size: {names}",
            next="leave one of them in workload.command, or test it: gpudebug propose --set FLAG=VALUE",
        )
    raise LayerError(
        "no flag of this command sets the batch size",
        next="write the batch size into workload.command (--batch_size=N), then gpudebug next",
    )


def _refuse_shell(command: KnownCommand) -> None:
    if command_line.is_shell(command.argv):
        raise LayerError(
            "the flags of a shell command cannot be changed",
            next="write workload.command without shell: true",
        )


def _set(name: str, value: int) -> Intervention:
    return interventions.from_options(set=[f"{name}={value}"])


def _number(value: object) -> int | None:
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else None


def _offered(command: KnownCommand, settings: CatalogueIntervention, knobs: Sequence[Knob]) -> Iterator[str]:
    """The changes that this command can have: what its framework takes of `settings`, and its own knobs."""
    name = command.found.framework.name if command.found else None
    asked = {name: settings} if name and (settings.set or settings.unset) else {}
    cause = Cause(id="quiet", title="quiet", explanation="", fix="", interventions=asked, knobs=tuple(knobs))
    offers = interventions_for(
        cause,
        command,
        # What a layer test changes is gpudebug's own choice: all variables that the program reads are open.
        allowed=Allowed(frozenset(option.name for option in command.options.values() if option.variable)),
    )
    return (offer.change for offer in offers.offers if offer.change)


def _together(changes: Iterable[str]) -> Intervention:
    """One change of all these; of each flag the first."""
    kept, touched = list[str](), set[str]()
    for text in changes:
        names = {folded(name) for name in interventions.parse(text).names}
        if not names & touched:
            kept.append(text)
            touched |= names
    return interventions.parse(" ".join([*([interventions.COMPOUND] if len(kept) > 1 else []), *kept]))
