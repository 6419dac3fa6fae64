"""Reports, as a Python process of a training ends, which files of the code under test it imported.

A process that is killed or leaves by os._exit reports nothing.
"""

from __future__ import annotations

import os
import sys

# In `loaded.jsonl` of the run folder: one line a process, {"pid", "argv0", "tree", "files", "elsewhere"}.
MOST_FILES = 2000
# Helpers that a training starts by the thousand must not fill the disk.
LARGEST = 4 << 20
# What this process has begun to import: a module may take itself out of sys.modules. So many names at most.
_BEGUN: set[str] = set()
_MOST_BEGUN = 20_000


def watch(run: str, trees: str) -> None:
    """Let this process tell, in the folder `run`, what it imported of `trees`; before anything else is
    registered to be called at exit."""
    import atexit

    file = "loaded.jsonl"
    if "GPUDEBUG_NODE" in os.environ:
        from .record import file_of

        file = file_of(file, os.environ)
    # Registered first, so called last: all that the training imports is there by then.
    atexit.register(_tell, os.path.join(run, file), trees, _working_folder())
    bootstrap = sys.modules.get("_frozen_importlib_external")
    for name in ("SourceFileLoader", "SourcelessFileLoader", "ExtensionFileLoader"):
        loader = getattr(bootstrap, name, None)
        if loader is not None:
            _note_imports(loader)


def _note_imports(loader: type) -> None:
    """Note the file of each module that this loader makes; it has returned before the module's code runs."""
    create = loader.create_module  # type: ignore[attr-defined]

    def create_module(self: object, spec: object) -> object:
        origin = getattr(spec, "origin", None)
        if isinstance(origin, str) and len(_BEGUN) < _MOST_BEGUN:
            _BEGUN.add(origin)
        return create(self, spec)

    loader.create_module = create_module  # type: ignore[attr-defined]


def _working_folder() -> str:
    """Before the program changes it: `__file__` may be relative to it."""
    try:
        return os.getcwd()
    except OSError:
        return os.sep


def _tell(path: str, trees: str, start: str) -> None:
    # Nothing may be imported here: where that evaluates code, a training that Ctrl-C ended loses its status.
    try:
        argv = getattr(sys, "argv", None) or [""]
        data = _line(str(argv[0]), *_loaded(_TreePlaces(trees), start)).encode("ascii")
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        fd = os.open(path, flags, 0o600)
        try:
            if os.fstat(fd).st_size + len(data) <= LARGEST:
                os.write(fd, data)
        finally:
            os.close(fd)
    except BaseException:  # noqa: BLE001, S110 - a training never fails or prints because it is watched
        pass


def _line(argv0: str, tree: str, files: list[str], elsewhere: dict[str, list[str]]) -> str:
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


def _listed(names: list[str]) -> str:
    return "[" + ", ".join(map(_quoted, names)) + "]"


def _quoted(text: str) -> str:
    plain = text.isascii() and text.isprintable() and '"' not in text and "\\" not in text
    return '"' + (text if plain else "".join(map(_escaped, text))) + '"'


def _escaped(character: str) -> str:
    point = ord(character)
    if point <= 0xFFFF:
        return "\\u" + format(point, "04x")
    point -= 0x10000
    return "\\u" + format(0xD800 + (point >> 10), "04x") + "\\u" + format(0xDC00 + (point & 0x3FF), "04x")


def _loaded(places: _TreePlaces, start: str) -> tuple[str, list[str], dict[str, list[str]]]:
    """Return the tested tree, the files imported from it, and those from each of the other ones."""
    tree = places.tree
    found: dict[str | None, set[str]] = {}
    names = {_file_of(module) for module in list(sys.modules.values())}
    for name in names.union(_BEGUN):
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


def _file_of(module: object) -> str | None:
    """`__file__` without waking a module that loads itself when it is asked for anything."""
    try:
        known = object.__getattribute__(module, "__dict__")
    except AttributeError:
        return None
    # Python takes the name of a script away before this is called; its loader still has it.
    name = known.get("__file__") or getattr(known.get("__loader__"), "path", None)
    return name if isinstance(name, str) else None


def _same(one: str, other: str) -> bool:
    """Tell whether a file is linked into the tested tree."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


class _TreePlaces:
    """To which of the trees a folder belongs; each is looked at once.

    `trees` names them as `launcher.inject` writes them: the tested tree, others, and behind a `-` folders
    whose files are not the user's code.
    """

    def __init__(self, trees: str) -> None:
        entries = [entry.replace("%3A", ":").replace("%25", "%") for entry in trees.split(":")]
        self.tree = entries[0]
        self._apart = {entry[1:] for entry in entries if entry.startswith("-")}
        self._roots = sorted((entry.lstrip("-") for entry in entries), key=len, reverse=True)
        prefixes = {sys.prefix, sys.exec_prefix, sys.base_prefix}
        self._prefixes = prefixes.union(os.path.realpath(prefix) for prefix in prefixes)
        self._known: dict[str, tuple[str | None, str]] = {}

    def of(self, folder: str) -> tuple[str | None, str]:
        """(root, path below it), (None, "") where it belongs to none."""
        if folder not in self._known:
            place = self._place(folder)
            # What is linked into the tested tree belongs to it, wherever it lies.
            self._known[folder] = place if place[0] == self.tree else self._place(os.path.realpath(folder))
        return self._known[folder]

    def _place(self, folder: str) -> tuple[str | None, str]:
        for root in self._roots:
            if folder == root or folder.startswith(root + os.sep):
                inside = os.path.relpath(folder, root) if folder != root else ""
                if root in self._apart or self._installed(root, inside):
                    return None, ""
                return root, inside
        return None, ""

    def _installed(self, root: str, inside: str) -> bool:
        """Tell whether a folder below a tree belongs to an environment that merely lies there."""
        parts = inside.split(os.sep) if inside else []
        if "site-packages" in parts or "dist-packages" in parts:
            return True
        above = [os.path.join(root, *parts[: n + 1]) for n in range(len(parts))]
        return any(
            folder in self._prefixes or os.path.isfile(os.path.join(folder, "pyvenv.cfg")) for folder in above
        )
