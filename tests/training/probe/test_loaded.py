"""What a Python process tells of the files that it imported, and that nobody notices."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import environment
from tests.support.interpreters import VERSIONS, interpreter

from gpudebug.edges import launcher

Lines = list[dict[str, Any]]


class Training:
    """A tested tree, the checkout that it was made of, and the folder of a run."""

    def __init__(self, folder: Path) -> None:
        self.tree, self.checkout, self.run = (
            folder / "tree",
            folder / "checkout",
            folder / "checkout" / "runs",
        )
        for top in (self.tree, self.checkout):
            self.write(top / "train" / "util.py")
            self.write(top / "train" / "__init__.py")
        self.run.mkdir()
        self.python = sys.executable

    @staticmethod
    def write(path: Path, text: str = "") -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def variables(self, **more: str) -> dict[str, str]:
        env = environment({"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": None, **more})
        env = launcher.inject(env, self.tree, [self.checkout], [self.run])
        return {**env, "GPUDEBUG_RECORDS_DIR": str(self.run)}

    def start(self, code: str, *flags: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run train.py of the tested tree with this text."""
        program = self.write(self.tree / "train.py", code)
        return self.command(*flags, str(program), **more)

    def command(self, *words: str, cwd: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.python, *words],
            env=self.variables(**more),
            cwd=cwd or self.tree,
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def record(self) -> Path:
        return self.run / "loaded.jsonl"

    @property
    def lines(self) -> Lines:
        return (
            [json.loads(line) for line in self.record.read_text().splitlines()]
            if self.record.exists()
            else []
        )

    @property
    def line(self) -> dict[str, Any]:
        (line,) = self.lines
        return line


@pytest.fixture
def training(tmp_path: Path) -> Training:
    return Training(tmp_path)


def test_the_files_of_the_tree_are_told_with_process_and_program(training: Training) -> None:
    done = training.start("import train.util, os; print(os.getpid())")
    assert (done.returncode, done.stderr) == (0, "")
    assert training.line == {
        "pid": int(done.stdout),
        "argv0": str(training.tree / "train.py"),
        "tree": str(training.tree),
        "files": ["train.py", "train/__init__.py", "train/util.py"],
        "elsewhere": {},
    }
    assert training.record.stat().st_mode & 0o777 == 0o600


def test_a_module_that_takes_itself_away_is_told(training: Training) -> None:
    hides = "import sys\ndel sys.modules['colorsys']\nhere = sys.path.pop(0)\nimport colorsys\n"
    training.write(training.tree / "colorsys" / "__init__.py", hides)
    done = training.start("import colorsys; print(colorsys.__file__)")
    assert (done.returncode, done.stderr) == (0, "") and not done.stdout.startswith(str(training.tree))
    assert training.line["files"] == ["colorsys/__init__.py", "train.py"]


def test_files_of_the_other_checkout_are_told_by_its_folder(training: Training) -> None:
    training.start("import sys; del sys.path[0]; import train.util", PYTHONPATH=str(training.checkout))
    assert training.line["files"] == ["train.py"]
    assert training.line["elsewhere"] == {str(training.checkout): ["train/__init__.py", "train/util.py"]}


# Each is another way to be of this Python's modules and path; what the user's own file prints, or raises.
OWN = {
    "none": None,
    "plain": "import colorsys\nprint('own', __name__, __file__)\nKEPT = 1\n",
    "raises": "import colorsys\nraise RuntimeError('own trouble')\n",
    "imports nothing": "import no_such_module\n",
    "exits": "raise SystemExit(7)\n",
}
SHOWN = """
import sys
own = sys.modules.get("sitecustomize")
probe = ("", ".loaded", ".hook", ".lone")
ours = {"atexit", "__future__", *("gpudebug_probe" + name for name in probe)}
path = [entry for entry in sys.path if not entry.endswith("training/shim")]
print(sorted(set(sys.modules) - ours), path, own and sorted(vars(own)), sys.argv)
print([name for f in sys.meta_path if (name := getattr(f, "__name__", type(f).__name__)) != "_Finder"])
"""


@pytest.mark.parametrize("own", OWN.values(), ids=OWN)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_users_own_file_behaves_as_without_ours(
    training: Training, version: str, own: str | None
) -> None:
    training.python = interpreter(version)
    theirs = training.tree.parent / "theirs"
    training.write(theirs / "something.py")
    if own is not None:
        training.write(theirs / "sitecustomize.py", own)
    program = str(training.write(training.tree / "train.py", SHOWN))
    done = training.command(program, PYTHONPATH=str(theirs))
    without = subprocess.run(
        [training.python, program],
        env={**training.variables(), "PYTHONPATH": str(theirs)},
        cwd=training.tree,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (without.returncode, without.stdout)
    # Where Python itself is ended at its start, it shows the way to there.
    shown = slice(-1, None) if own == OWN["exits"] else slice(None)
    assert done.stderr.splitlines()[shown] == without.stderr.splitlines()[shown]
    assert [line["files"] for line in training.lines] == ([["train.py"]] if own != OWN["exits"] else [])


def test_without_the_variables_nothing_is_told(training: Training) -> None:
    program = str(training.write(training.tree / "train.py", "import train.util"))
    env = {k: v for k, v in training.variables().items() if not k.startswith("GPUDEBUG_")}
    done = subprocess.run([sys.executable, program], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr, training.lines) == (0, "", [])


@pytest.mark.parametrize(
    ("flags", "env", "told"),
    [
        (["-I"], {}, False),
        (["-S"], {}, False),
        (["-E"], {}, False),
        (["-s"], {}, True),
        (["-B", "-O"], {}, True),
        ([], {"PYTHONSAFEPATH": "1"}, True),
        ([], {"PYTHONOPTIMIZE": "2", "PYTHONHASHSEED": "0"}, True),
    ],
)
def test_how_python_is_started_decides_whether_it_tells(
    training: Training, flags: list[str], env: dict[str, str], told: bool
) -> None:
    done = training.start("import json", *flags, **env)
    assert (done.returncode, done.stderr, len(training.lines)) == (0, "", told)


# How a process ends: its code, its exit status, how many lines there are.
ENDS: Mapping[str, tuple[str, int, int]] = {
    "the end of the program": ("", 0, 1),
    "sys.exit": ("import sys; sys.exit(3)", 3, 1),
    "an exception": ("raise ValueError", 1, 1),
    "os._exit": ("import os; os._exit(4)", 4, 0),
    "SIGTERM": ("import os; os.kill(os.getpid(), 15)", -signal.SIGTERM, 0),
    "SIGKILL": ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL, 0),
    "Ctrl-C": ("import os; os.kill(os.getpid(), 2); import time; time.sleep(5)", -signal.SIGINT, 1),
    "another program": ("import os; os.execv('/bin/true', ['true'])", 0, 0),
    "fork, both to the end": ("import os; os.fork() and os.wait()", 0, 2),
    "fork, the child by os._exit": ("import os; os.fork() and os.wait() or os._exit(0)", 0, 1),
    "a thread that still runs": (
        "import threading, time; threading.Thread(target=time.sleep, args=[9], daemon=True).start()",
        0,
        1,
    ),
    "a thread that is waited for": (
        "import threading, time as t\n"
        "threading.Thread(target=lambda: (t.sleep(0.1), __import__('train'))).start()",
        0,
        1,
    ),
    "a child Python": (
        "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import train'])",
        0,
        2,
    ),
    "a worker that is forked": (
        "import multiprocessing as m, time\n"
        "p = m.get_context('fork').Process(target=time.sleep, args=[0]); p.start(); p.join()",
        0,
        1,
    ),
    "standard streams closed": ("import os; [os.close(n) for n in range(3)]", 0, 1),
}


@pytest.mark.parametrize(("code", "status", "lines"), ENDS.values(), ids=ENDS)
def test_each_end_tells_or_does_not(training: Training, code: str, status: int, lines: int) -> None:
    done = training.start(code)
    assert (done.returncode, len(training.lines)) == (status, lines)
    assert len({line["pid"] for line in training.lines}) == lines


def test_spawned_workers_tell_of_themselves(training: Training) -> None:
    code = (
        "import multiprocessing as m\n"
        "def work():\n    import train.util\n"
        "if __name__ == '__main__':\n"
        "    p = m.get_context('spawn').Process(target=work); p.start(); p.join()\n"
    )
    assert training.start(code).returncode == 0
    assert ["train.py", "train/__init__.py", "train/util.py"] in [line["files"] for line in training.lines]
    assert ["train.py"] in [line["files"] for line in training.lines]


def _no_folder(training: Training) -> None:
    training.run.rmdir()


def _folder_in_its_place(training: Training) -> None:
    training.record.mkdir()


def _fifo_in_its_place(training: Training) -> None:
    os.mkfifo(training.record)


def _link_in_its_place(training: Training) -> None:
    training.record.symlink_to(training.tree / "elsewhere.txt")


def _full_record(training: Training) -> None:
    with training.record.open("wb") as f:
        f.truncate(4 << 20)


@pytest.mark.parametrize(
    "spoil", [_no_folder, _folder_in_its_place, _fifo_in_its_place, _link_in_its_place, _full_record]
)
def test_a_record_that_cannot_be_written_is_no_trouble(training: Training, spoil: Any) -> None:
    spoil(training)
    done = training.start("import train; print('trained')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "trained\n", "")
    assert not (training.tree / "elsewhere.txt").exists()
    if spoil is _full_record:
        assert training.record.stat().st_size == 4 << 20


@pytest.mark.parametrize("trees", ["", ":", "%", "-", "::-:%3A", "no/such/tree"])
def test_a_broken_description_is_no_trouble(training: Training, trees: str) -> None:
    program = str(training.write(training.tree / "train.py", "print('trained')"))
    env = {**training.variables(), "GPUDEBUG_TREES": trees}
    done = subprocess.run([sys.executable, program], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "trained\n", "")
    assert [line["elsewhere"] for line in training.lines if line["files"]] == []


def test_strange_modules_are_left_alone(training: Training) -> None:
    code = """
import sys, types
class Lazy(types.ModuleType):
    def __getattribute__(self, name):
        print("woken by", name)
        raise RuntimeError
class Slots:
    __slots__ = ()
sys.modules.update(lazy=Lazy("lazy"), slots=Slots(), nothing=None, number=7)
odd = types.ModuleType("odd")
odd.__file__ = b"/bytes"
sys.modules["odd"] = odd
"""
    done = training.start(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert training.line["files"] == ["train.py"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_relative_program_that_changes_its_folder_is_found(training: Training, version: str) -> None:
    training.python = interpreter(version)
    training.write(training.tree / "train.py", "import os, train.util; os.chdir('/')")
    assert training.command("train.py").returncode == 0
    assert training.line["files"] == ["train.py", "train/__init__.py", "train/util.py"]


def test_what_is_linked_into_the_tree_belongs_to_it(training: Training) -> None:
    training.write(training.checkout / "vendored" / "__init__.py")
    training.write(training.checkout / "vendored" / "part.py")
    training.write(training.checkout / "single.py")
    (training.tree / "vendored").symlink_to(training.checkout / "vendored")
    (training.tree / "single.py").symlink_to(training.checkout / "single.py")
    for path in (training.tree, training.checkout):
        training.record.unlink(missing_ok=True)
        code = "import sys; del sys.path[0]; import vendored.part, single"
        training.start(code, PYTHONPATH=str(path))
        assert training.line["elsewhere"] == {}
        assert set(training.line["files"]) >= {"vendored/__init__.py", "vendored/part.py", "single.py"}


def test_a_tree_that_is_reached_through_a_link_is_the_tree(training: Training) -> None:
    link = training.tree.parent / "link"
    link.symlink_to(training.tree)
    training.write(link / "train.py", "import train.util")
    assert training.command(str(link / "train.py"), cwd=link).returncode == 0
    assert training.line["files"] == ["train.py", "train/__init__.py", "train/util.py"]


def test_environments_and_run_folders_below_a_checkout_are_nobodys_code(training: Training) -> None:
    """A virtual environment of the checkout, a package in it, and code that a run wrote into its folder."""
    home = training.checkout / "env"
    venv.create(home, symlinks=True, with_pip=False)
    training.python = str(home / "bin" / "python")
    (site,) = home.glob("lib/python*/site-packages")
    training.write(site / "installed.py")
    training.write(training.run / "0001-h1" / "copied.py")
    script = training.write(home / "bin" / "train-it", "import installed, copied, train.util")
    done = training.command(str(script), PYTHONPATH=f"{training.run / '0001-h1'}{os.pathsep}{training.tree}")
    assert (done.returncode, done.stderr) == (0, "")
    assert (training.line["files"], training.line["elsewhere"]) == (
        ["train/__init__.py", "train/util.py"],
        {},
    )


def test_a_worktree_below_the_checkout_is_a_tree_of_its_own(tmp_path: Path) -> None:
    training = Training(tmp_path)
    training.tree.rename(training.run / "h1-trial")
    training.tree = training.run / "h1-trial"
    training.start("import train.util")
    assert (training.line["files"], training.line["elsewhere"]) == (
        ["train.py", "train/__init__.py", "train/util.py"],
        {},
    )


def test_of_very_many_files_two_thousand_are_told(training: Training) -> None:
    code = """
import sys, types
for n in range(2500):
    module = types.ModuleType(f"m{n}")
    module.__file__ = f"{sys.path[0]}/m{n:04d}.py" if n else CHECKOUT + "/m.py"
    sys.modules[module.__name__] = module
"""
    training.start(code.replace("CHECKOUT", repr(str(training.checkout))))
    assert len(training.line["files"]) == 1999
    assert training.line["elsewhere"] == {str(training.checkout): ["m.py"]}


def test_names_that_break_what_is_careless(hostile: Path) -> None:
    training = Training(hostile)
    odd = os.fsdecode(b'caf\xe9 \xf0\x9f\x9a\x80 "\\\n')
    training.write(training.tree / odd / "part.py")
    done = training.start(f"import sys; sys.path.insert(0, sys.path[0] + '/' + {odd!r}); import part")
    assert (done.returncode, done.stderr) == (0, "")
    assert training.line["files"] == sorted([f"{odd}/part.py", "train.py"])


def test_many_processes_write_whole_lines(training: Training) -> None:
    code = (
        "import os, sys\n"
        "for _ in range(40):\n    if os.fork() == 0:\n        sys.exit(0)\n"
        "for _ in range(40):\n    os.wait()\n"
    )
    assert training.start(code).returncode == 0
    assert len({line["pid"] for line in training.lines}) == 41
