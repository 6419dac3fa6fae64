"""Git's own folder of a worktree, `worktrees/<id>`: whose it is, and taking it and the worktree away."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

from gpudebug.core.errors import GitError
from gpudebug.edges.snapshot.journal import Record
from gpudebug.edges.snapshot.repository import Repository, alone, failing

MARK = "gpudebug"


def folders(repository: Repository) -> list[Path]:
    place = repository.common / "worktrees"
    return sorted(p for p in place.iterdir() if p.is_dir()) if place.is_dir() else []


def mark(folder: Path, token: str, path: Path) -> None:
    """Say in git's folder of a worktree that it is ours."""
    with failing("mark a worktree", folder):
        temporary = folder / f"{MARK}.new"
        temporary.write_text(json.dumps({"token": token, "path": str(path)}))
        temporary.replace(folder / MARK)


def token_of(folder: Path) -> str | None:
    """The token of a worktree that is ours; None for any other."""
    try:
        told = json.loads((folder / MARK).read_bytes())
    except (OSError, ValueError):
        return None
    token = told.get("token") if isinstance(told, dict) else None
    return token if isinstance(token, str) and token else None


def leads_to_ours(path: Path, token: str) -> bool:
    """Whether the .git file of a worktree leads to git's folder of it: written anew, it could lead to the
    checkout's own index."""
    try:
        said = (path / ".git").read_bytes()
    except OSError:
        return False
    return token_of(path / os.fsdecode(said.removeprefix(b"gitdir:").strip())) == token


def path_of(folder: Path) -> Path | None:
    """The worktree that git's folder stands for; None where it does not say (yet)."""
    try:
        said = (folder / "gitdir").read_bytes().rstrip(b"\n")
    except OSError:
        return None
    # Newer versions of git may write it relative to the folder.
    return Path(os.path.normpath(folder / os.fsdecode(said))).parent if said else None


def of(repository: Repository, path: Path, record: Record) -> Path | None:
    """Git's folder of the worktree that `record` describes, as far as it was made."""
    for folder in folders(repository):
        token = token_of(folder)
        if token is not None:
            # A journal without a token was cut off while it was written.
            if token == record.token or (not record.token and path_of(folder) == path):
                return folder
        elif record.state == "making" and folder.name not in record.before:
            stands_for = path_of(folder)
            if stands_for == path or (stands_for is None and _just_begun(folder, path)):
                return folder
    return None


def _just_begun(folder: Path, path: Path) -> bool:
    """Git makes a folder of the worktree's name (and digits, where that is taken) and locks it first."""
    return folder.name.rstrip("0123456789") == path.name.rstrip("0123456789") and {
        p.name for p in folder.iterdir()
    } <= {"locked", "gitdir"}


def clear(repository: Repository, path: Path, record: Record) -> None:
    """Take away all that is there of a worktree of ours. What its links lead to stays."""
    remove_tree(path)
    folder = of(repository, path, record)
    if folder is not None:
        remove(repository, folder)
    if record.id:
        # A kill behind the last file.
        with suppress(OSError):
            (repository.common / "worktrees" / record.id).rmdir()


def remove(repository: Repository, folder: Path) -> None:
    """Take git's folder of a worktree away; what says that it is ours goes last.

    Alone: while one is half there, `git worktree add` may fail to read it.
    """
    last = ("gitdir", MARK)
    with alone(repository.common), failing("remove git's folder of a worktree", folder):
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name not in last:
                path.unlink()
        for name in last:
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()


def remove_tree(path: Path) -> None:
    """Remove a folder with all in it, following no link; folders that may not be written are made so."""
    if path.is_symlink():
        raise GitError(
            "a link stands where a worktree of gpudebug was", file=str(path), next="remove the link"
        )
    if not path.exists():
        return
    try:
        shutil.rmtree(path)
    except PermissionError:
        with failing("remove a worktree", path):
            for place, _, _ in os.walk(path):
                os.chmod(place, 0o700)
            shutil.rmtree(path)
    except OSError as e:
        raise GitError(
            f"cannot remove a worktree: {e.strerror}", file=str(path), next="end what still writes there"
        ) from None
