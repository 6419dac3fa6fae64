"""What the processes of a run told of the files that they imported."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpudebug.core.inside.imported_files import (
    MOST_FILES,
    has_package,
    read_loaded,
    recorded,
    spoiling,
    strays,
)
from gpudebug.core.records import LoadedFiles


def line(**more: Any) -> str:
    return json.dumps({"pid": 1, "argv0": "train.py", "tree": "/b", "files": [], "elsewhere": {}, **more})


def test_the_lines_of_all_processes_are_one_answer() -> None:
    found = read_loaded(
        "\n".join(
            [
                line(files=["train.py", "pkg/util.py"]),
                line(files=["pkg/util.py", "pkg/worker.py"], elsewhere={"/a": ["pkg/util.py"]}),
                line(elsewhere={"/a": ["pkg/other.py"], "/c": ["x.py"]}),
            ]
        )
    )
    assert found == LoadedFiles(
        tree="/b",
        files=("pkg/util.py", "pkg/worker.py", "train.py"),
        elsewhere={"/a": ("pkg/other.py", "pkg/util.py"), "/c": ("x.py",)},
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "trained\n",
        "[]",
        "7",
        "null",
        "{}",
        line()[:-9],
        line(tree=7),
        line(files="train.py"),
        line(files=[7]),
        line(elsewhere=[]),
        line(elsewhere={"/a": 7}),
        line(elsewhere={"/a": [None]}),
    ],
)
def test_what_is_no_line_of_the_record_tells_nothing(text: str) -> None:
    assert read_loaded(text) is None
    told = read_loaded(f"{text}\n{line(files=['train.py'])}\n{text}")
    assert told is not None
    assert (told.files, told.elsewhere) == (("train.py",), {})


def test_one_run_tests_one_tree() -> None:
    told = read_loaded(line(files=["a.py"]) + "\n" + line(tree="/c", files=["b.py"]))
    assert told == LoadedFiles(tree="/b", files=("a.py",))


def test_many_files_are_two_thousand() -> None:
    lines = [line(files=[f"m{n:05d}.py" for n in range(k * 1500, (k + 1) * 1500)]) for k in range(3)]
    told = read_loaded("\n".join(lines))
    assert told is not None
    assert len(told.files) == MOST_FILES


def test_strays_are_named_with_both_paths() -> None:
    loaded = LoadedFiles(tree="/b", elsewhere={"/a": ("train/util.py",)})
    assert strays(loaded) == ("train/util.py was loaded from /a/train/util.py, not from /b/train/util.py",)
    many = LoadedFiles(tree="/b", elsewhere={"/a": ("x.py", "y.py"), "/c": ("p.py", "q.py", "r.py")})
    assert [said.partition(" ")[0] for said in strays(many)] == ["x.py", "y.py", "p.py", "2"]
    assert strays(LoadedFiles(tree="/b", files=("x.py",))) == ()


@pytest.mark.parametrize(
    ("file", "there"),
    [
        ("pkg/util.py", True),
        ("src/pkg/a/b.py", True),
        ("pkg.py", False),
        ("other/util.py", False),
        ("pkg", False),
    ],
)
def test_a_package_is_there_where_a_file_of_it_was_loaded(file: str, there: bool) -> None:
    assert has_package(LoadedFiles(tree="/b", files=(file,)), "pkg") is there


def test_what_every_run_of_the_baseline_rewrites_is_excused_but_no_code() -> None:
    written = ("train.py", "metrics.json")
    assert spoiling(written, [written, written]) == ["train.py"]
    assert spoiling(written, [written, ("metrics.json",)]) == ["train.py"]
    assert spoiling(written, [written, ()]) == ["train.py", "metrics.json"]
    # A record of 0.1.0 does not know; a baseline's own run is held against nothing.
    assert spoiling(written, [None, ("metrics.json",)]) == ["train.py"]
    assert spoiling(("metrics.json",)) == []


def test_of_many_files_code_comes_first() -> None:
    kept = recorded([*(f"a{n}.csv" for n in range(3000)), "z.py", "y.so"])
    assert len(kept) == MOST_FILES and kept[:2] == ("y.so", "z.py")
