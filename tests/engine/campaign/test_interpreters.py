"""Where a command's packages come from, by what its Python said and by the folders there are."""

from __future__ import annotations

from pathlib import Path

from gpudebug.edges.launcher import Asked
from gpudebug.engine.campaign.interpreters import import_folders, search_path


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("raise SystemExit(3)\n")


def test_the_programs_folder_goes_before_the_users_path_and_that_before_pythons_own(tmp_path: Path) -> None:
    put(tmp_path / "own", "pkg")
    put(tmp_path / "other", "pkg", "lib")
    asked = Asked(
        "3.11.1", path=("/usr/lib",), found={"pkg": ("/site/pkg", False), "far": ("/site/far", False)}
    )
    env = {"PYTHONPATH": "other"}
    names = ("pkg", "lib", "far", "nowhere")
    found = import_folders(asked, env, str(tmp_path), str(tmp_path / "own"), names)
    assert found == {
        "pkg": str(tmp_path / "own" / "pkg"),
        "lib": str(tmp_path / "other" / "lib"),
        "far": "/site/far",
    }
    safe = import_folders(asked, {**env, "PYTHONSAFEPATH": "1"}, str(tmp_path), str(tmp_path / "own"), names)
    assert safe["pkg"] == str(tmp_path / "other" / "pkg")
    searched = search_path(asked, env, str(tmp_path), "/first")
    assert searched == ("/first", str(tmp_path / "other"), "/usr/lib")


def test_a_module_in_front_hides_a_package_and_an_early_finder_hides_both(tmp_path: Path) -> None:
    (tmp_path / "pkg.py").touch()
    asked = Asked("3.11.1", found={"pkg": ("/site/pkg", False)})
    assert import_folders(asked, {}, "/", str(tmp_path), ("pkg",)) == {}
    early = Asked("3.11.1", early={"pkg": ("/editable/pkg", False)})
    assert import_folders(early, {}, "/", str(tmp_path), ("pkg",)) == {"pkg": "/editable/pkg"}


def test_a_folder_without_a_mark_is_a_package_only_if_no_other_is_one(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    regular = Asked("3.11.1", found={"pkg": ("/site/pkg", False)})
    assert import_folders(regular, {}, "/", str(tmp_path), ("pkg",)) == {"pkg": "/site/pkg"}
    assert import_folders(Asked("3.11.1"), {}, "/", str(tmp_path), ("pkg",)) == {"pkg": str(tmp_path / "pkg")}
