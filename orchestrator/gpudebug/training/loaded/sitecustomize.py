"""Tells, as a Python process of a training ends, which files of the code under test it imported.

Python imports this at its start, because its folder stands in front of PYTHONPATH; the user's own
sitecustomize comes right after it, as if nothing were here. Standard library only, Python 3.8 and later
(an older one is left alone). A process that is killed or leaves by os._exit tells nothing.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any  # noqa: F401 - in the comments

# In `loaded.jsonl` of the run folder: one line a process, {"pid", "argv0", "tree", "files", "elsewhere"}.
MOST_FILES = 2000
# Helpers that a training starts by the thousand must not fill the disk.
LARGEST = 4 << 20


def _watch():
    # type: () -> None
    run, trees = os.environ.get("GPUDEBUG_RUN_DIR"), os.environ.get("GPUDEBUG_TREES")
    if run and trees:
        import atexit

        # Registered first, so called last: all that the training imports is there by then.
        atexit.register(_tell, os.path.join(run, "loaded.jsonl"), trees, _working_folder())


def _working_folder():
    # type: () -> str
    """Before the program changes it: `__file__` may be relative to it."""
    try:
        return os.getcwd()
    except OSError:
        return os.sep


def _tell(path, trees, start):
    # type: (str, str, str) -> None
    try:
        import json

        argv = getattr(sys, "argv", None) or [""]
        line = {"pid": os.getpid(), "argv0": str(argv[0])}
        line.update(_loaded(json.loads(trees), start))
        data = json.dumps(line).encode("ascii") + b"\n"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        fd = os.open(path, flags, 0o600)
        try:
            if os.fstat(fd).st_size + len(data) <= LARGEST:
                os.write(fd, data)
        finally:
            os.close(fd)
    except BaseException:  # noqa: BLE001, S110 - a training never fails or prints because it is watched
        pass


def _loaded(trees, start):
    # type: (dict[str, Any], str) -> dict[str, Any]
    """The imported files below the trees: `files` of the tested one, `elsewhere` of each other one.

    `trees` names folders, all resolved: `tree`, `others`, and `apart`, whose files are no code of anybody's.
    """
    tree = trees["tree"]
    found = {}  # type: dict[str | None, set[str]]
    places = _Places(tree, trees["others"], trees["apart"])
    for module in list(sys.modules.values()):
        name = _file_of(module)
        if name:
            folder, base = os.path.split(os.path.abspath(os.path.join(start, name)))
            root, inside = places.of(folder)
            file = os.path.join(inside, base)
            if root and root != tree and _same(os.path.join(root, file), os.path.join(tree, file)):
                root = tree
            found.setdefault(root, set()).add(file)
    files = found.pop(tree, set())
    elsewhere, left = {}, MOST_FILES
    for other in sorted(filter(None, found)):
        elsewhere[other] = sorted(found[other])[:left]
        left -= len(elsewhere[other])
    return {"tree": tree, "files": sorted(files)[:left], "elsewhere": elsewhere}


def _file_of(module):
    # type: (object) -> str | None
    """`__file__` without waking a module that loads itself when it is asked for anything."""
    try:
        name = object.__getattribute__(module, "__dict__").get("__file__")
    except (AttributeError, TypeError):
        return None
    return name if isinstance(name, str) else None


def _same(one, other):
    # type: (str, str) -> bool
    """Whether a file is linked into the tested tree."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


class _Places:
    """To which of the trees a folder belongs; each is looked at once."""

    def __init__(self, tree, others, apart):
        # type: (str, list[str], list[str]) -> None
        self._tree = tree
        self._apart = set(apart)
        roots = self._apart.union(others)
        roots.add(tree)
        self._roots = sorted(roots, key=len, reverse=True)
        prefixes = {sys.prefix, sys.exec_prefix, sys.base_prefix}
        self._prefixes = prefixes.union(os.path.realpath(prefix) for prefix in prefixes)
        self._known = {}  # type: dict[str, tuple[str | None, str]]

    def of(self, folder):
        # type: (str) -> tuple[str | None, str]
        """(root, path below it), (None, "") where it belongs to none."""
        if folder not in self._known:
            place = self._place(folder)
            # What is linked into the tested tree belongs to it, wherever it lies.
            self._known[folder] = place if place[0] == self._tree else self._place(os.path.realpath(folder))
        return self._known[folder]

    def _place(self, folder):
        # type: (str) -> tuple[str | None, str]
        for root in self._roots:
            if folder == root or folder.startswith(root + os.sep):
                inside = os.path.relpath(folder, root) if folder != root else ""
                if root in self._apart or self._installed(root, inside):
                    return None, ""
                return root, inside
        return None, ""

    def _installed(self, root, inside):
        # type: (str, str) -> bool
        """Whether a folder below a tree belongs to an environment that merely lies there."""
        parts = inside.split(os.sep) if inside else []
        if "site-packages" in parts or "dist-packages" in parts:
            return True
        above = [os.path.join(root, *parts[: n + 1]) for n in range(len(parts))]
        return any(
            folder in self._prefixes or os.path.isfile(os.path.join(folder, "pyvenv.cfg")) for folder in above
        )


def _step_aside():
    # type: () -> None
    """Leave search path and modules as they would be without this one."""
    here = os.path.dirname(__file__)
    sys.path[:] = [entry for entry in sys.path if os.path.normpath(entry) != here]
    sys.modules.pop("sitecustomize", None)


if sys.version_info >= (3, 8):  # noqa: UP036 - whatever Python the training starts
    _watch()
_step_aside()
# The user's own. What it raises, that there is none included, reaches Python as if it came from there.
__import__("sitecustomize")
