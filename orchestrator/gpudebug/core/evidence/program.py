"""The program of a command as its run shows it: who ran beside it, where its output and its probe stay."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gpudebug.core.command.program import RunProcess, programs, side_by_side
from gpudebug.core.records import ProgramEvidence
from gpudebug.core.words import counted

_LINE_BY_LINE = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "rg"), "give it --line-buffered"),
    **dict.fromkeys(("sed", "gsed"), "give it -u"),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), "call fflush() in it"),
    **dict.fromkeys(("cut", "tr", "uniq", "fmt", "column", "perl", "jq"), "put `stdbuf -oL` before it"),
    **dict.fromkeys(("sort", "tail", "head", "wc"), "take it out of the pipe"),
    **dict.fromkeys(("conda", "mamba", "micromamba"), "conda run --no-capture-output"),
}
"""What lets output through as it is written, by the name of who reads it (their manuals)."""
_KEPT = {
    "kernel": "a notebook's kernel keeps what its cells print: papermill --log-output, or run it as a script "
    "(jupyter nbconvert --to script)",
    "file": "its output goes to a file, which is not read: let it print, too (`| tee FILE`)",
    "null": "its output goes to /dev/null: let it print",
}
_BUFFERS = "Python holds its output back until a buffer is full: python -u, or PYTHONUNBUFFERED=1"
_APART = {
    "-I": "`python -I` keeps the probe out: it ignores PYTHONPATH",
    "-E": "`python -E` keeps the probe out: it ignores PYTHONPATH",
    "-S": "`python -S` keeps the probe out: it does not run sitecustomize",
    "path": "a PYTHONPATH of the program's own keeps the probe out: it replaces the probe's entry",
    "env": "the program was started without gpudebug's variables (`env -i`, sudo), which keeps the probe out",
}
_NAMED = 3


def program_evidence(
    seen: Sequence[RunProcess],
    trained: Collection[int],
    reported: Sequence[int],
    *,
    silent: bool,
    probed: bool = True,
) -> ProgramEvidence | None:
    """Return the program of the command; None if nothing was seen of its processes.

    `trained` are the processes that trained with PyTorch together, the one that is looked at first;
    `reported` all that trained. `silent` says that the log shows neither steps nor losses while it runs,
    `probed` that the probe was put into it.
    """
    by_pid = {one.pid: one for one in seen}
    found = [one for pid in trained if (one := by_pid.get(pid))] or list(programs(seen))
    if not found:
        return None
    main = found[0]
    known = [one for pid in reported if (one := by_pid.get(pid))] if trained else found
    others = [one for one in known if one.pid not in trained and one is not main and side_by_side(one, main)]
    return ProgramEvidence(
        pid=main.pid,
        name=main.name,
        beside=tuple(f"{one.name} ({one.pid})" for one in others),
        apart=_APART.get(main.apart) if probed else None,
        held=_held(main) if silent else None,
    )


def _held(program: RunProcess) -> str | None:
    """Return what keeps its output from the log, with the remedy; None if nothing is known to."""
    reader = program.reader
    if reader in _LINE_BY_LINE:
        return f"its output goes through `{reader}`, which holds it back: {_LINE_BY_LINE[reader]}"
    if reader is not None and reader.startswith("python"):
        return f"the {reader} that started it reads its output and prints none: let it print itself"
    return _KEPT.get(program.output) or (_BUFFERS if program.buffers else None)


def notes(program: ProgramEvidence | None) -> tuple[str, ...]:
    """Return what a reader of any figure has to know: other trainings, output that is held back."""
    found = []
    if program is not None and program.beside:
        more = len(program.beside) - _NAMED
        names = ", ".join(program.beside[:_NAMED]) + (f" and {more} more" if more > 0 else "")
        found.append(
            f"{counted(len(program.beside) + 1, 'program')} ran side by side below the command: "
            f"{program.name} ({program.pid}) is shown, {names} not"
        )
    if program is not None and program.held:
        found.append(f"no step and no loss comes while it runs: {program.held}")
    return tuple(found)
