"""Untracked files: which come along with a snapshot, and why the others do not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.campaigns import commit_all, git, make_repository
from tests.support.repositories import REF, stored

from gpudebug.edges import git as snapshot
from gpudebug.edges.git import untracked

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
    assert untracked.secret_named(name)
    assert untracked.secret_named(name.upper())


@pytest.mark.parametrize("name", HARMLESS.split())
def test_a_name_that_only_sounds_so(name: str) -> None:
    assert not untracked.secret_named(name)


def test_what_stays_out_is_named_with_the_reason(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "repo", {"train.py": "1\n", ".gitignore": "ignored\n"})
    (top / "ignored").write_text("x")
    (top / "large.bin").write_bytes(bytes(untracked.MAX_FILE + 1))
    (top / "just.bin").write_bytes(bytes(untracked.MAX_FILE))
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
            file.truncate(untracked.MAX_FILE - 60 + n)
    taken, left = untracked.chosen(tmp_path, reversed(names))
    assert taken == names[:50]
    assert [(each.path, each.why) for each in left] == [
        (os.fsdecode(name), "over 50 MB of untracked files in all") for name in names[50:]
    ]
    assert untracked.MAX_FILES == 10_000
    monkeypatch.setattr(untracked, "MAX_FILES", 70)
    many = [f"g{n}".encode() for n in range(untracked.MAX_FILES + 2)]
    for name in many:
        (tmp_path / os.fsdecode(name)).touch()
    taken, left = untracked.chosen(tmp_path, [*many, b"vanished"])
    assert (len(taken), len(left)) == (70, 2)
    assert left[0].why == "over 70 untracked files in all"


def test_a_long_list_is_cut_and_counted(tmp_path: Path) -> None:
    left = [snapshot.LeftOut(f"f{n}", "large") for n in range(1234)]
    shown = untracked.capped(left)
    assert (shown[:100], shown[100:]) == (tuple(left[:100]), (("…", "1,134 more paths"),))
    assert untracked.capped(left[:100]) == tuple(left[:100])
