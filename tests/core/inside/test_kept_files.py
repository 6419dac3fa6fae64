"""What is made of the notes on a user's files, and which setting moves them."""

from __future__ import annotations

import pytest

from gpudebug.core.inside.kept_files import (
    FileState,
    KeptNotes,
    advice,
    changed,
    deciding,
    named_places,
    read_notes,
    stopped_at,
)

BEFORE = FileState(10, 100, 7)
VARIABLES = {"nnUNet_results": "/data/results", "HOME": "/home/u", "HF_CACHE": "/data/results/c"}


def test_notes_are_read_and_what_is_none_is_passed_over() -> None:
    notes = read_notes(
        b"w 0 0 /a/new.tmp/x y\na 1 2 /a/log\nr 5 6 /a/b.db\nr 9 9 /a/b.db\n"
        b"d 0 0 /a/new.tmp\t/a/new\nz 1 2 /a\nw 1\n\xff\nw 0 0 /a/\xff"
    )
    assert notes.written() == ["/a/new.tmp/x y", "/a/new/x y", "/a/\udcff"]
    assert (notes.added, notes.opened) == ({"/a/log"}, {"/a/b.db": FileState(5, 6)})
    assert stopped_at(b"w 1 2 /a/b\n") == "/a/b"
    assert stopped_at(b"") is None


@pytest.mark.parametrize(
    ("path", "after", "named"),
    [
        ("/a/best.pt", BEFORE, False),
        ("/a/best.pt", None, True),
        ("/a/best.pt", FileState(10, 200, 7), True),
        ("/a/best.pt", FileState(20, 200, 7), True),
        ("/a/best.pt", FileState(10, 100, 8), True),
        ("/a/train.log", FileState(20, 200, 7), False),
        ("/a/train.log", FileState(5, 200, 7), True),
        ("/a/events.out.tfevents.1.host", FileState(20, 200, 7), False),
        ("/a/train.py", FileState(5, 200, 7), False),
        ("/a/mine", FileState(5, 200, 7), False),
        ("/a/added", None, False),
    ],
)
def test_what_was_rewritten(path: str, after: FileState | None, named: bool) -> None:
    notes = KeptNotes(wrote={"/a/mine"}, added={"/a/added"})
    assert changed({path: BEFORE}, {path: after}, notes) == ((path,) if named else ())


@pytest.mark.parametrize(
    ("argv", "path", "told"),
    [
        ("t.py --output_dir out", "/w/out/a.pt", "(--output_dir=out/{run} in the command)"),
        ("t.py --output_dir=out/", "/w/out/b/a.pt", "(--output_dir=out/{run} in the command)"),
        ("t.py hydra.run.dir=out", "/w/out/a.pt", "(hydra.run.dir=out/{run} in the command)"),
        ("t.py out", "/w/out/a.pt", "(out/{run} for out in the command)"),
        ("t.py --save a.pt", "/w/a.pt", "give --save another name in the command"),
        ("t.py", "/data/results/a.pt", "set nnUNet_results to another folder"),
        ("t.py --data . --root=/w", "/w/a.pt", "move it away"),
        ("t.py", "/home/u/a.pt", "move it away"),
    ],
)
def test_the_setting_that_moves_a_file(argv: str, path: str, told: str) -> None:
    places = named_places(["python", *argv.split()], VARIABLES, "/w")
    found = advice(path, deciding(path, places, "/w"), None, campaign=False)
    assert told in found
    assert found.endswith("or allow it with --overwrite")
    assert "--out=…/{run} in workload.command" in advice(path, None, "--out", campaign=True)
