"""What the adapters of training frameworks tell of one command, and what gpudebug offers because of it.

`known` are the frameworks of `hypotheses/frameworks`; flags are without leading dashes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from gpudebug.core.command import command_line
from gpudebug.core.command.command_line import Option
from gpudebug.core.command.synonyms import Synonyms, by_meaning, merged
from gpudebug.core.inside.probe import counts
from gpudebug.core.lazy import regex
from gpudebug.core.text import shell_words

if TYPE_CHECKING:
    from gpudebug.core.catalogue.model import Framework
    from gpudebug.core.catalogue.program import Program

Known = Sequence["Framework"]


class StartedProgram(NamedTuple):
    """A command: `framework` as an adapter recognised it with the `kind` of workload that its file names,
    `names` what the program's source uses and takes as options."""

    argv: Sequence[str] = ()
    framework: str | None = None
    kind: str | None = None
    names: Collection[str] = ()


@dataclass(frozen=True)
class FoundFramework:
    """The framework of a command. `takes_flags` says that its options can be in the command; else they
    are arguments in the program's code, at `path`. `settings` are numbers and words that stand there,
    `options_of` the program's own options whose values do, `computed` those whose value is not known."""

    framework: Framework
    takes_flags: bool = True
    path: str | None = None
    settings: Mapping[str, str | float | bool | None] = field(default_factory=dict)
    options_of: Mapping[str, str] = field(default_factory=dict)
    computed: frozenset[str] = frozenset()

    def passes(self, argument: str) -> bool:
        """Tell whether the program's code may pass an argument another value than those in `settings`, so
        that it does not have the framework's default."""
        return argument in self.options_of or (argument not in self.settings and self._computes(argument))

    def _computes(self, argument: str) -> bool:
        return not self.computed.isdisjoint({argument, "**"})


def synonyms_of(found: FoundFramework | None, program: Program | None) -> Synonyms:
    """Return the options with several names that a command's program defines, or its framework."""
    of_program = program.synonyms if program is not None else ()
    return merged((*of_program, *(found.framework.synonyms if found is not None else ())))


def locks_of(
    argv: Sequence[str],
    found: FoundFramework | None,
    program: Program | None,
    locked: Sequence[str],
    names: Sequence[str],
) -> Synonyms:
    """The same, and groups of locked options with those of `names` that set the same thing elsewhere."""
    written = (option.name for option in command_line.options(argv))
    own = (*(program.options if program else ()), *written)
    of_adapter = found.framework.of_training if found is not None else ()
    return (*synonyms_of(found, program), *by_meaning(locked, names, own, of_adapter))


class LogAdvice(NamedTuple):
    """The option and the value with which enough loss lines appear; `at` is the program in whose code it has
    to be written, None if it goes into the command."""

    name: str
    value: str
    at: str | None = None

    @property
    def text(self) -> str:
        if self.at is None:
            return (
                f"add {self.name}={self.value} to the command in gpudebug.yaml, for baseline and trials alike"
            )
        return f"set {self.name}={self.value} in {self.at}, before the baseline"


# Names that programs give to a folder they write into, if no framework is known.
_OUTPUT_NAMES = (
    *("output_dir", "out_dir", "output_path", "outdir", "output", "run_dir", "save_dir", "save_path"),
    *("logdir", "log_dir", "logging_dir", "work_dir", "workdir", "exp_dir", "experiment_dir", "results_dir"),
    *("checkpoint_dir", "ckpt_dir", "default_root_dir", "log_folder", "hydra.run.dir"),
)
_UNIQUE = regex(r"\{run(_dir)?\}|\$|%\(")
_FILE = regex(r"\.[A-Za-z]{1,7}$")
_LINES_WANTED = 10


def recognise(argv: Sequence[str], known: Known, program: Program | None = None) -> Framework | None:
    """The framework that the command's program, enough of its flags, or its source's imports give away."""
    found = find(argv, known, program)
    return found.framework if found else None


def find(argv: Sequence[str], known: Known, program: Program | None = None) -> FoundFramework | None:
    """As `recognise`, with how its options are set."""
    program_ = argv[: command_line.program_start(argv)]
    words = [word.rstrip("/").split("/") for word in program_ if not word.startswith("-")]
    named = [(max(map(_exact, found)), k) for k in known if (found := _programs(k, words))]
    if named:
        return FoundFramework(max(named, key=lambda entry: entry[0])[1])
    names = {_folded(option.name) for option in command_line.program_options(argv)}
    counted = [(len(_marks(k, program) & names), k) for k in known]
    enough = [(count, k) for count, k in counted if k.marks.flags and count >= k.marks.needs]
    if enough:
        return FoundFramework(_upon(max(enough, key=lambda entry: entry[0])[1], known, program))
    return _by_imports(known, program) if program else None


def _programs(framework: Framework, words: Sequence[Sequence[str]]) -> list[str]:
    """Those of its programs that one of the command's words is, each given by the parts of its path."""
    return [program for program in framework.programs if any(_is_program(program, word) for word in words)]


def _is_program(program: str, word: Sequence[str]) -> bool:
    parts = program.split("/")
    return len(word) >= len(parts) and all(
        fnmatchcase(part, pattern) for part, pattern in zip(word[-len(parts) :], parts, strict=True)
    )


def _exact(program: str) -> tuple[int, bool]:
    """More parts of a path say more, and a name more than a pattern."""
    return program.count("/"), "*" not in program


def _marks(framework: Framework, program: Program | None) -> set[str]:
    """The options that give it away; not those that a program which does not use it defines for itself."""
    marks = {_folded(mark) for mark in framework.marks.flags}
    if program is None or not framework.imports or _used(program.uses, framework.imports):
        return marks
    return marks - {name.lower() for name in program.options}


def _upon(framework: Framework, known: Known, program: Program | None) -> Framework:
    """Return a framework built upon this one if the program uses that, else this one."""
    uses = program.uses if program else ()
    built = (k for k in known if k.base == framework.name and _used(uses, k.imports))
    return next(built, framework)


def _by_imports(known: Known, program: Program) -> FoundFramework | None:
    """Return the framework of whose names the source uses most; a weak one if no other is used."""
    counted = [(not k.weak, _used(program.uses, k.imports), k) for k in known]
    used = [entry for entry in counted if entry[1]]
    if not used:
        return None
    framework = max(used, key=lambda entry: entry[:2])[2]
    settings: dict[str, str | float | bool | None] = {}
    options_of: dict[str, str] = {}
    computed = frozenset[str]()
    for name in framework.configured_by:
        settings |= program.calls.get(name, {})
        options_of |= program.options_of.get(name, {})
        computed |= program.computed.get(name, frozenset())
    takes_flags = _used(program.uses, framework.parses) > 0
    return FoundFramework(framework, takes_flags, program.path, settings, options_of, computed)


def _used(uses: Collection[str], names: Collection[str]) -> int:
    """Return how many of the names are used, or something within them is."""
    return sum(any(use == name or use.startswith(f"{name}.") for use in uses) for name in names)


def output_flag(argv: Sequence[str], known: Known) -> Option | None:
    """Return the option that names the run's output folder with a fixed value; None if there is none, or if
    the value holds `{run}` already or is made unique by the program itself."""
    framework = recognise(argv, known)
    names = [*(framework.output if framework else ()), *_OUTPUT_NAMES]
    options = command_line.program_options(argv)
    for name in names:
        found = [option for option in options if _named(option, name) and option.value]
        if found:
            value = found[-1].value or ""
            return None if _UNIQUE.search(value) or _FILE.search(value) else found[-1]
    return None


def _named(option: Option, name: str) -> bool:
    """`--output_dir`, `--output-dir` and `trainer.output_dir` are all output_dir."""
    bare = _folded(option.name)
    return bare == _folded(name) or bare.endswith("." + _folded(name))


def _folded(name: str) -> str:
    return command_line.bare_name(name).replace("-", "_").lower()


def offer_run(text: str, known: Known) -> str | None:
    """The command's text with `{run}` at the end of its fixed output folder, every other byte as it was.

    None if no such folder is seen or the text cannot be split.
    """
    try:
        words = shell_words.split(text)
    except shell_words.ShellSyntaxError:
        return None
    option = output_flag([word.value for word in words], known)
    if option is None or not option.value:
        return None
    word = words[option.stop - 1]
    end = word.end
    while end > word.start and text[end - 1] in "'\"":
        end -= 1
    added = "{run}" if option.value.endswith("/") else "/{run}"
    offered = f"{text[:end]}{added}{text[end:]}"
    wanted = [entry.value + added if entry is word else entry.value for entry in words]
    return offered if _splits_into(offered, wanted) else None


def _splits_into(text: str, words: Sequence[str]) -> bool:
    try:
        return [word.value for word in shell_words.split(text)] == list(words)
    except shell_words.ShellSyntaxError:
        return False


def steps_option(argv: Sequence[str], known: Known) -> Option | None:
    """Return the option that says how many optimiser steps to train, with its value in decimal digits."""
    framework = recognise(argv, known)
    rollouts = counts.step_flags(argv)
    short = framework.short if framework else {}
    for name in framework.steps if framework else ("steps", "max_steps", "num_steps", "max_iters"):
        found = command_line.find(argv, name) or command_line.find(argv, short.get(name, name))
        if found and _whole(found[-1].value) and _last(found[-1]) not in rollouts:
            return found[-1]
    return None


_LENGTH = regex(
    r"(?:(?:max|num|n|total|train|training)_?)*(?:steps|iters?|iterations|updates?|timesteps|frames)"
)
_PASSES = regex(r"(?:(?:max|num|n|total|train|training)_)*epochs")
# In RL these are how long a rollout is.
_ROLLOUT = frozenset({"n_steps", "num_steps", "nsteps"})


def length_option(argv: Sequence[str], known: Known) -> Option | None:
    """The option that says how long to train, as `steps_option`, also one of a group: `--training.steps`.

    Where several might, the one that counts timesteps or frames, if it counts most; else None, for none is
    known to. Epochs if no steps are set: those of a program with environments are passes over one rollout.
    """
    whole = [o for o in command_line.program_options(argv) if _whole(o.value)]
    found = [o for o in whole if _LENGTH.fullmatch(_last(o))]
    spent = [o for o in found if _last(o).endswith(("timesteps", "frames"))]
    if len(spent) == 1 and all(int(spent[0].value or 0) >= int(o.value or 0) for o in found):
        return spent[0]
    option = steps_option(argv, known)
    if option is not None:
        return option
    plain = [o for o in found if _last(o) not in _ROLLOUT]
    if not found and not counts.of_environments(argv):
        plain = [o for o in whole if _PASSES.fullmatch(_last(o))]
    return plain[0] if len(plain) == 1 else None


def _last(option: Option) -> str:
    return _folded(option.name).rpartition(".")[2]


def steps_of(argv: Sequence[str], known: Known) -> int | None:
    """Return the number of optimiser steps that the command asks for, if a flag says so."""
    option = steps_option(argv, known)
    return _whole(option.value) if option else None


def log_advice(
    argv: Sequence[str], known: Known, steps: int | None = None, program: Program | None = None
) -> LogAdvice | None:
    """Return the option and value with which at least 10 loss lines appear, as `--log_freq=20` for 200 steps.

    `steps` is the length of the run, by default as the command or the program's source says. None if the
    framework is not known, the length is not, or it logs often enough already.
    """
    found = find(argv, known, program)
    if found is None or found.framework.log is None:
        return None
    log = found.framework.log
    length = steps if steps is not None else _length(argv, found, known, program)
    if length is None:
        return None
    option = command_line.find(argv, log.flag)
    present = _number(argv, found, log.flag, program)
    if present is None and found.passes(_argument(log.flag)):
        return None
    wanted = max(1, length // _LINES_WANTED)
    if (log.default if present is None else present) <= wanted:
        return None
    argument = _folded(log.flag) in map(_folded, found.framework.arguments)
    if option or (found.takes_flags and not argument):
        return LogAdvice(option[-1].name if option else _spelled(argv, log.flag, found), str(wanted))
    own = found.options_of.get(_argument(log.flag))
    return (
        LogAdvice(f"--{own}", str(wanted)) if own else LogAdvice(_argument(log.flag), str(wanted), found.path)
    )


def _length(argv: Sequence[str], found: FoundFramework, known: Known, program: Program | None) -> int | None:
    if (steps := steps_of(argv, known)) is not None:
        return steps
    numbers = (_number(argv, found, name, program) for name in found.framework.steps)
    return next((number for number in numbers if number), None)


def _number(argv: Sequence[str], found: FoundFramework, flag: str, program: Program | None) -> int | None:
    """The whole number that an option of the framework has: in the command, in the code, or by an option."""
    written = command_line.value_of(argv, flag)
    name = _argument(flag)
    if written is None and (own := found.options_of.get(name)):
        defined = program.options.get(own) if program else None
        written = command_line.value_of(argv, own) or (str(defined.default) if defined else None)
    return _whole(written if written is not None else str(found.settings.get(name)))


def _argument(flag: str) -> str:
    """`trainer.max_steps` is max_steps if it is an argument in code."""
    return flag.rpartition(".")[2].replace("-", "_")


def _whole(text: str | None) -> int | None:
    return int(text) or None if text and text.isascii() and text.isdigit() else None


def suggested_locks(argv: Sequence[str], known: Known, program: Program | None = None) -> tuple[str, ...]:
    """List the knobs worth locking that are in the command, as they are written there."""
    framework = recognise(argv, known, program)
    names = framework.locked if framework else ("batch_size", "batch-size", "bs")
    options = command_line.program_options(argv)
    found = [option.name for name in names for option in options if _folded(option.name) == _folded(name)]
    return tuple(dict.fromkeys(found))


def _spelled(argv: Sequence[str], name: str, found: FoundFramework) -> str:
    """Return a flag that is not there yet, in the style of those that are."""
    through = found.framework.through
    if through is not None and "." in name:
        return name if command_line.find(argv, through) else f"--{through} {name}"
    return name if command_line.prevailing_style(argv) == "override" else f"--{name}"
