"""From where a training command imports the packages of the checkout that is under test."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpudebug.core.command.packages import first_folder, top_packages
from gpudebug.edges import git, launcher
from gpudebug.engine.campaign.interpreters import import_folders

# Of a package's own files in the folder that is imported: less, and it is another package of that name.
_SHARE = 0.5

Packages = Mapping[str, Sequence[Path]]


def packages_of(checkout: git.Checkout) -> dict[str, tuple[Path, ...]]:
    """Return the folders of the checkout's importable packages, by name."""
    found = top_packages(os.fsdecode(path) for path in checkout.entries)
    return {name: tuple(checkout.top / folder for folder in folders) for name, folders in found.items()}


def elsewhere(
    packages: Packages,
    asked: launcher.Asked | None,
    executable: str,
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
) -> dict[str, str] | None:
    """Return the packages that `argv`, run by the Python that was `asked`, would import from another folder.

    None: not known.

    An editable install of another checkout does that, and so does an installed copy.
    """
    if not packages:
        return {}
    if asked is None:
        return None
    first = first_folder(argv, str(cwd), executable)
    found = import_folders(asked, env, str(cwd), first, tuple(packages))
    return {
        name: folder
        for name, folder in found.items()
        if _other(Path(folder), packages[name]) and any(_copy(Path(folder), own) for own in packages[name])
    }


def _other(folder: Path, own: Sequence[Path]) -> bool:
    return folder.resolve() not in [path.resolve() for path in own]


def _copy(folder: Path, own: Path) -> bool:
    """Tell whether both hold one package: the names of their modules are mostly the same."""
    names, others = _modules(own), _modules(folder)
    return len(names & others) >= _SHARE * len(names) if names else not others


def _modules(folder: Path) -> set[str]:
    try:
        entries = list(folder.iterdir())
    except OSError:
        return set()
    return {e.name for e in entries if (e.suffix == ".py" or (e / "__init__.py").is_file())} - {"__init__.py"}
