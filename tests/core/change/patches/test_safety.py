"""What no hypothesis may change, however its patch writes it."""

from __future__ import annotations

import pytest

from gpudebug.core.change import patches
from gpudebug.core.errors import InterventionError

OWN = ("gpudebug.yaml", "progress/p.md", "runs", "hypotheses", ".gitignore")


def change(path: str, old: str | None = None) -> str:
    return f"--- {old or 'a/' + path}\n+++ b/{path}\n@@ -1 +1 @@\n-x\n+y\n"


def added(path: str, content: str, mode: str = "100644") -> str:
    return (
        f"diff --git a/{path} b/{path}\nnew file mode {mode}\n--- /dev/null\n+++ b/{path}\n"
        f"@@ -0,0 +1 @@\n+{content}\n\\ No newline at end of file\n"
    )


def renamed(old: str, new: str) -> str:
    return f"diff --git a/{old} b/{new}\nsimilarity index 100%\nrename from {old}\nrename to {new}\n"


def quoted(path: str) -> str:
    return f'diff --git "a/{path}" "b/{path}"\nold mode 100644\nnew mode 100755\n'


REFUSED = {
    "git's hooks": (change(".git/hooks/pre-commit"), "git's own"),
    "git's, in capitals": (change(".GIT/config"), "git's own"),
    "a submodule's": (change("libs/sub/.Git/config"), "git's own"),
    "git's, for a lenient disk": (change(".git. /config"), "git's own"),
    "git's, with a sign that is not seen": (change(".g\u200cit/config"), "git's own"),
    "git's, by its short name": (change("GIT~1/config"), "git's own"),
    "git's, in quotes": (quoted("\\056git/config"), "git's own"),
    "source of submodules": (change(".gitmodules"), "source of submodules"),
    "absolute": (change("x", "/etc/passwd").replace("b/x", "/etc/passwd"), "absolute"),
    "absolute behind its prefix": (renamed("x", "/etc/passwd"), "absolute"),
    "up": (change("../x"), "leaves the tree"),
    "up, further down": (change("a/../../x"), "leaves the tree"),
    "renamed out": (renamed("x", "../y"), "leaves the tree"),
    "deleted": (change("gpudebug.yaml").replace("+++ b/gpudebug.yaml", "+++ /dev/null"), "gpudebug's own"),
    "the config": (change("gpudebug.yaml"), "gpudebug's own"),
    "the progress file": (change("progress/p.md"), "gpudebug's own"),
    "evidence": (change("runs/0001-h1/run.json"), "gpudebug's own"),
    "another hypothesis": (change("hypotheses/patches/h2.patch"), "gpudebug's own"),
    "own, renamed away": (renamed("hypotheses/x", "y"), "gpudebug's own"),
    "a link out": (added("l", "../../etc", "120000"), "leads out of the tree"),
    "a link up from below": (added("a/b/l", "../../../x", "120000"), "leads out of the tree"),
    "a link to the root": (added("l", "/", "120000"), "leads out of the tree"),
    "a link to git's": (added("l", ".git/hooks", "120000"), "git's own"),
    "a link rewritten": (
        "diff --git a/l b/l\nindex 11..22 120000\n--- a/l\n+++ b/l\n@@ -1 +1 @@\n-x\n+/etc\n",
        "leads out of the tree",
    ),
    "a link of many lines": (added("l", "a", "120000").replace("+1 @@\n+a", "+1,2 @@\n+a\n+b"), "cannot be"),
    "ours, in capitals": (change("GPUDEBUG.YAML"), "gpudebug's own"),
    "ours, in a lenient disk's folder": (change("Progress/P.md"), "gpudebug's own"),
    "another campaign's settings": (change("other/gpudebug.yaml"), "campaign's settings"),
    "attributes": (change("src/.gitattributes"), "what git does"),
    "agents' instructions": (change("AGENTS.md"), "instructs coding agents"),
    "agents' instructions, in small letters": (change("docs/agents.md"), "instructs coding agents"),
    "Claude's": (change("pkg/Claude.MD"), "instructs coding agents"),
    "Claude's settings": (added(".claude/settings.json", "{}"), "instructs coding agents"),
    "Cursor's rules": (added(".cursor/rules/x.mdc", "x"), "instructs coding agents"),
    "a server of tools": (added(".mcp.json", "{}"), "instructs coding agents"),
    "a job of the forge's": (added(".github/workflows/x.yml", "on: push"), "outside of the training"),
    "a job, renamed to its place": (renamed("x.yml", ".GitHub/workflows/x.yml"), "outside of the training"),
    "a folder's variables": (added("sub/.envrc", "id"), "outside of the training"),
    "an editor's tasks": (added(".vscode/tasks.json", "{}"), "by editors"),
    "what every Python runs": (added("src/sitecustomize.py", "1"), "every Python"),
    "what every Python runs, by path": (added("x.pth", "import os"), "every Python"),
    "a submodule": (added("sub", "Subproject commit 12", "160000"), "is a submodule"),
    "through its own link": (added("out", "data", "120000") + added("out/x.py", "1"), "through the link out"),
    "the last of many": (change("a.py") + change("b.py") + change(".git/config"), "git's own"),
}
ALLOWED = {
    "a file": change("train.py"),
    "a name like git's": change("x.github/x.git/gitty.py"),
    "below a folder like ours": change("src/runs/x.py") + change("runs2/x.py") + change("progress/q.md"),
    "another ignore file": change("pkg/.gitignore"),
    "a link inside": added("a/b/l", "../../data", "120000"),
    "dots in a name": change("a..b/..c"),
    "a link deleted": "diff --git a/l b/l\ndeleted file mode 120000\n--- a/l\n+++ /dev/null\n"
    "@@ -1 +0,0 @@\n-/etc\n\\ No newline at end of file\n",
}


@pytest.mark.parametrize("text, said", REFUSED.values(), ids=REFUSED)
def test_it_is_refused_in_one_line(text: str, said: str) -> None:
    patch = patches.read(text.encode(), "hypotheses/patches/p")
    with pytest.raises(InterventionError, match=said) as caught:
        patches.refuse_unsafe(patch, own=OWN)
    assert caught.value.file == "hypotheses/patches/p"
    line = caught.value.line or 0
    assert text.split("\n")[line - 1].startswith(("diff --git ", "--- "))
    assert "\n" not in str(caught.value)
    assert caught.value.next


@pytest.mark.parametrize("text", ALLOWED.values(), ids=ALLOWED)
def test_the_rest_is_not(text: str) -> None:
    patches.refuse_unsafe(patches.read(text.encode(), "p"), own=OWN)


def test_a_name_cannot_break_the_line() -> None:
    patch = patches.read(quoted("..\\nforged line\\033[31m/../x").encode(), "p")
    with pytest.raises(InterventionError) as caught:
        patches.refuse_unsafe(patch)
    assert str(caught.value).isprintable()
