"""A run folder after its job: nothing in it is followed, waited for, or lost."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gpudebug.edges.store import folders, jobfiles


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "0001-h1"
    (folder / "job").mkdir(parents=True)
    (folder / "records").mkdir()
    (folder / "run.json").write_text("{}")
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "x").write_text("mine")
    return folder


def link(path: Path) -> None:
    path.symlink_to(path.parents[1] / "victim" / "x")


SPECIAL: list[Callable[[Path], object]] = [link, os.mkfifo, Path.mkdir, lambda path: None]


@pytest.mark.parametrize("put", SPECIAL)
def test_only_a_regular_file_is_read(run: Path, put: Callable[[Path], object]) -> None:
    put(run / "samples.csv")
    put(run / "job" / "probe.jsonl")
    put(run / "records" / "probe.jsonl")
    assert jobfiles.head_digest(run / "samples.csv", 1) is None
    assert jobfiles.size_of(run / "samples.csv") is None
    jobfiles.cut(run / "samples.csv", 0)
    assert not jobfiles.copy_up(run, "probe.jsonl", 100)
    assert not jobfiles.move_up(run, "probe.jsonl", 100)
    assert (run.parent / "victim" / "x").read_text() == "mine"


def test_the_head_of_a_file(run: Path) -> None:
    (run / "a").write_bytes(b"0123456789")
    assert jobfiles.head_digest(run / "a", 4) == hashlib.sha256(b"0123").hexdigest()
    assert jobfiles.head_digest(run / "a", 0) == hashlib.sha256(b"").hexdigest()
    assert jobfiles.head_digest(run / "a", 11) is None
    jobfiles.cut(run / "a", 4)
    assert (run / "a").read_bytes() == b"0123"


def test_copies_and_moves_are_capped(run: Path) -> None:
    (run / "job" / "probe.jsonl").write_bytes(b"0123456789")
    (run / "records" / "probe.jsonl").write_bytes(b"abcdefghij")
    assert jobfiles.copy_up(run, "probe.jsonl", 4)
    assert (run / "probe.jsonl").read_bytes() == b"abcd"
    assert jobfiles.copy_up(run, "probe.jsonl", 4, of=folders.JOB)
    assert (run / "probe.jsonl").read_bytes() == b"0123"
    assert not jobfiles.move_up(run, "probe.jsonl", 4)
    assert not jobfiles.move_up(run, "probe.jsonl", 10)
    (run / "probe.jsonl").unlink()
    assert jobfiles.move_up(run, "probe.jsonl", 10)
    assert (run / "probe.jsonl").read_bytes() == b"0123456789"
    assert jobfiles.names_in(run, folders.JOB) == []


def test_what_a_job_put_beside_its_folder_is_moved_into_it_as_it_is(run: Path) -> None:
    link(run / "configuration")
    os.mkfifo(run / "fifo")
    (run / "data").mkdir()
    (run / "data" / "y").write_text("kept")
    names = jobfiles.strangers(run, {"run.json"})
    assert names == ["configuration", "data", "fifo"]
    moved = jobfiles.put_aside(run, names)
    assert sorted(os.listdir(run)) == ["job", "records", "run.json"]
    assert (run / moved["data"] / "y").read_text() == "kept"
    assert (run / moved["configuration"]).is_symlink()


@pytest.mark.parametrize("put", SPECIAL)
def test_a_job_that_put_something_in_the_place_of_its_folder(
    run: Path, put: Callable[[Path], object]
) -> None:
    (run / "job").rename(run / "own")
    put(run / "job")
    assert jobfiles.names_in(run, folders.JOB) == []
    jobfiles.put_aside(run, ["own"])
    assert (run / "job").is_dir()
    assert not (run / "job").is_symlink()
    assert sorted(os.listdir(run)) == ["job", "records", "run.json"]
    assert os.listdir(run.parent / "victim") == ["x"]
