"""Exports: patches that apply in order to a fresh clone, and what they are worth together."""

from __future__ import annotations

import re
import subprocess
from datetime import datetime, timezone
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engine.conftest import PATCHES, WORKERS
from tests.support.campaigns import Campaign, commit_all, contents, git, make_repository

from gpudebug.core.change.patches import read
from gpudebug.core.errors import GpudebugError
from gpudebug.core.progress import harmless
from gpudebug.engine.hypotheses.accept import accept
from gpudebug.engine.hypotheses.export import FIRST_LINE, export, is_ours, patch_mail


def test_an_export_is_applied_to_a_fresh_clone(adopted: Campaign, tmp_path: Path) -> None:
    before = contents(adopted.folder)
    answer = adopted.json("export")
    folder = adopted.folder / "runs" / "export"
    assert answer["patches"] == ["0001-one-worker-loads.patch"]
    assert answer["files"] == [str(folder / name) for name in ("0001-one-worker-loads.patch", "README.md")]
    assert answer["next_command"] == f"git apply {folder}/0001-one-worker-loads.patch"
    assert [(h["number"], h["order"], h["patch"]) for h in answer["hypotheses"]] == [
        (2, 1, "0001-one-worker-loads.patch"),
        (1, 2, None),
    ]
    changed = {name for name, found in contents(adopted.folder).items() if found != before.get(name)}
    assert {name for name in changed if not name.startswith("runs/export")} == set()
    git(tmp_path, "clone", "-q", str(adopted.folder), "clone")
    clone = tmp_path / "clone"
    git(clone, "apply", "--index", str(folder / "0001-one-worker-loads.patch"))
    assert (clone / "loader.py").read_text() == WORKERS
    git(clone, "reset", "-q", "--hard")
    git(clone, "am", "-q", str(folder / "0001-one-worker-loads.patch"))
    message = git(clone, "log", "-1", "--format=%s%n%an%n%b")
    assert message.startswith("One worker | loads\ngpudebug\nHypothesis 2 of the gpudebug campaign test.\n")
    alone = r"Measured alone: GPU util 2\d\.\d% \(level .*\) to 6\d\.\d%: \+\d\d\.\dpp \(95% CI"
    assert re.search(alone, " ".join(message.split())) is not None


def test_the_combined_figure_is_measured_and_no_sum(adopted: Campaign) -> None:
    answer = export(adopted.folder)
    combined = answer.combined
    parts = [h.delta.value for h in answer.hypotheses if h.delta is not None]
    assert combined.delta is not None and combined.throughput_ratio is not None
    assert combined.delta.value == pytest.approx(55.0, abs=1.0)
    assert sum(parts) == pytest.approx(81.0, abs=1.0)
    assert (combined.delta.low or 100) < combined.delta.value < (combined.delta.high or 0)
    assert combined.throughput_ratio.value == pytest.approx(4.0, rel=0.02)
    assert [*combined.runs_after] == adopted.json("status")["baselines"]["workload"]["runs"]
    assert not set(combined.runs_before) & set(combined.runs_after)
    assert combined.notes == ()
    readme = (adopted.folder / "runs" / "export" / "README.md").read_text()
    assert f"Together, as measured: **{combined.text}**" in readme
    sides = [
        ", ".join(f"runs/{name}" for name in side) for side in (combined.runs_after, combined.runs_before)
    ]
    assert f"\n2 runs ({sides[0]}) against 2 runs ({sides[1]})" in readme
    assert "Do not add these figures up" in readme
    assert "| 2 | One worker \\| loads | `--patch hypotheses/patches/workers.patch` | +4" in readme
    assert "train.py --lr=0.2 --work=0.2\n```" in readme


def refused(campaign: Campaign, said: str, advice: str, output: Path | None = None) -> None:
    before = contents(campaign.folder)
    with pytest.raises(GpudebugError, match=said) as caught:
        export(campaign.folder, output)
    assert caught.value.next == advice
    assert contents(campaign.folder) == before


def test_what_was_not_measured_together_is_not_exported(judged: Campaign) -> None:
    refused(judged, "nothing is accepted yet", "gpudebug accept H")
    for number in (1, 2, 4):
        accept(judged.folder, number)
    refused(judged, "was not measured together since: baseline workload: tree changed", "gpudebug next")
    judged.add(
        "\n### Hypothesis 7: T\n- **Intervention**: --set --x=1\n- **Status**: VALIDATED\n- **Accepted**: 3\n"
    )
    refused(
        judged,
        "the Accepted line of hypothesis 7 was written by hand: UNVERIFIED",
        "gpudebug accept 7, or delete the line",
    )


def test_only_an_export_is_replaced(adopted: Campaign, tmp_path: Path) -> None:
    advice = "name another folder with -o"
    target = tmp_path / "out" / "patches"
    assert export(adopted.folder, target).directory == str(target)
    first = contents(target)
    assert export(adopted.folder, target).files and contents(target) == first
    (target / "notes.txt").write_text("mine")
    refused(adopted, "holds notes.txt, which is not of an export", advice, target)
    (tmp_path / "link").symlink_to(tmp_path / "out")
    refused(adopted, "is a link", advice, tmp_path / "link")
    refused(adopted, "lies inside of .git", advice, adopted.folder / ".git" / "export")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["patches"]


def test_each_patch_is_made_against_those_before_it(adopted: Campaign, tmp_path: Path) -> None:
    adopted.json("accept", "4")
    assert "was not measured together since" in adopted.run("export").expect(1).err
    adopted.json("next")
    answer = adopted.json("export", "-o", str(tmp_path / "out"))
    assert answer["patches"] == ["0001-one-worker-loads.patch", "0002-too-few-load.patch"]
    written = (adopted.folder / PATCHES / "twice.patch").read_text()
    exported = (tmp_path / "out" / "0002-too-few-load.patch").read_text()
    assert "@@ -2,4 +2,4 @@" in written and "@@ -4,4 +4,4 @@" in exported
    git(tmp_path, "clone", "-q", str(adopted.folder), "clone")
    for name in answer["patches"]:
        git(tmp_path / "clone", "apply", str(tmp_path / "out" / name))
    loader = WORKERS.replace("return workers", "return 2 * workers")
    assert (tmp_path / "clone" / "loader.py").read_text() == loader


def test_what_the_checkout_has_by_now_is_no_patch(adopted: Campaign) -> None:
    git(adopted.folder, "apply", f"{PATCHES}/workers.patch")
    commit_all(adopted.folder)
    status = adopted.json("status")
    assert status["baselines"]["workload"]["valid"] and status["together"]["text"]
    answer = export(adopted.folder)
    assert (answer.patches, answer.next_command) == ((), None)
    assert [h.in_checkout for h in answer.hypotheses] == [True, False]
    assert "the patch of hypothesis 2 is in the checkout already" in answer.notes
    assert answer.combined.text == status["together"]["text"]


@pytest.mark.parametrize(
    ("name", "head", "ours"),
    [
        ("README.md", b"# Accepted changes of campaign x\n", True),
        ("README.md", b"# My project\n", False),
        ("0001-a.patch", b"From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\nX", True),
        ("0001-a.patch", b"diff --git a/x b/x\n", False),
        ("a.patch", b"From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\nX", False),
        ("notes.txt", b"", False),
    ],
)
def test_what_is_of_an_export(name: str, head: bytes, ours: bool) -> None:
    assert is_ours(name, head) is ours


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
