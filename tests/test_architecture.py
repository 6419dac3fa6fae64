"""The directions in which modules may import each other, and what the core may touch."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "orchestrator"
PACKAGE = SOURCE / "gpudebug"
TESTS = Path(__file__).resolve().parent
ARCHITECTURE = (TESTS.parent / "docs" / "architecture.md").read_text("utf-8")


@dataclass(frozen=True)
class Import:
    """One imported module, absolute. `lazy` where it stands in a function, `typing` under TYPE_CHECKING."""

    module: str
    line: int
    lazy: bool = False
    typing: bool = False


@dataclass(frozen=True)
class Module:
    name: str
    path: Path

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text("utf-8"), str(self.path))

    @property
    def package(self) -> str:
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    @cached_property
    def imports(self) -> list[Import]:
        return list(_imports(self.tree, self.package, lazy=False, typing=False))


def _imports(node: ast.AST, package: str, *, lazy: bool, typing: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(alias.name, child.lineno, lazy, typing)
        elif isinstance(child, ast.ImportFrom):
            for module in _imported_from(child, package):
                yield Import(module, child.lineno, lazy, typing)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            for part in child.body:
                yield from _imports(ast.Module([part], []), package, lazy=lazy, typing=True)
            for part in child.orelse:
                yield from _imports(ast.Module([part], []), package, lazy=lazy, typing=typing)
        else:
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _imports(child, package, lazy=lazy or inside, typing=typing)


def _imported_from(node: ast.ImportFrom, package: str) -> Iterator[str]:
    """`from a import b`: a.b where that is a module of ours, else a."""
    base = node.module or ""
    if node.level:
        parts = package.split(".")
        base = ".".join([*parts[: len(parts) - node.level + 1], *([base] if base else [])])
    for alias in node.names:
        full = f"{base}.{alias.name}"
        yield full if full in NAMES else base


def _modules() -> list[Module]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found.append(Module(".".join(parts[:-1] if parts[-1] == "__init__" else parts), path))
    return found


MODULES = _modules()
NAMES = {m.name for m in MODULES}
BY_NAME = {m.name: m for m in MODULES}


def within(module: str, *packages: str) -> bool:
    return any(module == p or module.startswith(f"{p}.") for p in packages)


def of_package(*packages: str) -> list[Module]:
    return [m for m in MODULES if within(m.name, *packages)]


def ours(module: str) -> bool:
    return within(module, "gpudebug")


def standard(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


def unit(module: str) -> str:
    """The edge that a module belongs to: `gpudebug.edges.devices` of any module in that folder."""
    return ".".join(module.split(".")[:3])


def offending(modules: Iterable[Module], look: Callable[[Module], Iterable[str]]) -> dict[str, list[str]]:
    """What `look` finds in each module in which it finds something."""
    return {m.name: found for m in modules if (found := list(look(m)))}


def wrong(module: Module, allowed: tuple[str, ...]) -> list[str]:
    """Imports of ours outside `allowed`."""
    return [
        f"{module.name}:{i.line} imports {i.module}"
        for i in module.imports
        if ours(i.module) and not within(i.module, *allowed)
    ]


def test_the_reader_of_imports_sees_every_kind() -> None:
    code = """
import os
from gpudebug.core.statistics import intervals as s
from . import words
from ..edges import store
if TYPE_CHECKING:
    from gpudebug.engine.run import measure
def f():
    try:
        import yaml
    except ImportError:
        from gpudebug.edges.store import locked
class C:
    import json
"""
    found = list(_imports(ast.parse(code), "gpudebug.core", lazy=False, typing=False))
    assert [(i.module, i.lazy, i.typing) for i in found] == [
        ("os", False, False),
        ("gpudebug.core.statistics.intervals", False, False),
        ("gpudebug.core.words", False, False),
        ("gpudebug.edges.store", False, False),
        ("gpudebug.engine.run.measure", False, True),
        ("yaml", True, False),
        ("gpudebug.edges.store", True, False),
        ("json", False, False),
    ]


def test_every_module_has_its_place() -> None:
    """A new folder or a new module at the top needs a rule here."""
    top = {m.name.split(".")[1] for m in MODULES if "." in m.name}
    known = {"core", "edges", "engine", "training", "demo", "templates"}
    assert top <= known | DOORS | {"__main__"}


def foreign(imports: Iterable[Import]) -> set[str]:
    """The packages of others among these imports."""
    return {i.module.partition(".")[0] for i in imports if not ours(i.module) and not standard(i.module)}


def test_core_imports_core_and_little_else() -> None:
    known = {"msgspec", "numpy", "pydantic", "pydantic_core", "yaml"}
    core = of_package("gpudebug.core")
    assert offending(core, lambda m: [*wrong(m, ("gpudebug.core",)), *foreign(m.imports) - known]) == {}


# Each room of a floor, and the rooms it may import. A room is listed below those that it imports.
ROOMS = {
    "core": """
        errors:
        words:
        lazy:
        progress: errors lazy words
        records: words
        answers: records words
        trace: answers errors lazy
        agents: errors lazy progress
        text: lazy progress words
        command: lazy records text
        change: command errors lazy text
        redaction: command lazy words
        statistics: answers progress records redaction words
        yaml: errors lazy
        config: change command errors lazy statistics text words yaml
        inside: answers command errors lazy records statistics text words
        cluster: config lazy words
        campaign: change config errors progress statistics words
        catalogue: answers change command errors inside lazy records text yaml
        trainlog: command errors lazy records redaction statistics text words yaml
        samples: command errors records statistics trainlog words
        recordings: answers errors lazy samples trainlog words
        hardware: answers lazy records redaction samples
        evidence: command inside lazy records samples statistics trainlog words
        verdict: change command inside lazy records redaction samples statistics text words
        compare: answers command errors inside lazy records statistics trainlog verdict words
        diagnosis: answers catalogue change command compare errors evidence inside lazy records samples
            statistics text trainlog words
    """,
    "engine": """
        campaign:
        run: campaign
        live: campaign run
        trial: campaign run
        brief: campaign trial
        verify: campaign run trial
        hypotheses: campaign run trial verify
        diagnosis: campaign hypotheses run trial
        status: campaign diagnosis live run trial verify
        cycle: brief campaign diagnosis hypotheses live run status trial
        agents: campaign cycle diagnosis live run status
        report: campaign diagnosis run status trial
        tools: agents campaign cycle diagnosis hypotheses run status trial
    """,
}


def room(floor: str, module: str) -> str | None:
    """The room of a module: `trace` of gpudebug.core.trace.devices; None for another floor's."""
    parts = module.split(".")
    return parts[2] if len(parts) > 2 and parts[1] == floor else None


def table(floor: str) -> dict[str, set[str]]:
    rows = re.findall(r"(\w+):([^:]*?)(?=\s\w+:|\s*\Z)", ROOMS[floor])
    return {name: set(below.split()) for name, below in rows}


def arrows(floor: str) -> dict[str, set[str]]:
    """Each room of a floor with the rooms that its modules import."""
    found: dict[str, set[str]] = {}
    for module in of_package(f"gpudebug.{floor}"):
        here = room(floor, module.name)
        if here is not None:
            below = {room(floor, i.module) for i in module.imports} - {None, here}
            found.setdefault(here, set()).update(b for b in below if b is not None)
    return found


@pytest.mark.parametrize("floor", ROOMS)
def test_rooms_import_the_rooms_of_the_table_and_no_others(floor: str) -> None:
    assert arrows(floor) == table(floor)


@pytest.mark.parametrize("floor", ROOMS)
def test_no_room_imports_one_that_stands_above_it(floor: str) -> None:
    above: set[str] = set(table(floor))
    for name, below in table(floor).items():
        assert not below & above, name
        above.remove(name)


@pytest.mark.parametrize("floor", ROOMS)
def test_the_document_lists_the_rooms(floor: str) -> None:
    rows = re.findall(rf"^\| `{floor}/(\w+)(?:\.py)?` \| [^|]* \| ([^|]*) \|$", ARCHITECTURE, re.MULTILINE)
    assert {name: {*imported.split(", ")} - {"-"} for name, imported in rows} == table(floor)


def test_every_file_that_the_document_names_is_there() -> None:
    named = re.findall(
        r"`((?:cli|terminal|engine|edges|core|templates|hypotheses|tests)/[\w./]*)`?", ARCHITECTURE
    )
    assert len(named) > 40
    assert [n for n in named if not any((top / n).exists() for top in (PACKAGE, TESTS.parent))] == []


_REFERRED = re.compile(r"`((?:cli|terminal|engine|edges|core|mcp|training)(?:\.\w+)+)`")


def test_what_a_comment_refers_to_is_there() -> None:
    gone = [
        f"{m.name}: {name}"
        for m in MODULES
        for name in _REFERRED.findall(m.path.read_text("utf-8"))
        if not _is_there(f"gpudebug.{name}")
    ]
    assert gone == []


def _is_there(name: str) -> bool:
    """Tell whether this is a module, or a name that occurs in one."""
    parent, _, last = name.rpartition(".")
    if name in NAMES or parent not in NAMES:
        return name in NAMES
    return re.search(rf"\b{last}\b", BY_NAME[parent].path.read_text("utf-8")) is not None


@pytest.mark.parametrize(
    ("name", "there"), [("core.records.DeviceInfo", True), ("core.records.Gone", False), ("core.gone", False)]
)
def test_a_name_that_is_gone_is_seen(name: str, there: bool) -> None:
    assert _is_there(f"gpudebug.{name}") is there


@pytest.mark.parametrize("floor", ROOMS)
def test_every_module_is_in_a_room(floor: str) -> None:
    bare = {p.stem for p in (PACKAGE / floor).glob("*.py")}
    assert bare <= {"__init__", "errors", "lazy", "words"}


def _circle(arrows: dict[str, set[str]]) -> set[str]:
    """The modules that are in circles of imports, and those between circles."""
    left = dict(arrows)
    for _ in range(2):
        # What imports nothing of the rest is in no circle; the other way round, what nothing imports.
        while ends := [name for name, below in left.items() if not below & left.keys()]:
            for name in ends:
                del left[name]
        left = {name: {above for above in left if name in left[above]} for name in left}
    return set(left)


def test_the_reader_of_circles_sees_them() -> None:
    arrows = {"a": {"b"}, "b": {"c", "d"}, "c": {"b"}, "d": {"e"}, "e": set()}
    assert _circle(arrows) == {"b", "c"}


def test_no_imports_run_in_a_circle() -> None:
    """Lazy ones and those of types count: a type that two modules need has a module of its own."""
    arrows = {m.name: {i.module for i in m.imports if i.module in NAMES} - {m.name} for m in MODULES}
    assert _circle(arrows) == set()


def test_a_class_name_occurs_once() -> None:
    """Private ones too: a name says in each module what it is of."""
    names = Counter(
        node.name.lstrip("_") for m in MODULES for node in m.tree.body if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in names.items() if count > 1] == []


# Removals, what is written beside, what is opened, walks, the host and its processes have one owner, whoever
# asks for them.
SHARED = tuple(
    f"gpudebug.edges.{name}" for name in ("removal", "temporary", "opener", "walk", "host", "proc")
)


def test_no_edge_imports_another() -> None:
    assert BY_NAME["gpudebug.edges"].imports == []
    edges = of_package("gpudebug.edges")
    assert offending(edges, lambda m: wrong(m, ("gpudebug.core", *SHARED, unit(m.name)))) == {}


def test_the_warden_is_alone_with_the_standard_library() -> None:
    warden = "gpudebug.edges.launcher.warden"
    assert offending(of_package(warden), lambda m: [*wrong(m, (warden,)), *foreign(m.imports)]) == {}


def beyond_the_version(module: Module, allowed: tuple[str, ...]) -> list[str]:
    """Imports of ours outside `allowed`; of the package itself each may know the version."""
    return [line for line in wrong(module, allowed) if not line.endswith(" imports gpudebug")]


def test_the_engine_joins_core_and_edges() -> None:
    allowed = ("gpudebug.core", "gpudebug.edges", "gpudebug.engine", "gpudebug.demo")
    assert offending(of_package("gpudebug.engine"), lambda m: beyond_the_version(m, allowed)) == {}


def test_nothing_else_joins_core_and_edges() -> None:
    joining = {
        m.name
        for m in MODULES
        for i in m.imports
        if within(i.module, "gpudebug.edges") and not within(m.name, "gpudebug.edges", "gpudebug.engine")
    }
    assert joining == set()


# What is between the user and the engine.
DOORS = {"cli", "mcp", "terminal"}


def test_what_the_user_sees_is_there_before_the_engine_is() -> None:
    """Only lazy imports of the engine, and of anything that takes long to load; `mcp` itself is lazy."""
    doors = tuple(f"gpudebug.{door}" for door in DOORS)

    def look(module: Module) -> Iterator[str]:
        yield from beyond_the_version(module, ("gpudebug.core", "gpudebug.engine", *doors))
        if not module.name.startswith("gpudebug.mcp."):
            eager = [i for i in module.imports if not i.lazy and not i.typing]
            yield from (i.module for i in eager if within(i.module, "gpudebug.engine"))
            yield from foreign(eager) - ({"typer"} if within(module.name, "gpudebug.cli") else set())

    assert offending(of_package("gpudebug.__main__", *doors), look) == {}


def test_what_only_shows_does_nothing() -> None:
    def look(module: Module) -> list[str]:
        return [i.module for i in module.imports if within(i.module, "gpudebug.engine") and not i.typing]

    assert offending(of_package("gpudebug.terminal"), look) == {}


def test_the_command_line_loads_nothing_heavy() -> None:
    heavy = ("pydantic", "numpy", "jinja2", "git", "pynvml", "yaml", "matplotlib", "gpudebug.engine")
    code = f"import sys, gpudebug.cli; print([m for m in {heavy!r} if m in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_what_runs_in_the_users_training_imports_nothing_of_ours() -> None:
    def look(module: Module) -> Iterator[str]:
        within_training = within(module.name, "gpudebug.training")
        yield from wrong(module, ("gpudebug.training",) if within_training else ())
        # The folder that is injected is on the search path itself: its package has a name of its own there.
        yield from foreign(module.imports) - {"gpudebug_probe"} if within_training else ()

    assert offending(of_package("gpudebug.training", "gpudebug.demo"), look) == {}


def test_only_the_launcher_and_the_package_know_the_training_side() -> None:
    knowing = {
        m.name
        for m in MODULES
        for i in m.imports
        if within(i.module, "gpudebug.training") and not within(m.name, "gpudebug.training")
    }
    assert all(name == "gpudebug" or within(name, "gpudebug.edges.launcher") for name in knowing)


def test_the_package_itself_imports_nothing_else() -> None:
    assert wrong(BY_NAME["gpudebug"], ("gpudebug.training",)) == []
    assert [
        i.module for i in BY_NAME["gpudebug"].imports if not ours(i.module) and i.module != "__future__"
    ] == []


# What reaches outside: modules that do nothing else, functions, and methods of paths and clocks.
OUTSIDE_MODULES = """
    asyncio ctypes fcntl fileinput getpass glob http io locale logging mmap multiprocessing os pathlib
    platform random secrets select selectors shutil socket sqlite3 ssl subprocess sys tempfile threading
    time urllib uuid
"""
# Parts of these that only compute.
PURE = ("urllib.parse", "pathlib.PurePath", "pathlib.PurePosixPath")
OUTSIDE_CALLS = "open input print exec eval compile __import__"
OUTSIDE_METHODS = """
    now today utcnow read_text read_bytes write_text write_bytes mkdir unlink rename touch exists stat
    iterdir getenv environ urandom system popen monotonic perf_counter sleep gmtime localtime
"""


def reaches_outside(tree: ast.Module) -> list[str]:
    modules, calls, methods = (names.split() for names in (OUTSIDE_MODULES, OUTSIDE_CALLS, OUTSIDE_METHODS))
    found = []
    for node in ast.walk(tree):
        said = None
        if isinstance(node, ast.Import | ast.ImportFrom):
            base = "" if isinstance(node, ast.Import) else f"{node.module}."
            names = [base + alias.name for alias in node.names if not getattr(node, "level", 0)]
            outside = [n for n in names if n.partition(".")[0] in modules]
            said = next((f"imports {n}" for n in outside if not within(n, *PURE)), None)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            said = f"calls {node.func.id}" if node.func.id in calls else None
        elif isinstance(node, ast.Attribute) and node.attr in methods:
            said = f"uses .{node.attr}"
        if said:
            found.append(f"line {node.lineno}: {said}")
    return found


def test_core_touches_nothing_outside() -> None:
    assert offending(of_package("gpudebug.core"), lambda m: reaches_outside(m.tree)) == {}


@pytest.mark.parametrize(
    "code",
    [
        "open('x')",
        "import time",
        "from os import environ",
        "def f():\n    import subprocess",
        "path.read_text()",
        "datetime.now()",
        "print('x')",
        "import os.path",
    ],
)
def test_reaching_outside_is_seen(code: str) -> None:
    assert reaches_outside(ast.parse(code))


# Who takes files and folders away: one module, which is given an open folder and what is proven to be ours.
REMOVALS = "gpudebug.edges.removal"
# Names in the module `os` and `shutil`, and methods of paths, that remove or rename.
REMOVING = "rmtree unlink rmdir remove removedirs rename renames move"
# Modules that may do so themselves, and why.
MAY_REMOVE = {
    "gpudebug.edges.launcher.warden.cgroup": "cgroupfs, in a program of the standard library alone",
    "gpudebug.training.probe.gpudebug_probe.torchprofile": "the training's own process, its own trace",
    "gpudebug.training.profiling.exits": "the training's own process, its own report",
}
# Modules that put a file of theirs in the place of an older one, and why that is no removal.
MAY_REPLACE = {
    "gpudebug.edges.git.grounds": "files of gpudebug's own in git's folder, in an open folder",
    "gpudebug.edges.store.earlier": "what earlier runs wrote, in an open folder of gpudebug's own",
    "gpudebug.engine.run.traces": "the trace of the run that has just ended",
    "gpudebug.training.probe.gpudebug_probe.torchprofile": "the training's own trace",
    "gpudebug.training.profiling.exits": "the training's own report",
}


def removes(tree: ast.Module) -> list[str]:
    """Calls that remove or rename, and names imported to do so; not `remove` of a list."""
    names = REMOVING.split()
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in ("os", "shutil"):
            found += [f"line {node.lineno}: imports {a.name}" for a in node.names if a.name in names]
        elif isinstance(node, ast.Attribute) and node.attr in names:
            of_os = isinstance(node.value, ast.Name) and node.value.id in ("os", "shutil")
            if of_os or node.attr in ("rmtree", "unlink", "rmdir", "rename"):
                found.append(f"line {node.lineno}: {node.attr}")
    return found


def replaces(tree: ast.Module) -> list[str]:
    """`os.replace`, and `replace` with one argument, which is a path's: that of a text takes two."""
    found = []
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr != "replace":
            continue
        of_os = isinstance(node.func.value, ast.Name) and node.func.value.id == "os"
        if of_os or (len(node.args) == 1 and not node.keywords):
            found.append(f"line {node.lineno}: replace")
    return found


# Who opens files: one module, which looks at what has the name before it reads.
OPENER = "gpudebug.edges.opener"
# Functions of modules, classes that open what they are given, and methods of paths.
OPENING = {
    "os": "open",
    "io": "open FileIO open_code",
    "codecs": "open",
    "gzip": "open GzipFile",
    "bz2": "open BZ2File",
    "lzma": "open LZMAFile",
    "zipfile": "ZipFile",
    "tarfile": "open TarFile",
    "tokenize": "open",
    "linecache": "getline getlines",
    "runpy": "run_path",
    "shutil": "copy copy2 copyfile copytree",
    "sqlite3": "connect",
    "np": "load loadtxt genfromtxt fromfile memmap",
}
OPENING_METHODS = "read_text read_bytes write_text write_bytes"
# Packages that open files themselves, and why.
OPEN_THEMSELVES = {
    "gpudebug.training": "runs in the training, with the standard library alone",
    "gpudebug.demo": "files of its own, in a new folder",
    "gpudebug.edges.launcher.warden": "standard library alone; it looks at the kind of each itself",
}
# Modules that may do so, and why.
MAY_OPEN = {
    "gpudebug.cli": "what is installed with gpudebug",
    "gpudebug.edges.clusters.nodecheck": "standard library alone, in a folder made for it",
    "gpudebug.edges.devices.cpu": "the kernel's files",
    "gpudebug.edges.devices.probe": "the kernel's files",
    "gpudebug.edges.devices.proctree": "the kernel's files",
    "gpudebug.edges.devices.queueing": "the kernel's files",
    "gpudebug.edges.git.repository": "git's own index, which git has opened before",
    "gpudebug.edges.git.worktrees": "git's own index, which git has opened before",
    "gpudebug.edges.host": "the kernel's files",
    "gpudebug.edges.sqlite": "what the opener has opened before",
    "gpudebug.edges.templates": "what is installed with gpudebug",
    "gpudebug.edges.temporary": "new files, and those of a killed one by their inode",
    "gpudebug.engine.tools.gpu_doctor": "what is installed with gpudebug",
}
# What nobody can put something else in the place of.
OF_THE_KERNEL = re.compile(r"""^(Path\()?f?['"]/(proc|sys)/|^(Path\()?(os\.devnull|f?['"]/dev/null['"])""")


def opens(tree: ast.Module) -> list[str]:
    """Calls that open a file by its name, and names imported to do so; folders and the kernel's apart."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in OPENING:
            names = OPENING[node.module].split()
            found += [f"line {node.lineno}: imports {a.name}" for a in node.names if a.name in names]
        elif isinstance(node, ast.Call) and (name := _opening(node)):
            found.append(f"line {node.lineno}: {name}")
    return found


def _opening(call: ast.Call) -> str | None:
    words = {keyword.arg for keyword in call.keywords}
    first = ast.unparse(call.args[0]) if call.args else ""
    if isinstance(call.func, ast.Name):
        return "open" if call.func.id == "open" and not OF_THE_KERNEL.match(first) else None
    if not isinstance(call.func, ast.Attribute):
        return None
    of, name = ast.unparse(call.func.value), call.func.attr
    if of in OPENING:
        folder = any(word in ast.unparse(call) for word in ("O_DIRECTORY", "_FOLDER"))
        apart = folder or "fileobj" in words or OF_THE_KERNEL.match(first)
        return f"{of}.{name}" if name in OPENING[of].split() and not apart else None
    path = name == "open" and (first.startswith(("'", '"')) or words & {"mode", "encoding"})
    return name if (path or name in OPENING_METHODS.split()) and not OF_THE_KERNEL.match(of) else None


def test_only_the_opener_opens_files_and_each_exception_is_needed() -> None:
    looked_at = [m for m in MODULES if m.name != OPENER and not within(m.name, *OPEN_THEMSELVES)]
    assert offending(looked_at, lambda m: opens(m.tree)).keys() == MAY_OPEN.keys()


@pytest.mark.parametrize(
    "code",
    [
        "open(path)",
        "path.open('rb')",
        "path.open(encoding='utf-8')",
        "os.open(path, os.O_RDONLY)",
        "path.read_bytes()",
        "path.write_text('a')",
        "sqlite3.connect(path)",
        "np.load(path)",
        "gzip.open(path)",
        "zipfile.ZipFile(path)",
        "tarfile.open(path)",
        "from os import open as opened",
        "from shutil import copyfile",
        "open(f'{folder}/proc/stat')",
    ],
)
def test_an_opening_is_seen(code: str) -> None:
    assert opens(ast.parse(code))


@pytest.mark.parametrize(
    "code",
    [
        "device.open()",
        "opener.opened(path)",
        "open('/proc/self/statm', 'rb')",
        "open(f'/proc/{pid}/stat')",
        "os.open(os.devnull, os.O_RDWR)",
        "os.open(path, os.O_RDONLY | os.O_DIRECTORY)",
        "Path('/proc/self/mounts').read_text()",
        "tarfile.open(fileobj=packed, mode='w:gz')",
        "os.fdopen(descriptor, 'rb')",
    ],
)
def test_what_opens_no_file_that_could_be_another_is_not(code: str) -> None:
    assert opens(ast.parse(code)) == []


# The library's temporary folders are removed by their path, which may be another folder's by then.
MAKING = "TemporaryDirectory mkdtemp"
# Modules that make one all the same, and why.
MAY_MAKE = {"gpudebug.engine.tools.demo": "its folder stays"}


def test_temporary_folders_are_workplaces() -> None:
    def look(module: Module) -> set[str]:
        used = {getattr(node, "attr", getattr(node, "name", "")) for node in ast.walk(module.tree)}
        return used & set(MAKING.split())

    assert offending(MODULES, look).keys() <= MAY_MAKE.keys()


def test_only_these_modules_remove_and_each_exception_is_needed() -> None:
    assert offending(MODULES, lambda m: removes(m.tree)).keys() == {*MAY_REMOVE, REMOVALS}


def test_only_these_modules_put_a_file_in_the_place_of_another() -> None:
    assert offending(MODULES, lambda m: replaces(m.tree)).keys() == MAY_REPLACE.keys()


@pytest.mark.parametrize(
    "code",
    [
        "shutil.rmtree(path)",
        "path.unlink(missing_ok=True)",
        "os.remove(path)",
        "path.rename(other)",
        "from os import unlink",
        "from shutil import rmtree as gone",
        "remove = path.rmdir",
    ],
)
def test_a_removal_is_seen(code: str) -> None:
    assert removes(ast.parse(code))


@pytest.mark.parametrize("code", ["names.remove(x)", "removal.remove_file(a, b, c)", "journal.remove()"])
def test_what_is_no_removal_is_not(code: str) -> None:
    assert removes(ast.parse(code)) == []


def test_a_replacement_is_seen() -> None:
    assert replaces(ast.parse("os.replace(a, b)")) and replaces(ast.parse("path.replace(other)"))
    assert replaces(ast.parse("text.replace('a', 'b'); replace(record, a=1); replace(x)")) == []


# Modules without a test file of their name, and where they are tested.
TESTED_ELSEWHERE = {
    **dict.fromkeys(
        (
            f"gpudebug.core.recordings.{m}"
            for m in ("boxes", "collect", "printed", "rows", "sources", "tables", "trees")
        ),
        "core/recordings/test_monitors.py",
    ),
    "gpudebug.core.recordings.whole": "core/recordings/test_runs.py",
    "gpudebug.core.recordings.stores": "core/recordings/test_runs.py",
    "gpudebug.terminal.recorded": "engine/tools/analyze/test_samples.py",
    "gpudebug.__main__": "cli/test_cli.py",
    "gpudebug.cli.measure": "cli/test_cli.py",
    "gpudebug.cli.check": "cli/test_cli.py",
    "gpudebug.cli.campaign": "cli/test_hypotheses.py",
    "gpudebug.cli.agents": "engine/agents/test_session.py",
    "gpudebug.core.answers.analyze": "engine/tools/analyze/test_analyze.py",
    "gpudebug.core.answers.log": "engine/tools/analyze/test_logs.py",
    "gpudebug.core.answers.catalogue": "engine/diagnosis/test_catalogue_view.py",
    "gpudebug.core.answers.compare": "core/compare/test_faster.py",
    "gpudebug.core.answers.verify": "engine/cycle/test_check.py",
    "gpudebug.core.answers.show": "core/statistics/test_level.py",
    "gpudebug.core.answers.status": "core/statistics/test_across.py",
    "gpudebug.core.answers.diagnosis": "cli/test_golden.py",
    "gpudebug.core.answers.setup": "engine/tools/test_doctor.py",
    "gpudebug.core.answers.next": "cli/test_golden.py",
    "gpudebug.core.answers.sample": "core/diagnosis/test_ranks.py",
    "gpudebug.core.answers.sections": "core/inside/sections/test_analysis.py",
    "gpudebug.core.answers.hypotheses": "cli/test_golden.py",
    "gpudebug.core.config.rules": "core/config/test_pins.py",
    "gpudebug.core.evidence.run_readings": "core/evidence/test_build.py",
    "gpudebug.core.yaml.models": "core/catalogue/test_parser.py",
    "gpudebug.core.records.inside": "core/records/test_records.py",
    "gpudebug.engine.campaign.campaign": "engine/campaign/test_load.py",
    "gpudebug.engine.campaign.measured_code": "engine/campaign/test_baselines.py",
    "gpudebug.engine.campaign.changes": "engine/campaign/test_premises.py",
    "gpudebug.engine.cycle.finished": "engine/cycle/test_next.py",
    "gpudebug.engine.cycle.stop": "engine/cycle/test_allocation.py",
    "gpudebug.engine.cycle.record_baseline": "engine/trial/test_baseline.py",
    "gpudebug.engine.cycle.request": "engine/cycle/test_next.py",
    "gpudebug.engine.diagnosis.case": "engine/diagnosis/test_diagnose.py",
    "gpudebug.engine.diagnosis.differences": "engine/diagnosis/test_layers.py",
    "gpudebug.engine.diagnosis.layer_run": "engine/diagnosis/test_layers.py",
    "gpudebug.engine.report.runs": "engine/report/test_data.py",
    "gpudebug.engine.run.around": "engine/run/test_environment.py",
    "gpudebug.engine.run.catalogue": "engine/diagnosis/test_catalogue_view.py",
    "gpudebug.engine.run.evidence": "engine/run/test_measure.py",
    "gpudebug.engine.run.outputs": "engine/tools/analyze/test_outputs.py",
    "gpudebug.engine.trial.baseline_notes": "engine/trial/test_baseline.py",
    "gpudebug.engine.trial.premises": "engine/trial/test_trial.py",
    "gpudebug.engine.run.prepare": "engine/trial/test_trial.py",
    "gpudebug.engine.verify.terms": "promises/test_settings.py",
    "gpudebug.engine.verify.unlisted": "engine/campaign/test_verdicts.py",
    "gpudebug.mcp.arguments": "mcp/test_tools.py",
    "gpudebug.mcp.server": "mcp/test_mcp.py",
    "gpudebug.terminal.analyze": "engine/tools/analyze/test_analyze.py",
    "gpudebug.terminal.log": "engine/tools/analyze/test_logs.py",
    "gpudebug.terminal.catalogue": "engine/diagnosis/test_catalogue_view.py",
    "gpudebug.terminal.next": "terminal/test_live.py",
    "gpudebug.edges.proc": "edges/devices/test_proctree.py",
    "gpudebug.edges.store.earlier": "promises/test_overwriting.py",
    "gpudebug.engine.run.kept": "promises/test_overwriting.py",
    "gpudebug.core.inside.attached.record": "core/inside/attached/test_looks.py",
    "gpudebug.training.asking.installed": "edges/launcher/test_interpreter.py",
    "gpudebug.training.probe.gpudebug_probe.epochs": "training/probe/test_replay.py",
    "gpudebug.training.probe.gpudebug_probe.events": "training/probe/test_reads.py",
    "gpudebug.training.probe.gpudebug_probe.keep": "promises/test_overwriting.py",
    "gpudebug.training.probe.gpudebug_probe.threads": "training/probe/test_sampler.py",
    "gpudebug.training.probe.gpudebug_probe.writers": "promises/test_overwriting.py",
    "gpudebug.training.probe.sitecustomize": "training/probe/test_loaded.py",
    "gpudebug.training.profiling.selftest": "edges/launcher/test_interpreter.py",
}
FLOORS = ("cli", "core", "edges", "engine", "mcp", "terminal", "training")
# Tests in a room that are no one module's, and what they are of.
OF_A_ROOM = {
    "core/catalogue/test_seeds.py": "the causes of the seeds",
    "core/catalogue/test_shipped.py": "the causes as they are shipped",
    "engine/campaign/test_accepted_altered.py": "an acceptance that somebody altered",
    "core/trace/test_hta.py": "figures of another tool",
    "core/trainlog/test_excerpts.py": "formats of public programs",
    "core/trainlog/test_formats.py": "logs of every framework",
    "core/trainlog/test_mechanisms.py": "how logs say what their numbers are of",
    "core/trainlog/test_recorded.py": "real logs",
    "core/catalogue/test_side_work_offers.py": "the shipped causes on commands of real programs",
    "core/verdict/test_composition.py": "all gates together",
    "cli/test_bad_input.py": "bad input at the command line",
    "cli/test_golden.py": "the answers of every command",
    "cli/test_disk.py": "disks that are full or read-only",
    "cli/test_hypotheses.py": "hypotheses that cannot be tested",
    "cli/test_titles.py": "hostile titles",
    "cli/test_untouched.py": "trees that stay as they are",
    "edges/devices/test_nvml_standin.py": "the driver stand-in beside nvidia-ml-py",
    "edges/launcher/test_kills.py": "killed processes of a run",
    "engine/hypotheses/test_trust.py": "what an agent writes, from the proposal to the verdict",
    "training/probe/test_gpu.py": "the probe on a real device",
    "training/test_shim.py": "the package as a training sees it",
}


def mirror(module: Module) -> Path:
    """The test file of a module; a package's has the package's name."""
    relative = module.path.relative_to(PACKAGE)
    stem = relative.parent.name if relative.name == "__init__.py" else relative.stem
    folder = [part for part in relative.parent.parts if part != "gpudebug_probe"]
    return TESTS.joinpath(*folder, f"test_{stem}.py")


def test_every_module_has_a_test_file_of_its_name() -> None:
    without = [
        m.name
        for m in MODULES
        if m.path.name != "__init__.py" and m.name not in TESTED_ELSEWHERE and not mirror(m).exists()
    ]
    assert without == []
    assert [file for file in {*TESTED_ELSEWHERE.values(), *OF_A_ROOM} if not (TESTS / file).exists()] == []


@pytest.mark.parametrize("floor", FLOORS)
def test_tests_lie_where_their_module_does(floor: str) -> None:
    mirrored = {mirror(m) for m in of_package(f"gpudebug.{floor}")}
    mirrored |= {TESTS / file for file in OF_A_ROOM}
    assert sorted(set((TESTS / floor).rglob("test_*.py")) - mirrored) == []


def test_no_module_is_long() -> None:
    lengths = {m.name: len(m.path.read_text("utf-8").splitlines()) for m in MODULES}
    assert {name: length for name, length in lengths.items() if length > 400} == {}
