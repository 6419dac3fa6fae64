"""So that a training imports the tree that is tested: absolute paths and editable installs led there.

What it imported is reported from inside, by what `launcher.inject` puts into its Python.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from gpudebug.core.change.intervention import Applied
from gpudebug.core.command.packages import first_folder
from gpudebug.core.errors import LaunchError
from gpudebug.edges import host, launcher
from gpudebug.engine.campaign.interpreters import import_folders, search_path
from gpudebug.engine.run.origins import Packages

_PYTHONPATH = "PYTHONPATH"
# Where a path may begin and end in a word: a flag's value, a list, a line of a shell.
_STARTS = re.compile(r"(?<![^\s=:,;'\"(\[{<>&|])/(?=[^/\s])")
_STOPS = re.compile(r"[\s=:,;'\")\]}<>&|]")


@dataclass(frozen=True)
class Trees:
    """The tree that a run tests, among the trees of the same code; each is the top of a work tree.

    `tree` is tested, `packages` are the folders of its packages; `checkout` is the user's, which may be the
    same one. `runs` holds run folders and worktrees: nothing in it is the checkout's. With `probe` the
    training's Python is made to report its imports.
    """

    tree: Path
    checkout: Path
    runs: Path
    packages: Packages = field(default_factory=dict)
    probe: bool = True

    @property
    def repository(self) -> tuple[Path, ...]:
        """Where files that are under test may lie: Python is asked about itself without these."""
        return tuple(dict.fromkeys((self.checkout, self.tree, self.runs)))

    @cached_property
    def others(self) -> tuple[Path, ...]:
        """The user's checkout and the campaign's worktrees, without the tree that is tested; a link that a
        training left in place of one may lead anywhere."""
        worktrees = sorted(
            p for p in (self.runs / "worktrees").glob("*/*") if p.is_dir() and not p.is_symlink()
        )
        return tuple(p for p in (self.checkout, *worktrees) if p.resolve() != self.tree.resolve())

    def counterpart(self, path: Path) -> Path | None:
        """Return the tested tree's counterpart of a path of another one; None for a path of none, or of both.

        What is linked into the tested tree is the same in both, and not a counterpart.
        """
        spelled = next((p for p in (path, path.resolve()) if self._nearest(p)), path)
        owner = self._nearest(spelled)
        if owner in (None, self.tree, self.runs):
            return None
        found = self.tree / spelled.relative_to(owner)
        if not os.path.lexists(found) or found.resolve() == path.resolve():
            return None
        return found

    def _nearest(self, path: Path) -> Path | None:
        roots = [r for r in (self.tree, self.runs, *self.others) if path.is_relative_to(r)]
        return max(roots, key=lambda r: len(r.parts), default=None)


def injected(env: Mapping[str, str], trees: Trees) -> dict[str, str]:
    """`env` for a training in `trees.tree`, whose Python reports which files it imported."""
    return launcher.inject(env, trees.tree, trees.others, [trees.runs])


def placed(
    argv: Sequence[str], env: Mapping[str, str], own: Collection[str], cwd: Path, trees: Trees
) -> Applied:
    """Return a command of the user's as it runs in `cwd`, a folder of the tested tree; its notes say what was
    changed.

    `own` names the variables that gpudebug.yaml sets: beside PYTHONPATH only these are looked at. Raises
    LaunchError if the command cannot be found.
    """
    if not trees.others:
        return Applied(tuple(argv), dict(env))
    words, notes = mapped(argv, trees)
    variables = dict(env)
    for name in sorted({*own, _PYTHONPATH} & env.keys()):
        (variables[name],), more = mapped([env[name]], trees)
        notes += tuple(f"{name}: {note}" for note in more)
    roots = _roots(words, variables, env, cwd, trees)
    hidden = {root: names for root in roots if (names := _hidden(root))}
    notes += tuple(
        f"{root} cannot go on PYTHONPATH, where its {names[0]} would hide Python's own: the editable install "
        "of another checkout stays"
        for root, names in hidden.items()
    )
    roots = [root for root in roots if root not in hidden]
    if roots:
        theirs = [variables[_PYTHONPATH]] if variables.get(_PYTHONPATH) else []
        variables[_PYTHONPATH] = os.pathsep.join([*theirs, *map(str, roots)])
        notes += tuple(
            f"{root} put on PYTHONPATH: an editable install names another checkout" for root in roots
        )
    return Applied(words, variables, notes)


def mapped(words: Sequence[str], trees: Trees) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """`words` with the absolute paths into another tree replaced by their counterparts in the tested one,
    and a note for each path that was replaced."""
    notes: dict[str, None] = {}
    return tuple(_mapped(word, trees, notes) for word in words), tuple(notes)


def _mapped(word: str, trees: Trees, notes: dict[str, None]) -> str:
    done, position = "", 0
    while found := _STARTS.search(word, position):
        begin = found.start()
        path = next((p for p in _candidates(word, begin) if os.path.lexists(p)), None)
        end = begin + len(path) if path else found.end()
        new = trees.counterpart(Path(path)) if path else None
        if new is not None:
            notes[f"{path} became {new}"] = None
        replacement = word[begin:end] if new is None else f"{new}/" if word[end - 1] == "/" else str(new)
        done, position = done + word[position:begin] + replacement, end
    return done + word[position:]


def _candidates(word: str, begin: int) -> Iterator[str]:
    """Yield the paths that may begin there, the longest first: a name may hold what else would end it."""
    yield word[begin:]
    for stop in reversed(list(_STOPS.finditer(word, begin + 1))):
        yield word[begin : stop.start()]


def _roots(
    argv: Sequence[str], env: Mapping[str, str], unchanged: Mapping[str, str], cwd: Path, trees: Trees
) -> list[Path]:
    """The folders of the tested tree that stand for those of another one from which Python would import.

    Only these go on PYTHONPATH, so that nothing else is shadowed. Python is asked in the environment as it
    was, `unchanged`.
    """
    executable = launcher.find_command(argv, str(cwd), env)
    python = host.find_interpreter(executable, env.get("PATH", "")) or _likely(cwd, env)
    if python is None:
        return []
    first = first_folder(argv, str(cwd), executable)
    asked = launcher.ask(python, unchanged, trees.repository, tuple(trees.packages))
    if asked is None:
        return []
    searched = search_path(asked, env, str(cwd), first)
    folders = import_folders(asked, env, str(cwd), first, tuple(trees.packages))
    # The program's own folder stays in front, wherever the program lies.
    theirs = [Path(entry) for entry in searched if entry != first]
    theirs += [Path(folder).parent for folder in folders.values()]
    found = [trees.counterpart(folder) for folder in theirs if "site-packages" not in folder.parts]
    return list(dict.fromkeys(folder for folder in found if folder is not None and folder.is_dir()))


def _hidden(root: Path) -> list[str]:
    """Modules of Python itself that would be hidden by this folder in front of them."""
    return sorted(
        entry.name
        for entry in root.iterdir()
        if entry.name.removesuffix(".py") in sys.stdlib_module_names
        and (entry.suffix == ".py" or (entry / "__init__.py").is_file())
    )


def _likely(cwd: Path, env: Mapping[str, str]) -> str | None:
    """Return the Python that a script or another program starts, most likely."""
    for name in ("python", "python3"):
        try:
            return launcher.find_command([name], str(cwd), env)
        except LaunchError:
            continue
    return None
