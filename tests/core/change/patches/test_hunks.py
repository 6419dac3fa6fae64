"""Patches are read as git writes and applies them, and named with their line where they are none."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.campaigns import commit_all, git, make_repository

from gpudebug.core.change import patches
from gpudebug.core.errors import InterventionError

PLAIN = b"""\
From a mail, with prose.
--- a/pkg/train.py\t2026-01-01 00:00:00
+++ b/pkg/train.py\t2026-01-02 00:00:00
@@ -3,2 +3,3 @@ def f():
 x
-y
+z
+w
@@ -10 +11 @@
-q
+r
\\ No newline at end of file
--- new.txt
+++ /dev/null
@@ -1 +0,0 @@
-gone
"""
ODD_NAMES = [
    *("plain.py", "a b c.py", "tab\there.py", 'quo"te', "back\\slash", "new\nline", "größe.py", " lead"),
    *("trail ", "a/b/c.py", "b/a", "c", "x b/x", "-dash", "@@ -1 +1 @@", "diff --git a b"),
]


def test_a_plain_diff() -> None:
    patch = patches.read(PLAIN, "p.patch")
    first, second = patch.files
    assert (first.line, first.old, first.new) == (2, "pkg/train.py", "pkg/train.py")
    assert [(h.line, h.start, len(h.body)) for h in first.hunks] == [(4, 3, 4), (9, 10, 3)]
    assert (second.line, second.old, second.new, second.path) == (13, "new.txt", None, "new.txt")
    assert patch.paths == ("pkg/train.py", "new.txt")


def test_every_name_that_git_writes_is_read(tmp_path: Path) -> None:
    """Changed, added, deleted, renamed and copied files of any name, against git's own list."""
    content = {name: f"{name!r}\n" * 20 for name in ODD_NAMES}
    top = make_repository(tmp_path / "r", {f"d/{k}": v for k, v in content.items()} | {"bin": b"\0\1" * 99})
    for name in ODD_NAMES:
        (top / "e" / name).parent.mkdir(parents=True, exist_ok=True)
        (top / "f" / name).parent.mkdir(parents=True, exist_ok=True)
        (top / "e" / name).write_text(content[name])
        (top / "f" / name).write_text("something new\n" + name)
        (top / "d" / name).rename(top / "e" / name)
        (top / "d" / name).write_text("changed\n" + content[name])
    (top / "bin").write_bytes(b"\0\2" * 50)
    (top / "link").symlink_to("bin")
    (top / "empty").touch()
    (top / "d" / "plain.py").chmod(0o755)
    commit_all(top)
    listed = git(top, "diff", "--name-only", "-z", "--no-renames", "HEAD~").split("\0")[:-1]
    for options in (["-M"], ["-M", "-C", "--find-copies-harder"], ["--no-renames"], ["-U0"]):
        out = git(top, "diff", "--binary", *options, "HEAD~", "HEAD").encode()
        patch = patches.read(out, "p")
        assert set(patch.paths) == set(listed)
        lines = out.split(b"\n")
        assert all(lines[each.line - 1].startswith(b"diff --git ") for each in patch.files)
        assert all(lines[h.line - 1].startswith(b"@@ ") for each in patch.files for h in each.hunks)
        by_path = {each.path: each for each in patch.files}
        assert by_path["bin"].binary
        assert by_path["d/plain.py"].new_mode == "100755"
        assert by_path["link"].new_mode == "120000"
        assert by_path["empty"].hunks == ()


def test_renames_and_copies_say_so() -> None:
    text = (
        "diff --git a/old.py b/new.py\nsimilarity index 100%\nrename from old.py\nrename to new.py\n"
        "diff --git a/x b/y\nsimilarity index 100%\ncopy from x\ncopy to y\n"
    )
    renamed, copied = patches.read(text.encode(), "p").files
    assert (renamed.moved, renamed.paths) == ("rename", ("old.py", "new.py"))
    assert (copied.moved, copied.paths) == ("copy", ("y",))


HEAD = "--- a/x\n+++ b/x\n"
BAD = {
    "empty": ("", "empty", None),
    "blank": ("\n \n\t\n", "empty", None),
    "prose": ("Change the loader.\n", "is not a patch", None),
    "a hunk alone": ("@@ -1 +1 @@\n-a\n+b\n", "without a file", 1),
    "cut off": (HEAD + "@@ -1,3 +1,3 @@\n a\n-b\n", "ends within a hunk", 5),
    "longer by its header": (HEAD + "@@ -1,3 +1,3 @@\n a\n-b\nfoo\n", "longer by its header", 6),
    "longer than its header": (HEAD + "@@ -1,2 +1 @@\n-a\n+b\n+c\n", "longer than its header", 6),
    "no contents": ("diff --git a/x b/x\nBinary files a/x and b/x differ\n", "without its contents", 2),
    "no name": ("diff --git a/x b/y\nindex 12..34 100644\n", "name of the file", 1),
}


@pytest.mark.parametrize("text, said, line", BAD.values(), ids=BAD)
def test_what_is_no_patch_is_refused_at_its_line(text: str, said: str, line: int | None) -> None:
    with pytest.raises(InterventionError, match=said) as caught:
        patches.read(text.encode(), "hypotheses/patches/p")
    assert (caught.value.file, caught.value.line) == ("hypotheses/patches/p", line)
    assert caught.value.next


def test_a_patch_with_data_in_it_is_too_large() -> None:
    with pytest.raises(InterventionError, match=r"5\.0 MB, more than 5"):
        patches.read(b"+" * (patches.LARGEST + 1), "p")


def test_a_patch_for_another_system_is_read() -> None:
    text = (HEAD + "@@ -1,2 +1,2 @@\n a\n-b\n+c\n").replace("\n", "\r\n").encode()
    assert patches.read(text, "p").paths == ("x",)
