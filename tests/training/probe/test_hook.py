"""A module's first import is noticed, however it comes about, and is not changed by that."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.support.campaigns import environment
from tests.support.interpreters import VERSIONS, interpreter
from tests.support.probed import PROBE

SETUP = """
import sys
from gpudebug_probe.hook import when_imported
when_imported("torch", lambda module: print("imported", module.__name__, module.ready))
before = list(sys.meta_path)
"""

# What is in the folder beside the program.
TORCH = {
    "torch/__init__.py": "import torch.part\nfrom . import other\nready = True\n",
    "torch/part.py": "import sys\n",
    "torch/other.py": "class Kind:\n    pass\n",
    "lazily.py": "def late():\n    import torch\n    return torch\n",
}

# Code and what it prints, on every Python.
WAYS = {
    "never": ("import json, sqlite3.dbapi2", ""),
    "import": ("import torch; print(before[0] in sys.meta_path)", "imported torch True\nFalse\n"),
    "of a part of it": ("from torch.other import Kind", "imported torch True\n"),
    "late": ("import lazily; print('main'); lazily.late(); lazily.late()", "main\nimported torch True\n"),
    "import_module": ("import importlib; importlib.import_module('torch')", "imported torch True\n"),
    "in a thread": (
        "import threading\n"
        "threads = [threading.Thread(target=__import__, args=['torch']) for _ in range(8)]\n"
        "[t.start() for t in threads], [t.join() for t in threads]",
        "imported torch True\n",
    ),
    "looked for, not imported": (
        "import importlib.util\n"
        "spec = importlib.util.find_spec('torch')\n"
        "print(spec.name, spec.loader.name, spec.has_location, 'torch' in sys.modules)\n"
        "import torch",
        "torch torch True False\nimported torch True\n",
    ),
    "from a spec": (
        "import importlib.util\n"
        "spec = importlib.util.find_spec('torch')\n"
        "sys.modules['torch'] = module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)",
        "imported torch True\n",
    ),
    "lazy loader": (
        "import importlib.util\n"
        "spec = importlib.util.find_spec('torch')\n"
        "spec.loader = importlib.util.LazyLoader(spec.loader)\n"
        "sys.modules['torch'] = module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module); print('main')\n"
        "print(module.ready)",
        "main\nimported torch True\nTrue\n",
    ),
    "reloaded": (
        "import torch, importlib; importlib.reload(torch); print(torch.ready)",
        "imported torch True\nTrue\n",
    ),
    "taken out and imported again": (
        "import torch; del sys.modules['torch']; import torch",
        "imported torch True\n",
    ),
    "its source": (
        "import torch, inspect, pkgutil, pickle\n"
        "print(len(inspect.getsource(torch)), vars(torch.__loader__) == vars(torch.part.__loader__.__class__("
        "'torch', torch.__file__)))\n"
        "print(sorted(m.name for m in pkgutil.iter_modules(torch.__path__)))\n"
        "print(pkgutil.get_data('torch', 'part.py'), pickle.loads(pickle.dumps(torch.other.Kind)))\n"
        "print(type(torch.__spec__.loader).__name__)",
        "imported torch True\n51 True\n['other', 'part']\nb'import sys\\n' <class 'torch.other.Kind'>\n"
        "SourceFileLoader\n",
    ),
    "a finder of the user's in front": (
        "class Finder:\n"
        "    @staticmethod\n"
        "    def find_spec(name, path=None, target=None): return None\n"
        "sys.meta_path.insert(0, Finder)\n"
        "import torch; print(sys.meta_path[0] is Finder, sys.meta_path[1:] == before[1:])",
        "imported torch True\nTrue True\n",
    ),
    "a finder of the user's that finds it itself": (
        "from importlib.machinery import PathFinder\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'torch': return PathFinder.find_spec(name)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "import torch.other; print('main'); import json.tool, colorsys, _datetime",
        "main\nimported torch True\n",
    ),
    "a loader of the user's": (
        "import importlib.util\n"
        "class Loader:\n"
        "    def create_module(self, spec): return None\n"
        "    def exec_module(self, module): module.ready = 'theirs'\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'torch': return importlib.util.spec_from_loader(name, Loader())\n"
        "sys.meta_path.insert(1, Finder())\n"
        "import torch; print(vars(torch.__spec__.loader))",
        "imported torch theirs\n{}\n",
    ),
    "a class as loader": (
        "import importlib.util\n"
        "class Loader:\n"
        "    create_module = staticmethod(lambda spec: None)\n"
        "    exec_module = staticmethod(lambda module: setattr(module, 'ready', 1))\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'torch': return importlib.util.spec_from_loader(name, Loader)\n"
        "sys.meta_path.insert(1, Finder())\n"
        "import torch; print('main'); import json.tool",
        "main\nimported torch 1\n",
    ),
    "what is asked raises": (
        "import gpudebug_probe.hook as hook\n"
        "sys.meta_path[0].callbacks.insert(0, lambda module: 1 / 0)\n"
        "import torch; print(torch.ready)",
        "imported torch True\nTrue\n",
    ),
    "asked for twice": (
        "when_imported('torch', lambda module: print('again')); import torch; print(len(sys.meta_path))",
        "imported torch True\nagain\n3\n",
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in TORCH.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def run(folder: Path, code: str, *words: str) -> tuple[int, str, str]:
    env = environment({"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": None})
    code = f"import sys; sys.path.append({str(PROBE)!r})\n{SETUP}{code}"
    (folder / "program.py").write_text(code)
    done = subprocess.run(
        [sys.executable, *(words or ["program.py"])],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("version", VERSIONS)
def test_each_way_to_import_is_noticed_once_and_when_done(folder: Path, version: str) -> None:
    """One process of each Python forks for each way."""
    python = interpreter(version)
    code = (
        "import os\n"
        f"WAYS = {[(name, way[0]) for name, way in WAYS.items()]!r}\n"
        "setup = open('setup.py').read()\n"
        "for name, code in WAYS:\n"
        "    print('--', name, flush=True)\n"
        "    if not os.fork():\n"
        "        exec(setup + code)\n"
        "        sys.stdout.flush()\n"
        "        os._exit(0)\n"
        "    assert os.wait()[1] == 0, name\n"
    )
    (folder / "setup.py").write_text(SETUP)
    (folder / "driver.py").write_text(f"import sys; sys.path.append({str(PROBE)!r})\n" + code)
    done = subprocess.run([python, "driver.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    said = dict(part.split("\n", 1) for part in done.stdout.split("-- ")[1:])
    assert said == {name: printed for name, (_, printed) in WAYS.items()}


@pytest.mark.parametrize(
    "words", [["-m", "program"], ["-X", "importtime", "program.py"], ["-O", "program.py"]]
)
def test_however_python_is_started(folder: Path, words: list[str]) -> None:
    status, out, _ = run(folder, "import torch", *words)
    assert (status, out) == (0, "imported torch True\n")


def test_a_program_in_an_archive(folder: Path) -> None:
    run(folder, "import torch")
    with zipfile.ZipFile(folder / "all.pyz", "w") as archive:
        archive.write(folder / "program.py", "__main__.py")
        for name in TORCH:
            archive.write(folder / name, f"inside/{name}" if name == "lazily.py" else name)
    (folder / "torch" / "__init__.py").unlink()
    status, out, err = run(folder, "import torch.part, sqlite3", "all.pyz")
    assert (status, out, err) == (0, "imported torch True\n", "")


def test_an_import_that_fails_is_tried_again(folder: Path) -> None:
    (folder / "torch" / "part.py").write_text(
        "import sys\nif not hasattr(sys, 'again'): raise ImportError('x')\n"
    )
    code = "try: import torch\nexcept ImportError as error: print(error)\nsys.again = 1\nimport torch"
    assert run(folder, code) == (0, "x\nimported torch True\n", "")


def test_one_that_is_not_there_fails_as_ever(tmp_path: Path) -> None:
    code = "try: import torch\nexcept ModuleNotFoundError as error: print(error, error.name)"
    status, out, err = run(tmp_path, code, "-S", "program.py")
    assert (status, out, err) == (0, "No module named 'torch' torch\n", "")


def test_one_that_is_there_already_is_told_at_once(folder: Path) -> None:
    code = "import torch; when_imported('torch', lambda module: print('again')); print(len(sys.meta_path))"
    status, out, _ = run(folder, code + "; print(sys.meta_path == before[1:])")
    assert (status, out.splitlines()[1], out.splitlines()[-1]) == (0, "again", "True")
