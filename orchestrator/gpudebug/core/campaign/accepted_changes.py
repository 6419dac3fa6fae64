"""The changes that were accepted, in their order, and what gpudebug.yaml's workload is with them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from gpudebug.core.change import commands
from gpudebug.core.change.intervention import Intervention, parse
from gpudebug.core.change.permits import NOTHING_MORE, Allowed
from gpudebug.core.config import ServerSettings, Workload, expand_text
from gpudebug.core.errors import InterventionError, NoEffect
from gpudebug.core.progress import HypothesisEntry, ProgressFile
from gpudebug.core.words import Status

_A_RUN = "run-1"


class AcceptedChange(NamedTuple):
    """One accepted change: `line` is that of its hypothesis in `file`, the progress file."""

    hypothesis: int
    intervention: Intervention
    file: str
    line: int


def accepted(document: ProgressFile) -> tuple[HypothesisEntry, ...]:
    """Return the hypotheses that were accepted, in the order of acceptance.

    Only a VALIDATED one can be: a number in another entry is a person's own text.
    """
    found = (h for h in document.hypotheses if h.status is Status.VALIDATED and h.accepted is not None)
    return tuple(sorted(found, key=lambda h: (h.accepted or 0, h.number)))


def changes(document: ProgressFile, entries: Sequence[HypothesisEntry]) -> tuple[AcceptedChange, ...]:
    """Return the changes of these accepted hypotheses, in their order.

    Raises InterventionError, with its line, for one whose change cannot be read or was never written.
    """
    return tuple(AcceptedChange(h.number, _change(document, h), document.file, h.line) for h in entries)


def _change(document: ProgressFile, entry: HypothesisEntry) -> Intervention:
    if entry.intervention:
        change = parse(entry.intervention, file=document.file, line=entry.line)
        if not change.needs_code:
            return change
    what = "has no change" if not entry.intervention else "has a change that was never written"
    raise InterventionError(
        f"hypothesis {entry.number} is accepted and {what}",
        file=document.file,
        line=entry.line,
        next="put its Intervention back as it was tested, or delete its Accepted line",
    )


def effective(
    workload: Workload, stack: Sequence[AcceptedChange], allowed: Allowed = NOTHING_MORE
) -> Workload:
    """Return the workload with the flags and variables of the accepted changes, one after the other.

    What is already there counts as there: people put an accepted flag into gpudebug.yaml themselves.
    Raises InterventionError, naming the hypothesis, if the flags of the command cannot be reached or a change
    is none that a hypothesis may make.
    """
    argv, env = workload.argv(), dict(workload.env)
    before = argv
    server = workload.server
    for step in stack:
        for change in step.intervention.changes:
            try:
                made = Intervention((change,)).apply(argv, env, allowed)
                one = workload.model_copy(update={"server": server})
                server = changed_server(one, Intervention((change,)), allowed)
            except NoEffect:
                continue
            except InterventionError as e:
                raise InterventionError(
                    f"hypothesis {step.hypothesis} is accepted and no longer applies: {e.message}",
                    file=step.file,
                    line=step.line,
                    next="put its change into `workload` and delete its Accepted line; or "
                    f"{e.next or 'change the command back'}",
                ) from None
            argv, env = made.argv, made.env
    command = workload.command if argv == before else argv
    return workload.model_copy(update={"command": command, "env": env, "server": server})


def spoken(workload: Workload, stack: Sequence[AcceptedChange]) -> str:
    """Return the command as a person types it, behind the variables that these changes set.

    A shell's text gets them through `env`: in front of it they would be those of its first command alone.
    `{run}` and `{run_dir}` are the word `run-1`: a shell has no value for them.
    """
    names = dict.fromkeys(c.name for step in stack for c in step.intervention.changes if c.kind == "env")
    values = [f"{name}={shlex.quote(_named(workload.env[name]))}" for name in names if name in workload.env]
    text = _named(workload.text)
    if workload.shell and values:
        return " ".join(["env", *values, "sh -c", shlex.quote(text)])
    return " ".join([*values, text])


def _named(text: str) -> str:
    return expand_text(text, run=_A_RUN, run_dir=_A_RUN)


def already(
    workload: Workload, stack: Sequence[AcceptedChange], allowed: Allowed = NOTHING_MORE
) -> tuple[int, ...]:
    """The hypotheses of which the workload has a flag or variable as it was accepted: nothing undoes that."""
    return tuple(step.hypothesis for step in stack if _is_there(workload, step, allowed))


def _is_there(workload: Workload, step: AcceptedChange, allowed: Allowed) -> bool:
    for change in step.intervention.changes:
        one = Intervention((change,))
        try:
            one.apply(workload.argv(), dict(workload.env), allowed)
            changed_server(workload, one, allowed)
        except NoEffect:
            return True
        except InterventionError:
            continue
    return False


def located(change: Intervention, workload: Workload) -> Intervention:
    """Return the change with the server's prefix in front of what only the workload's server has."""
    server = workload.server
    if server is None:
        return change
    return commands.located(change, workload.argv(), workload.env, server.argv(), server.env)


def changed_server(workload: Workload, change: Intervention, allowed: Allowed) -> ServerSettings | None:
    """The workload's server with what a change does to it. InterventionError if there is none to change."""
    theirs, server = commands.of_server(change), workload.server
    if theirs is None:
        return server
    if server is None:
        raise no_server(theirs)
    argv = server.argv()
    made = theirs.apply(argv, dict(server.env), allowed)
    command = server.command if made.argv == argv else made.argv
    return server.model_copy(update={"command": command, "env": dict(made.env)})


def no_server(change: Intervention) -> InterventionError:
    return InterventionError(
        f"there is no server to change ({change.text})", next="set server.command in gpudebug.yaml"
    )


def patches(stack: Sequence[AcceptedChange]) -> tuple[str, ...]:
    """Return the accepted patches in their order, as paths from the campaign's root."""
    return tuple(step.intervention.patch for step in stack if step.intervention.patch is not None)
