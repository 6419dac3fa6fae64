"""What no hypothesis may change: git's own files, what leaves the tree, submodules, gpudebug's files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from posixpath import dirname, join, normpath

from gpudebug.core.change.patches.hunks import Patch, PatchedFile
from gpudebug.core.errors import InterventionError

LINK, SUBMODULE = "120000", "160000"
_LEAVE = "leave this file out of the patch"


def refuse_unsafe(patch: Patch, *, own: Collection[str] = ()) -> None:
    """Refuse what no hypothesis may change: InterventionError, at its line, for the first such file.

    git's own files, paths and links that leave the tree, submodules, and `own`: gpudebug's files and
    folders, relative to the top of the repository.
    """
    links: dict[str, int] = {}
    for each in patch.files:
        why = next((w for w in (refused_path(path, own) for path in each.paths) if w), None)
        if each.new is not None:
            why = why or refused_kind(each.new, each.new_mode or "", _target(each))
        if why is not None:
            text = f"{_shown(each.path)} {why}"
            raise InterventionError(text, file=patch.file, line=each.line, next=_LEAVE)
        if each.new_mode == LINK:
            links[each.path] = each.line
    for each in patch.files:
        behind = next((p for path in each.paths for p in _folders(path) if p in links), None)
        if behind is not None:
            raise InterventionError(
                f"{_shown(each.path)} would be written through the link {_shown(behind)}",
                file=patch.file,
                line=each.line,
                next=_LEAVE,
            )


def refused_path(path: str, own: Collection[str] = ()) -> str | None:
    """Return why a patch may not touch `path`, as the rest of a sentence; None if it may."""
    parts = path.split("/")
    if path.startswith("/"):
        return "is an absolute path"
    if any(part in ("..", ".", "") for part in parts):
        return "leaves the tree, or is written in a roundabout way"
    plain = [_as_a_lenient_disk(part) for part in parts]
    if any(part in (".git", "git~1") for part in plain):
        return "is git's own"
    if plain[-1] in (".gitmodules", "gitmod~1"):
        return "sets the source of submodules"
    lenient = "/".join(plain)
    kept = ["/".join(map(_as_a_lenient_disk, mine.strip("/").split("/"))) for mine in own]
    if any(lenient == mine or lenient.startswith(f"{mine}/") for mine in kept):
        return "is gpudebug's own"
    return _instructs(plain)


# What tools read by themselves once it lies in a checkout: instructions to agents and editors, hooks, jobs.
_FILES = {
    **dict.fromkeys(
        (
            *(
                "agents.md",
                "agent.md",
                "claude.md",
                "claude.local.md",
                "gemini.md",
                "qwen.md",
                "conventions.md",
            ),
            *("agents.override.md", "copilot-instructions.md", "skill.md", ".cursorrules", ".windsurfrules"),
            *(".clinerules", ".goosehints", ".aider.conf.yml", ".mcp.json", "mcp.json", "opencode.json"),
            *(
                ".rules",
                ".roorules",
                "warp.md",
                "crush.md",
                "opencode.jsonc",
                ".aiderignore",
                ".cursorignore",
            ),
        ),
        "instructs coding agents",
    ),
    **dict.fromkeys((".gitattributes", ".gitconfig"), "changes what git does"),
    **dict.fromkeys(
        (
            *(
                ".envrc",
                ".env",
                ".tool-versions",
                "mise.toml",
                ".mise.toml",
                ".autoenv",
                ".pre-commit-config.yaml",
            ),
            *(".gitlab-ci.yml", "jenkinsfile", "azure-pipelines.yml", ".travis.yml", ".lefthook.yml"),
            *("lefthook.yml", ".pypirc", ".netrc", ".bashrc", ".profile", ".direnvrc"),
        ),
        "is run or read by tools outside of the training",
    ),
    **dict.fromkeys(
        ("sitecustomize.py", "usercustomize.py", "pyvenv.cfg"), "is run by every Python that finds it"
    ),
    "gpudebug.yaml": "is a campaign's settings",
    "gpudebug.yml": "is a campaign's settings",
}
_FOLDERS = {
    **dict.fromkeys(
        (
            *(".claude", ".cursor", ".codex", ".gemini", ".qwen", ".opencode", ".amp", ".goose", ".aider"),
            *(
                ".windsurf",
                ".clinerules",
                ".roo",
                ".continue",
                ".kiro",
                ".agents",
                ".agent",
                ".crush",
                ".factory",
            ),
            *(".augment", ".junie", ".copilot", ".trae", ".cline"),
        ),
        "instructs coding agents",
    ),
    **dict.fromkeys((".vscode", ".idea", ".devcontainer", ".zed"), "is run or read by editors"),
    **dict.fromkeys(
        (".github", ".gitlab", ".circleci", ".husky", ".githooks", ".gitea", ".forgejo", ".buildkite"),
        "is run or read by tools outside of the training",
    ),
}


def _instructs(plain: list[str]) -> str | None:
    """Say why an exported patch must not hold this file; None for an ordinary one."""
    folder = next((_FOLDERS[part] for part in plain[:-1] if part in _FOLDERS), None)
    name = plain[-1]
    if folder or name in _FILES:
        return folder or _FILES[name]
    if name.endswith(".pth"):
        return "is run by every Python that finds it"
    return "is run or read by tools outside of the training" if name.startswith(".env.") else None


def refused_kind(path: str, mode: str, target: str | None) -> str | None:
    """Why a patch may not make a file of this kind; `target` is a link's, None if it cannot be read."""
    if mode == SUBMODULE:
        return "is a submodule"
    if mode != LINK:
        return None
    if target is None:
        return "is a symbolic link whose target cannot be read"
    led = normpath(join(dirname(path), target))
    if target.startswith("/") or led == ".." or led.startswith("../"):
        return f"is a symbolic link that leads out of the tree, to {_shown(target)}"
    if any(_as_a_lenient_disk(part) == ".git" for part in target.split("/")):
        return "is a symbolic link to git's own files"
    return None


def _as_a_lenient_disk(part: str) -> str:
    """Return a name as file systems see it that take case, some signs and dots at the end for nothing."""
    seen = re.sub("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]", "", part)
    return seen.lower().split(":")[0].rstrip(" .")


def _target(each: PatchedFile) -> str | None:
    """Return where a new or rewritten link leads: it has one line."""
    lines = [line for hunk in each.hunks for line in hunk.body]
    added = [line[1:] for line in lines if line.startswith(b"+")]
    if len(added) != 1 or any(line[:1] == b" " for line in lines):
        # Without a hunk it is moved or made executable; its result is looked at where it is applied.
        return "" if not lines and each.old is not None else None
    return added[0].decode("utf-8", "surrogateescape")


def _folders(path: str) -> Iterator[str]:
    parts = path.split("/")
    return ("/".join(parts[:n]) for n in range(1, len(parts)))


def _shown(path: str) -> str:
    return path if path.isprintable() and len(path) <= 200 else ascii(path[:200])
