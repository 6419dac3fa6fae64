"""The tree as the user has it, whatever state the checkout is in, and what stands in the way."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.campaigns import commit_all, git, make_repository
from tests.support.repositories import REF, change_in, lies, repository, stored, users

from gpudebug.core.errors import GitError, StoreError
from gpudebug.edges import git as snapshot
from gpudebug.edges.git import trees


def taken(top: Path, *exclude: Path) -> snapshot.Base:
    return snapshot.snapshot(top, ref=REF, label="digest", exclude=exclude)


def base_files(top: Path, base: snapshot.Base, place: Path) -> dict[str, tuple[str, str]]:
    """The files of a base, checked out by git itself."""
    git(top, "worktree", "add", "--quiet", "--detach", str(place), base.commit)
    try:
        return lies(place)
    finally:
        git(top, "worktree", "remove", "--force", str(place))


def test_everything_as_it_lies_and_nothing_of_the_users_touched(hostile: Path) -> None:
    top = repository(hostile / "repo")
    (top / "runs" / "0001").mkdir(parents=True)
    expected = {k: v for k, v in lies(top).items() if not k.startswith((".venv", "runs", "train.log"))}
    before = users(top)
    base = taken(top)
    assert users(top) == before
    assert base.left_out == ()
    assert base_files(top, base, hostile / "out") == expected
    assert users(top) == before
    assert git(top, "stash", "list").count("\n") == 1


def changes(top: Path) -> None:
    """Everything that a work tree can be other than clean, at once."""
    (top / "exec.py").chmod(0o755)
    (top / "became_link").unlink()
    (top / "became_link").symlink_to("pkg")
    (top / "link").unlink()
    (top / "link").write_text("a file now")
    (top / "became_folder").unlink()
    (top / "became_folder").mkdir()
    (top / "became_folder" / "x.py").write_text("x")
    (top / "folder" / "a.py").unlink()
    (top / "folder").rmdir()
    (top / "folder").write_text("a file now")
    git(top, "rm", "--quiet", "--cached", "removed_from_index.py")
    (top / "intended.py").write_text("i")
    git(top, "add", "--intent-to-add", "intended.py")
    (top / "staged_then_gone.py").write_text("i")
    git(top, "add", "staged_then_gone.py")
    (top / "staged_then_gone.py").unlink()
    git(top, "mv", "renamed.py", "renamed_to.py")
    for name in (b"caf\xe9.py", b"two\nlines.py", b" lead", b'quo"te', b"-x", b"new folder/:(top)"):
        path = top / os.fsdecode(name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(name)
    (top / "empty.py").touch()
    (top / "dangling").symlink_to("nowhere")


def test_any_change_comes_along(tmp_path: Path) -> None:
    names = ("exec.py", "became_link", "became_folder", "folder/a.py", "removed_from_index.py", "renamed.py")
    top = make_repository(tmp_path / "repo", {**dict.fromkeys(names, "1\n"), "pkg/a.py": "", "stay.py": "s"})
    (top / "link").symlink_to("pkg")
    commit_all(top)
    changes(top)
    before = users(top)
    base = taken(top)
    assert users(top) == before
    assert base_files(top, base, tmp_path / "out") == lies(top)
    assert snapshot.difference(top, base.commit, taken(top).commit) == b""


def split_index(top: Path) -> None:
    git(top, "update-index", "--split-index")


def untracked_cache(top: Path) -> None:
    git(top, "config", "core.untrackedCache", "true")
    git(top, "update-index", "--untracked-cache")


def no_index(top: Path) -> None:
    (top / ".git" / "index").unlink()


def index_version_4(top: Path) -> None:
    git(top, "update-index", "--index-version", "4")


def detached(top: Path) -> None:
    git(top, "checkout", "--quiet", "--detach")


def ignoring(top: Path) -> None:
    git(top, "config", "core.fileMode", "false")
    git(top, "config", "core.excludesFile", "/nowhere")
    git(top, "config", "core.autocrlf", "input")


@pytest.mark.parametrize(
    "change", [split_index, untracked_cache, no_index, index_version_4, detached, ignoring]
)
def test_any_index_and_configuration(tmp_path: Path, change: Callable[[Path], None]) -> None:
    top = make_repository(tmp_path / "repo", {"train.py": "1\n", "pkg/a.py": "2\n"})
    change(top)
    (top / "train.py").write_text("changed\n")
    (top / "new.py").write_text("new\n")
    before = users(top)
    base = taken(top)
    assert users(top) == before
    assert git(top, "show", f"{base.commit}:train.py") == "changed\n"
    assert git(top, "ls-tree", "-r", "--name-only", base.commit).split() == ["new.py", "pkg/a.py", "train.py"]


def test_a_sparse_checkout_keeps_what_is_not_there(tmp_path: Path) -> None:
    files = {f"{folder}/{name}.py": "1\n" for folder in ("in", "out", "far") for name in "ab"}
    top = make_repository(tmp_path / "repo", files)
    git(top, "sparse-checkout", "set", "in")
    assert not (top / "out").exists()
    (top / "in" / "a.py").write_text("2\n")
    (top / "out").mkdir()
    (top / "out" / "new.py").write_text("3\n")
    (top / "far").mkdir()
    (top / "far" / "a.py").write_text("4\n")
    before = users(top)
    base = taken(top)
    assert users(top) == before
    listed = git(top, "ls-tree", "-r", "--name-only", base.commit).split()
    assert listed == sorted([*files, "out/new.py"])
    assert git(top, "show", f"{base.commit}:far/a.py") == "4\n"
    expected = lies(top)
    worktree = snapshot.add_worktree(top, top / "runs" / "worktrees" / "c" / "h1", base.commit)
    assert lies(worktree.path) == expected
    (worktree.path / "out" / "new.py").write_text("5\n")
    assert change_in(worktree.path, base.commit).files == ("out/new.py",)


def test_a_shallow_clone_and_one_with_sha_256(tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "origin", {"train.py": "1\n"})
    commit_all(origin)
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{origin}", "shallow")
    git(tmp_path, "init", "--quiet", "--object-format=sha256", "sha256")
    (tmp_path / "sha256" / "train.py").write_text("1\n")
    commit_all(tmp_path / "sha256")
    for name in ("shallow", "sha256"):
        top = tmp_path / name
        clean = snapshot.identify(top).tree
        (top / "train.py").write_text("2\n")
        dirty = snapshot.identify(top).tree
        base = taken(top)
        worktree = snapshot.add_worktree(top, top / "runs" / "worktrees" / "c" / name, base.commit)
        (worktree.path / "train.py").write_text("3\n")
        change = change_in(worktree.path, base.commit)
        made = snapshot.with_patch(top, base.commit, change.patch, label="l", file="p")
        assert git(top, "show", f"{made.commit}:train.py") == "3\n"
        assert stored(top, REF) == base
        snapshot.remove_worktree(top, worktree.path)
        commit_all(top)
        assert snapshot.identify(top).tree == dirty != clean


def test_what_is_excluded_stays_out_but_for_ignore_files(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "repo", {"train.py": "1\n", "hypotheses/tracked.yaml": "t\n"})
    for name in ("gpudebug.yaml", "progress/p.md", "hypotheses/h.yaml", "hypotheses2.py", ".gitignore"):
        (top / name).parent.mkdir(exist_ok=True)
        (top / name).write_text("x\n")
    own = [top / name for name in ("gpudebug.yaml", "progress", "hypotheses", ".gitignore")]
    base = taken(top, *own, Path("/somewhere/else"))
    assert git(top, "ls-tree", "-r", "--name-only", base.commit).split() == [
        ".gitignore",
        "hypotheses/tracked.yaml",
        "hypotheses2.py",
        "train.py",
    ]
    assert base.left_out == ()


def unmerged(top: Path) -> None:
    git(top, "checkout", "--quiet", "-b", "other")
    (top / "train.py").write_text("theirs\n")
    commit_all(top)
    git(top, "checkout", "--quiet", "main")
    (top / "train.py").write_text("ours\n")
    commit_all(top)
    with pytest.raises(Exception, match="exit status 1"):
        git(top, "merge", "other")


def unborn(top: Path) -> None:
    git(top, "checkout", "--quiet", "--orphan", "fresh")


def bare(top: Path) -> None:
    git(top, "config", "core.bare", "true")
    for name in os.listdir(top / ".git"):
        (top / ".git" / name).rename(top / name)
    (top / ".git").rmdir()


def none(top: Path) -> None:
    (top / ".git").rename(top / "git")


def fifo(top: Path) -> None:
    (top / "train.py").unlink()
    os.mkfifo(top / "train.py")


def broken(top: Path) -> None:
    (top / ".git" / "index").write_text("nonsense")


def locked_ref(top: Path) -> None:
    git(top, "update-ref", f"{REF}/below", "HEAD")


IN_THE_WAY = {
    unmerged: "unresolved merge conflict",
    unborn: "no commit yet",
    bare: "bare",
    none: "not in a git repository",
    fifo: "train.py",
    broken: "index",
    locked_ref: "cannot lock ref",
}


@pytest.mark.parametrize("spoil, said", IN_THE_WAY.items(), ids=[f.__name__ for f in IN_THE_WAY])
def test_what_is_in_the_way_is_one_line(tmp_path: Path, spoil: Callable[[Path], None], said: str) -> None:
    top = make_repository(tmp_path / "repo", {"train.py": "1\n"})
    spoil(top)
    before = users(top)
    with pytest.raises(GitError, match=said) as caught:
        taken(top)
    assert caught.value.next
    assert "\n" not in str(caught.value)
    assert users(top) == before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB; skipped where the machine does not allow mounts."""
    import subprocess

    place = tmp_path / "small"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"this machine does not allow mounts: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_disk_that_fills_in_the_middle(
    small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "t"))
    (tmp_path / "t").mkdir()
    top = make_repository(small_disk / "repo", {"train.py": "1\n", ".gitignore": "filler\n"})
    for n in range(3):
        (top / f"module{n}.py").write_bytes(os.urandom(200_000))
    with open(top / "filler", "wb") as filler, pytest.raises(OSError, match="No space"):
        filler.write(bytes(4 * 2**20))
    os.truncate(top / "filler", (top / "filler").stat().st_size - 300_000)
    before = users(top)
    with pytest.raises(GitError, match="no space left") as caught:
        taken(top)
    assert caught.value.next
    assert users(top) == before
    assert stored(top, REF) is None
    assert git(top, "for-each-ref", "refs/gpudebug") == ""
    assert os.listdir(tmp_path / "t") == []
    assert list((top / ".git").rglob("*.lock")) == []
    (top / "filler").unlink()
    assert taken(top).left_out == ()


def test_no_room_for_the_temporary_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = make_repository(tmp_path / "repo", {"train.py": "1\n"})
    (top / ".git" / "gpudebug").touch()
    with pytest.raises(StoreError, match="is a link or a file"):
        taken(top)


SECRET = """
    .env .env.local prod.env .envrc server.pem a/b/tls.key id_rsa id_rsa.pub id_ed25519 credentials
    credentials.json aws_credentials .git-credentials .netrc .npmrc .pypirc keys.p12 cert.pfx store.jks
    client_secret.json secrets.yaml my-secret.txt hf_token wandb-token.txt token.json api_token tokens
    .ssh/config .aws/config deploy/secrets/x.txt passwords.txt API_KEY.txt Private_Key.asc
    service_account.json .kube/config vpn.ovpn secrets/x.py
"""
HARMLESS = """
    train.py .env.example tokenizer.json tokenizer_config.json tokens.py token_dropping.yaml max_tokens.yaml
    environment.yml keyboard.py monkey.txt secrets.py test_password.py keys.json docs/credentials.md
    special_tokens_map.json keypoints.csv
"""


@pytest.mark.parametrize("name", SECRET.split())
def test_a_name_that_says_secret(name: str) -> None:
    assert trees.secret_named(name)
    assert trees.secret_named(name.upper())


@pytest.mark.parametrize("name", HARMLESS.split())
def test_a_name_that_only_sounds_so(name: str) -> None:
    assert not trees.secret_named(name)


def test_what_stays_out_is_named_with_the_reason(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "repo", {"train.py": "1\n", ".gitignore": "ignored\n"})
    (top / "ignored").write_text("x")
    (top / "large.bin").write_bytes(bytes(trees.MAX_FILE + 1))
    (top / "just.bin").write_bytes(bytes(trees.MAX_FILE))
    (top / ".env").write_text("KEY=1")
    (top / "out").symlink_to("../elsewhere")
    (top / "in").symlink_to("./pkg/../train.py")
    (top / "abroad").symlink_to("/usr")
    os.mkfifo(top / "fifo")
    for name in ("nested", "pkg/unborn"):
        (top / name).mkdir(parents=True)
        git(top / name, "init", "--quiet")
        (top / name / "x.py").write_text("x")
    commit_all(top / "nested")
    base = snapshot.snapshot(top, ref=REF, label="l")
    assert base.left_out == (
        (".env", "by its name it holds a secret"),
        ("large.bin", "larger than 1 MB (1.0 MB)"),
        ("nested/", "a git repository of its own"),
        ("out", "a link out of the repository"),
        ("pkg/unborn/", "a git repository of its own"),
    )
    listed = git(top, "ls-tree", "-r", "--name-only", base.commit).split()
    assert listed == [".gitignore", "abroad", "in", "just.bin", "train.py"]
    assert stored(top, REF) == base


def test_the_smallest_come_along_up_to_50_mb_and_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"f{n:02}".encode() for n in range(60)]
    for n, name in enumerate(names):
        with open(tmp_path / os.fsdecode(name), "wb") as file:
            file.truncate(trees.MAX_FILE - 60 + n)
    taken, left = trees.chosen(tmp_path, reversed(names))
    assert taken == names[:50]
    assert [(each.path, each.why) for each in left] == [
        (os.fsdecode(name), "over 50 MB of untracked files in all") for name in names[50:]
    ]
    assert trees.MAX_FILES == 10_000
    monkeypatch.setattr(trees, "MAX_FILES", 70)
    many = [f"g{n}".encode() for n in range(trees.MAX_FILES + 2)]
    for name in many:
        (tmp_path / os.fsdecode(name)).touch()
    taken, left = trees.chosen(tmp_path, [*many, b"vanished"])
    assert (len(taken), len(left)) == (70, 2)
    assert left[0].why == "over 70 untracked files in all"


def test_a_long_list_is_cut_and_counted(tmp_path: Path) -> None:
    left = [snapshot.LeftOut(f"f{n}", "large") for n in range(1234)]
    shown = trees.capped(left)
    assert (shown[:100], shown[100:]) == (tuple(left[:100]), (("…", "1,134 more paths"),))
    assert trees.capped(left[:100]) == tuple(left[:100])
