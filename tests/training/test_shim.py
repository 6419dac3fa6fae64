"""`from gpudebug import …` in a training's Python that has none installed, and in one that has."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.interpreters import VERSIONS, interpreter
from tests.support.profiled import SHIM

import gpudebug
from gpudebug.training import profiling

PACKAGE = Path(gpudebug.__file__).parent


def python(version: str, code: str, *flags: str, path: str = str(SHIM)) -> str:
    env = {k: v for k, v in os.environ.items() if not k.startswith("GPUDEBUG_")}
    done = subprocess.run(
        [interpreter(version), *flags, "-c", code],
        env={**env, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("version", VERSIONS)
def test_the_whole_list_of_names_works(version: str) -> None:
    code = "\n".join(
        [
            "import gpudebug, sys",
            "assert 'gpudebug.training' not in sys.modules",
            "from gpudebug import *",
            "print(*gpudebug.__all__)",
            "assert all(callable(getattr(gpudebug, name)) for name in gpudebug.__all__)",
            "enable_profiling()",
            "with profile_section('x'): pass",
            "assert get_profiler().report()['sections'][0]['calls'] == 1",
            "assert gpudebug.__version__ and not hasattr(gpudebug, 'nothing')",
        ]
    )
    assert python(version, code).split() == gpudebug.__all__


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_but_the_standard_library_is_loaded(version: str) -> None:
    code = (
        "import sys; before = set(sys.modules)\n"
        "from gpudebug import *\n"
        "enable_profiling()\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    loaded = python(version, code, "-S").split()
    theirs = [name for name in loaded if name.partition(".")[0] != "gpudebug"]
    # Not even the larger parts of it: they would make the import slow.
    heavy = {"asyncio", "dataclasses", "inspect", "json", "logging", "re", "typing"}
    assert not heavy & set(theirs)
    assert [n for n in theirs if n.partition(".")[0] not in sys.stdlib_module_names] == []


def test_an_installed_gpudebug_goes_first_where_it_stands_first(tmp_path: Path) -> None:
    (tmp_path / "gpudebug.py").write_text("profile_section = 'theirs'")
    code = "import gpudebug; print(gpudebug.profile_section)"
    version = ".".join(map(str, sys.version_info[:2]))
    assert python(version, code, path=os.pathsep.join([str(tmp_path), str(SHIM)])) == "theirs"


def test_there_is_one_list_of_names() -> None:
    """In the package's own file, once for programs and once for type checkers."""
    assert sorted(gpudebug.__all__) == gpudebug.__all__ == profiling.__all__
    for path in (PACKAGE / "__init__.py", PACKAGE / "training" / "profiling" / "__init__.py"):
        tree = ast.parse(path.read_text())
        known = {a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names}
        known |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        assert set(gpudebug.__all__) <= known, path


def test_the_commands_load_nothing_of_it() -> None:
    code = "import sys, gpudebug.cli, gpudebug.terminal; print([m for m in sys.modules if 'training' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_name_is_found_once() -> None:
    code = (
        "import gpudebug; found = gpudebug.profile_section; print(vars(gpudebug)['profile_section'] is found)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'profile_everything'"):
        gpudebug.profile_everything  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'profile_everything'"):
        profiling.profile_everything  # noqa: B018
