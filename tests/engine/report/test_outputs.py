"""Where a report may go and where not: refused before anything is made."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign

from gpudebug.core.errors import StoreError, UsageError
from gpudebug.edges.store import Workspace
from gpudebug.engine.report.outputs import check, page_at, write


@pytest.fixture
def workspace(told: Campaign) -> Workspace:
    return Workspace(told.folder.resolve())


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("out", "out/report.html"),
        ("out.html", "out.html"),
        ("deep/er/OUT.HTM", "deep/er/OUT.HTM"),
        ("there.html", "there.html/report.html"),
        (".", "report.html"),
    ],
)
def test_a_folder_or_a_page(tmp_path: Path, workspace: Workspace, given: str, made: str) -> None:
    (tmp_path / "there.html").mkdir()
    path = page_at(workspace.runs / "report", tmp_path / given)
    assert path == tmp_path / made
    check(workspace, path)
    write(path, b"page")
    assert path.read_bytes() == b"page"


def test_a_page_of_another_program_is_never_replaced_without_force(
    tmp_path: Path, workspace: Workspace
) -> None:
    (tmp_path / "report.html").write_text("<!doctype html>tests")
    for given in (tmp_path, tmp_path / "report.html"):
        page = page_at(workspace.runs / "report", given)
        with pytest.raises(StoreError, match="not a file that gpudebug wrote"):
            check(workspace, page)
        with pytest.raises(StoreError, match="not a file that gpudebug wrote"):
            write(page, b"ours")
        check(workspace, page, force=True)
    assert page.read_text() == "<!doctype html>tests"
    for name in ("-", "F.png"):
        with pytest.raises(UsageError, match=f"-o {name}: the page is an HTML file"):
            page_at(workspace.runs / "report", tmp_path / name)


def refused(workspace: Workspace, path: Path, said: str) -> None:
    with pytest.raises(StoreError, match=said) as e:
        check(workspace, path)
    assert e.value.next
    assert e.value.file == str(path)


def test_a_run_folder_is_never_written_into(workspace: Workspace, tmp_path: Path) -> None:
    refused(workspace, workspace.runs / "0002-h1" / "report.html", "the run folder 0002-h1")
    refused(workspace, workspace.runs / "0002-h1" / "deeper" / "report.html", "the run folder 0002-h1")
    (tmp_path / "link").symlink_to(workspace.runs / "0002-h1")
    refused(workspace, tmp_path / "link" / "report.html", "the run folder 0002-h1")
    refused(workspace, workspace.worktrees / "test" / "h1" / "report.html", "worktree")
    refused(workspace, workspace.root / ".git" / "report.html", "worktree or in .git")
    check(workspace, workspace.runs / "report" / "report.html")


def test_a_link_that_leaves_the_repository(workspace: Workspace, tmp_path: Path) -> None:
    (workspace.runs / "report").symlink_to(tmp_path)
    refused(workspace, page_at(workspace.runs / "report", None), "leads out of the repository")
    (workspace.root / "circle").symlink_to("circle")
    refused(workspace, workspace.root / "circle" / "report.html", "circle")


def test_a_folder_that_is_a_file_or_closed(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused(workspace, tmp_path / "file" / "report.html", "file is a file, not a folder")
    refused(workspace, tmp_path / "file" / "deeper" / "report.html", "file is a file, not a folder")
    os.mkfifo(tmp_path / "fifo.html")
    refused(workspace, tmp_path / "fifo.html", "not a regular file")
