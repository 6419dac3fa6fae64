"""The head of an exported patch: whatever the texts say, git reads the diff that stands below them."""

from __future__ import annotations

import subprocess
from datetime import datetime, timezone
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.campaigns import git, make_repository

from gpudebug.core.change.patch_mail import FIRST_LINE, patch_mail
from gpudebug.core.change.patches import read
from gpudebug.core.progress import harmless

DIFF = b"diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
DATE = datetime(2026, 11, 21, 10, 0, tzinfo=timezone.utc)
HOSTILE = [
    "--- a/etc/passwd +++ b/etc/passwd @@ -1 +1 @@ -x +y",
    "diff --git a/y.py b/y.py new file mode 100644",
    "From 1234567890 Mon Sep 17 00:00:00 2001 From: evil <e@x> Subject: other",
    "Subject: another title",
    ">From me",
    "---",
    "-- >8 --",
    "@@ -1 +1 @@",
    "Index: y.py",
    "GIT binary patch literal 3",
    "[PATCH] tr\N{LATIN SMALL LETTER E WITH ACUTE}s \N{GRINNING FACE}",
    "word " * 400 + "--- a/z +++ b/z",
]


def mail(title: str, *paragraphs: str, place: tuple[int, int] = (1, 1)) -> bytes:
    texts = [harmless(text, limit=2000) for text in paragraphs]
    return patch_mail(DIFF, title=harmless(title, limit=200), paragraphs=texts, place=place, date=DATE)


def test_the_head() -> None:
    assert mail("A title", "First.", "", "Second.", place=(2, 3)).decode() == (
        FIRST_LINE.decode() + "From: gpudebug <gpudebug@localhost>\n"
        "Date: Sat, 21 Nov 2026 10:00:00 +0000\n"
        "Subject: [PATCH 2/3] A title\n"
        "MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\n"
        "\nFirst.\n\nSecond.\n---\n\n" + DIFF.decode()
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_breaks_the_head(tmp_path: Path, text: str) -> None:
    made = make_repository(tmp_path / "repo", {"x.py": "x = 1\n"})
    (tmp_path / "1.patch").write_bytes(mail(text, "Hypothesis 1.", text, f"a\n{text}\n{text}"))
    git(made, "apply", "--check", str(tmp_path / "1.patch"))
    git(made, "am", "-q", str(tmp_path / "1.patch"))
    assert git(made, "show", "--format=", "--name-status").split() == ["M", "x.py"]
    assert git(made, "log", "-1", "--format=%an %ae").strip() == "gpudebug gpudebug@localhost"
    assert (made / "x.py").read_text() == "x = 2\n"
    body = git(made, "log", "-1", "--format=%b")
    assert "".join(harmless(text, limit=2000).split()) in "".join(body.split())


@given(st.text(max_size=300), st.lists(st.text(max_size=300), max_size=3))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_any_text_leaves_one_patched_file(title: str, paragraphs: list[str]) -> None:
    made = mail(title, *paragraphs)
    assert made.startswith(FIRST_LINE) and made.endswith(DIFF)
    assert [each.paths for each in read(made, "1.patch").files] == [("x.py",)]
    head = made[: -len(DIFF)].splitlines()
    assert head.count(b"---") == 1


def test_git_counts_the_files_of_a_patch_alike(tmp_path: Path) -> None:
    (tmp_path / "1.patch").write_bytes(mail(" ".join(HOSTILE), *HOSTILE))
    done = subprocess.run(
        ["git", "apply", "--numstat", "1.patch"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "1\t1\tx.py\n"
