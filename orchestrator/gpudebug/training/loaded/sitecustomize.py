"""Tells, as a Python process of a training ends, which files of the code under test it imported.

Python imports this at its start, because its folder stands in front of PYTHONPATH; the user's own
sitecustomize comes right after it, as if nothing were here. Standard library only, Python 3.8 and later
(an older one is left alone, which is why types stand in comments). A process that is killed or leaves by
os._exit tells nothing.
"""

import os
import sys

# In `loaded.jsonl` of the run folder: one line a process, {"pid", "argv0", "tree", "files", "elsewhere"}.
MOST_FILES = 2000
# Helpers that a training starts by the thousand must not fill the disk.
LARGEST = 4 << 20


def _watch():
    # type: () -> None
    run, trees = os.environ.get("GPUDEBUG_RUN_DIR"), os.environ.get("GPUDEBUG_TREES")
    if run and trees and os.path.isabs(trees):
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
    # Nothing may be imported here: where that evaluates code, a training that Ctrl-C ended loses its status.
    try:
        argv = getattr(sys, "argv", None) or [""]
        data = _line(str(argv[0]), *_loaded(_Places(trees), start)).encode("ascii")
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        fd = os.open(path, flags, 0o600)
        try:
            if os.fstat(fd).st_size + len(data) <= LARGEST:
                os.write(fd, data)
        finally:
            os.close(fd)
    except BaseException:  # noqa: BLE001, S110 - a training never fails or prints because it is watched
        pass


def _line(argv0, tree, files, elsewhere):
    # type: (str, str, list[str], dict[str, list[str]]) -> str
    """One line of JSON."""
    others = [_quoted(other) + ": " + _listed(elsewhere[other]) for other in sorted(elsewhere)]
    entries = [
        '"pid": ' + str(os.getpid()),
        '"argv0": ' + _quoted(argv0),
        '"tree": ' + _quoted(tree),
        '"files": ' + _listed(files),
        '"elsewhere": {' + ", ".join(others) + "}",
    ]
    return "{" + ", ".join(entries) + "}\n"


def _listed(names):
    # type: (list[str]) -> str
    return "[" + ", ".join(map(_quoted, names)) + "]"


def _quoted(text):
    # type: (str) -> str
    plain = text.isascii() and text.isprintable() and '"' not in text and "\\" not in text
    return '"' + (text if plain else "".join(map(_escaped, text))) + '"'


def _escaped(character):
    # type: (str) -> str
    point = ord(character)
    if point <= 0xFFFF:
        return "\\u" + format(point, "04x")
    point -= 0x10000
    return "\\u" + format(0xD800 + (point >> 10), "04x") + "\\u" + format(0xDC00 + (point & 0x3FF), "04x")


def _loaded(places, start):
    # type: (_Places, str) -> tuple[str, list[str], dict[str, list[str]]]
    """The tested tree, the files imported from it, and those from each of the other ones."""
    tree = places.tree
    found = {}  # type: dict[str | None, set[str]]
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
    return tree, sorted(files)[:left], elsewhere


def _file_of(module):
    # type: (object) -> str | None
    """`__file__` without waking a module that loads itself when it is asked for anything."""
    try:
        known = object.__getattribute__(module, "__dict__")
    except AttributeError:
        return None
    # Python takes the name of a script away before this is called; its loader still has it.
    name = known.get("__file__") or getattr(known.get("__loader__"), "path", None)
    return name if isinstance(name, str) else None


def _same(one, other):
    # type: (str, str) -> bool
    """Whether a file is linked into the tested tree."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


class _Places:
    """To which of the trees a folder belongs; each is looked at once.

    `trees` names them as `launcher.inject` writes them: the tested tree, others, and behind a `-` folders
    whose files are nobody's code.
    """

    def __init__(self, trees):
        # type: (str) -> None
        entries = [entry.replace("%3A", ":").replace("%25", "%") for entry in trees.split(":")]
        self.tree = entries[0]
        self._apart = {entry[1:] for entry in entries if entry.startswith("-")}
        self._roots = sorted((entry.lstrip("-") for entry in entries), key=len, reverse=True)
        prefixes = {sys.prefix, sys.exec_prefix, sys.base_prefix}
        self._prefixes = prefixes.union(os.path.realpath(prefix) for prefix in prefixes)
        self._known = {}  # type: dict[str, tuple[str | None, str]]

    def of(self, folder):
        # type: (str) -> tuple[str | None, str]
        """(root, path below it), (None, "") where it belongs to none."""
        if folder not in self._known:
            place = self._place(folder)
            # What is linked into the tested tree belongs to it, wherever it lies.
            self._known[folder] = place if place[0] == self.tree else self._place(os.path.realpath(folder))
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
