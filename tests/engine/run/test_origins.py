"""From where a command imports the packages of a checkout: a real interpreter is asked."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support.campaigns import make_repository

from gpudebug.edges import git, launcher
from gpudebug.engine.run.origins import elsewhere, packages_of

MODULES = ("model.py", "data.py", "loop.py")


def package(folder: Path, *modules: str) -> Path:
    folder.mkdir(parents=True)
    for name in ("__init__.py", *modules):
        (folder / name).write_text("raise RuntimeError('nothing is to be imported')\n")
    return folder


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    top = tmp_path / "repo"
    package(top / "src" / "pkg", *MODULES)
    return make_repository(top, {"scripts/train.py": "import pkg\n"})


def asked(
    repository: Path, env: Mapping[str, str], program: str = "scripts/train.py"
) -> dict[str, str] | None:
    packages = packages_of(git.identify(repository))
    variables = {**os.environ, **env}
    told = launcher.ask(sys.executable, variables, (repository,), tuple(packages))
    return elsewhere(packages, told, sys.executable, ["python", program], repository, variables)


def test_the_checkout_itself_is_not_elsewhere(repository: Path) -> None:
    assert asked(repository, {"PYTHONPATH": str(repository / "src")}) == {}


def test_a_package_that_is_not_found_is_not_elsewhere(repository: Path) -> None:
    assert asked(repository, {"PYTHONPATH": ""}) == {}


def test_another_checkout_is_named_with_its_folder(repository: Path, tmp_path: Path) -> None:
    other = package(tmp_path / "other" / "pkg", *MODULES[:2], "more.py")
    assert asked(repository, {"PYTHONPATH": str(other.parent)}) == {"pkg": str(other)}


def test_the_scripts_own_folder_goes_first(repository: Path, tmp_path: Path) -> None:
    other = package(tmp_path / "other" / "pkg", *MODULES)
    env = {"PYTHONPATH": str(other.parent)}
    (repository / "src" / "train.py").write_text("import pkg\n")
    assert asked(repository, env, "src/train.py") == {}


def test_another_package_of_the_same_name_is_no_copy(repository: Path, tmp_path: Path) -> None:
    other = package(tmp_path / "other" / "pkg", "unrelated.py", "model.py")
    assert asked(repository, {"PYTHONPATH": str(other.parent)}) == {}


def test_without_packages_nobody_is_asked(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "repo", {"train.py": ""})
    checkout = git.identify(top)
    assert packages_of(checkout) == {}
    assert elsewhere({}, None, "", ["python", "train.py"], top, {}) == {}


def test_an_interpreter_that_does_not_answer_leaves_it_unknown(repository: Path) -> None:
    packages = packages_of(git.identify(repository))
    assert elsewhere(packages, None, "", ["python", "x.py"], repository, {}) is None
