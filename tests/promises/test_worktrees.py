"""Only what gpudebug made is removed, reset or run, whatever a clone, an agent or a training puts there."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.campaigns import (
    Campaign,
    commit_all,
    copied,
    environment,
    git,
    gpudebug,
    make_campaign,
    make_replay_campaign,
    record,
)
from tests.support.patches import write_patch
from tests.support.repositories import users

from gpudebug.edges import removal

OLD = {"state": "making", "token": "", "commit": ""}
PATCH = "hypotheses/patches/one.patch"


@pytest.fixture(scope="module")
def recorded_once(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    folder = tmp_path_factory.mktemp("worktrees")
    recordings = folder / "recordings"
    record(recordings, "0001-baseline-workload", util=20, rate=10)
    record(recordings, "0002-h1", util=60, rate=30)
    made = make_replay_campaign(
        folder / "repo", recordings, files={"helper.py": "y = 1\n", "sub/deep.py": "z = 1\n"}
    )
    made.json("next")
    return made


@pytest.fixture
def campaign(recorded_once: Campaign, tmp_path: Path) -> Campaign:
    """A campaign with its baseline and a hypothesis whose change has yet to be written."""
    return copied(recorded_once, tmp_path / "repo")


def digest(folder: Path, *without: str) -> str:
    """All bytes and links in a folder, but for what lies below `without`."""
    found = hashlib.sha256()
    for place, folders, names in os.walk(folder):
        here = os.path.relpath(place, folder)
        folders[:] = sorted(f for f in folders if os.path.normpath(os.path.join(here, f)) not in without)
        links = [f for f in folders if os.path.islink(os.path.join(place, f))]
        for name in sorted([*names, *links]):
            path = os.path.join(place, name)
            text = os.readlink(path).encode() if os.path.islink(path) else Path(path).read_bytes()
            found.update(os.path.join(here, name).encode() + b"\0" + text + b"\0")
    return found.hexdigest()


def write_by_code(campaign: Campaign) -> Path:
    """Hypothesis 1 asks for code; the worktree that `next` hands out."""
    campaign.add("### Hypothesis 1: By code\n- **Intervention**: --code\n- **Status**: UNTESTED\n\n")
    return Path(campaign.json("next", status=5)["worktree"])


class TestAClone:
    def clone(self, campaign: Campaign, tmp_path: Path) -> Path:
        """What anybody can publish: links and records of worktrees as version 0.1.0 kept them."""
        origin = campaign.folder
        place = origin / "runs" / "worktrees"
        (place / ".test").mkdir(parents=True)
        (place / "test").symlink_to("../../data")
        (origin / ".data").mkdir()
        for name in ("imagenet", "..", "!00000", "notes"):
            (place / ".test" / f"{name}.json").write_text(json.dumps(OLD))
            (origin / ".data" / f"{name}.json").write_text(json.dumps(OLD))
        (place / ".test" / "other.json").write_text('{"hello": 1}')
        git(origin, "add", "--force", "--all")
        git(origin, "commit", "--quiet", "--message", "Publish")
        git(tmp_path, "clone", "--quiet", str(origin), "clone")
        clone = tmp_path / "clone"
        for name in ("imagenet", "notes", "other"):
            (clone / "data" / name).mkdir(parents=True)
            (clone / "data" / name / "1.jpg").write_text("mine")
        return clone

    def test_the_users_data_in_it_stays(self, campaign: Campaign, tmp_path: Path) -> None:
        clone = Campaign(self.clone(campaign, tmp_path))
        ours = (".git", "runs", "progress")
        before = digest(clone.folder, *ours), digest(clone.folder / "runs" / "worktrees")
        for words in (["status"], ["next"], ["status"], ["verify"], ["next"]):
            assert clone.run(*words).status != 3, words
        assert (digest(clone.folder, *ours), digest(clone.folder / "runs" / "worktrees")) == before

    def test_no_worktree_is_made_through_its_links(self, campaign: Campaign, tmp_path: Path) -> None:
        clone = Campaign(self.clone(campaign, tmp_path))
        before = digest(clone.folder / "data")
        clone.run("next")
        clone.add("### Hypothesis 1: By code\n- **Intervention**: --code\n- **Status**: UNTESTED\n\n")
        error = clone.json("next", status=1)["error"]
        assert (error["file"], error["message"]) == (
            str(clone.folder / "runs" / "worktrees" / "test"),
            "is a link or a file where a folder of gpudebug's was",
        )
        assert "move it away" in error["next"]
        assert digest(clone.folder / "data") == before

    def test_a_bare_repository_in_a_folder_of_it_runs_nothing(
        self, campaign: Campaign, tmp_path: Path
    ) -> None:
        inner, ran = campaign.folder / "examples", tmp_path / "ran"
        git(campaign.folder, "init", "--quiet", "--bare", "examples")
        (inner / "gpudebug.yaml").write_bytes(campaign.config.read_bytes())
        (inner / "train.py").write_text("1\n")
        git(inner, "config", "core.bare", "false")
        git(inner, "config", "core.worktree", str(inner))
        git(inner, "config", "filter.evil.clean", f"touch {ran}; cat")
        (inner / "info" / "attributes").write_text("* filter=evil\n")
        git(inner, f"--git-dir={inner}", "add", "train.py", "gpudebug.yaml")
        git(inner, f"--git-dir={inner}", "commit", "--quiet", "--message", "x")
        (inner / "train.py").write_text("2\n")
        ran.unlink(missing_ok=True)
        for words in (["status"], ["doctor"], ["next"], ["verify"]):
            done = gpudebug(inner, *words)
            assert done.status in (0, 1, 2), done
            assert not ran.exists(), words
        assert "bare" in gpudebug(inner, "status").err


class TestAWorktreesOwnRepository:
    @pytest.mark.parametrize("where", ["in it", "elsewhere"])
    def test_it_is_neither_run_nor_believed(self, campaign: Campaign, tmp_path: Path, where: str) -> None:
        worktree, ran = write_by_code(campaign), tmp_path / "ran"
        fake = worktree / ".git"
        if where == "elsewhere":
            fake = fake.rename(worktree.parent / "fake")
            shutil.copytree(campaign.folder / ".git" / "objects", fake / "objects", dirs_exist_ok=True)
            (worktree / ".git").write_text(f"gitdir: {fake}\n")
        with (fake / "config").open("a") as config:
            config.write(f'[filter "evil"]\n\tclean = "touch {ran}; cat"\n')
        (fake / "info" / "attributes").write_text("* filter=evil\n")
        (worktree / "helper.py").write_text("y = 2\n")
        git(campaign.folder, "-C", str(worktree), "status")
        assert ran.exists()
        ran.unlink()
        for words in (["status"], ["show", "1"], ["doctor"], ["next"], ["status"]):
            campaign.run(*words)
            assert not ran.exists(), words
        assert campaign.json("show", "1")["status"] == "VALIDATED"
        assert fake.exists() is (where == "elsewhere")

    def test_submodules_that_are_not_checked_out_run_nothing(
        self, campaign: Campaign, tmp_path: Path
    ) -> None:
        lib, ran = tmp_path / "lib", tmp_path / "ran"
        git(tmp_path, "init", "--quiet", "lib")
        (lib / "x.py").write_text("1\n")
        commit_all(lib)
        git(
            campaign.folder,
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "--quiet",
            "add",
            str(lib),
            "lib",
        )
        commit_all(campaign.folder)
        git(campaign.folder, "submodule", "--quiet", "deinit", "--force", "lib")
        campaign.json("next")
        worktree = write_by_code(campaign)
        hostile = worktree / "lib"
        git(tmp_path, "clone", "--quiet", str(lib), str(hostile))
        git(hostile, "config", "filter.evil.clean", f"touch {ran}; cat")
        git(hostile, "config", "core.fsmonitor", f"touch {ran}; false")
        (hostile / ".git" / "info" / "attributes").write_text("* filter=evil\n")
        (hostile / "x.py").write_text("22\n")
        (worktree / "helper.py").write_text("y = 2\n")
        for words in (["status"], ["next"], ["status"]):
            campaign.run(*words)
            assert not ran.exists(), words

    @pytest.mark.parametrize("moment", ["read-tree", "update-ref"])
    def test_one_that_vanishes_never_leads_git_to_the_checkout(
        self, campaign: Campaign, tmp_path: Path, moment: str
    ) -> None:
        """A git that takes the .git folder of every worktree away before it works."""
        (campaign.folder / "helper.py").write_text("y = 1  # three days of work\n")
        (campaign.folder / "staged.py").write_text("new\n")
        git(campaign.folder, "add", "staged.py")
        campaign.json("next")
        program = tmp_path / "bin" / "git"
        program.parent.mkdir()
        program.write_text(
            "#!/bin/sh\n"
            f'case " $* " in *" {moment} "*) rm -rf {campaign.folder}/runs/worktrees/test/*/.git;; esac\n'
            f'exec {shutil.which("git")} "$@"\n'
        )
        program.chmod(0o755)
        before = (
            digest(campaign.folder, ".git", "runs", "progress"),
            git(campaign.folder, "status", "--short"),
        )
        campaign.add("### Hypothesis 1: By code\n- **Intervention**: --code\n- **Status**: UNTESTED\n\n")
        env = {"PATH": f"{program.parent}:{os.environ['PATH']}"}
        for words in (["next"], ["next"], ["status"], ["release", "1"]):
            assert campaign.run(*words, env=env).status != 3, words
        after = digest(campaign.folder, ".git", "runs", "progress"), git(campaign.folder, "status", "--short")
        assert after == before

    def test_one_that_an_other_process_takes_away_all_the_time(self, campaign: Campaign) -> None:
        (campaign.folder / "helper.py").write_text("y = 1  # three days of work\n")
        campaign.json("next")
        write_patch(campaign, PATCH, {"sub/deep.py": "z = 2\n"})
        campaign.add(f"### Hypothesis 1: It\n- **Intervention**: --patch {PATCH}\n- **Status**: UNTESTED\n\n")
        before = digest(campaign.folder, ".git", "runs", "progress")
        done = threading.Event()

        def take_away() -> None:
            while not done.is_set():
                for found in (campaign.folder / "runs" / "worktrees").glob("*/*/.git"):
                    shutil.rmtree(found, ignore_errors=True)
                time.sleep(0.001)

        thief = threading.Thread(target=take_away)
        thief.start()
        try:
            campaign.run("next")
        finally:
            done.set()
            thief.join()
        assert digest(campaign.folder, ".git", "runs", "progress") == before


class TestARemoval:
    def test_a_folder_that_was_put_in_a_worktrees_place_stays(self, campaign: Campaign) -> None:
        worktree = write_by_code(campaign)
        (worktree / "helper.py").write_text("y = 2\n")
        worktree.rename(worktree.with_name("aside"))
        worktree.mkdir()
        (worktree / "thesis").write_text("mine")
        campaign.run("next")
        campaign.run("release", "1")
        campaign.run("next")
        assert (worktree / "thesis").read_text() == "mine"

    def test_a_worktree_that_was_restored_keeps_what_was_written(self, campaign: Campaign) -> None:
        """Another inode: the change becomes a patch, the folder stays, the next worktree has another name."""
        worktree = write_by_code(campaign)
        (worktree / "helper.py").write_text("y = 2\n")
        worktree.rename(worktree.with_name("aside"))
        shutil.copytree(worktree.with_name("aside"), worktree, symlinks=True)
        answer = campaign.json("next", status=5)
        assert answer["worktree"] == f"{worktree}-2"
        assert f"{worktree} is not the folder that gpudebug made" in " ".join(answer["notes"])
        assert (worktree / "helper.py").read_text() == "y = 2\n"
        assert "+y = 2" in (campaign.folder / "hypotheses/patches/h1-by-code.patch").read_text()
        again = campaign.json("next", status=5)
        assert again["worktree"] == answer["worktree"]
        assert "is not the folder" not in " ".join(again.get("notes", []))

    def test_a_folder_with_the_inode_of_a_removed_one_stays(self, campaign: Campaign) -> None:
        """A file system hands out a freed inode at once: the time of birth tells the two apart."""
        worktree = write_by_code(campaign)
        made = worktree.stat()
        for _ in range(50):
            shutil.rmtree(worktree)
            worktree.mkdir()
            if worktree.stat().st_ino == made.st_ino:
                break
        else:
            pytest.skip("this file system hands out other inodes")
        with removal.folder(worktree) as inside:
            if removal.born(inside) is None:
                pytest.skip("this file system does not tell when a folder was made")
        (worktree / "thesis").write_text("mine")
        campaign.run("next")
        campaign.run("release", "1")
        campaign.run("clean", "--worktrees", "--yes")
        assert (worktree / "thesis").read_text() == "mine"

    def test_a_worktree_of_another_name_keeps_what_was_written(self, campaign: Campaign) -> None:
        """Its name was taken, so that it is `h1-2`: it is the hypothesis's all the same."""
        taken = campaign.folder / "runs/worktrees/test/h1"
        taken.mkdir(parents=True)
        (taken / "x").write_text("mine")
        worktree = write_by_code(campaign)
        assert worktree.name == "h1-2"
        (worktree / "helper.py").write_text("y = 2\n")
        assert campaign.json("next")["action"] == "tested"
        (patch,) = campaign.folder.glob("hypotheses/patches/h1-*")
        assert "+y = 2" in patch.read_text()
        assert (taken / "x").read_text() == "mine"

    def test_a_copied_repository_keeps_what_was_written_in_it(
        self, campaign: Campaign, tmp_path: Path
    ) -> None:
        worktree = write_by_code(campaign)
        (worktree / "helper.py").write_text("y = 2\n")
        copy = Campaign(Path(shutil.copytree(campaign.folder, tmp_path / "copy", symlinks=True)))
        answer = copy.json("next", status=5)
        notes = " ".join(answer["notes"])
        assert "h1: what was written in it is kept in hypotheses/patches/h1-by-code.patch" in notes
        written = Path(answer["worktree"])
        assert written.name == "h1-2"
        (written / "sub/deep.py").write_text("z = 3\n")
        assert copy.json("next")["action"] == "tested"
        assert any("+z = 3" in p.read_text() for p in copy.folder.glob("hypotheses/patches/*"))

    @pytest.mark.parametrize("lost", ["moved", "git's folder", "index"])
    @pytest.mark.parametrize("command", [["clean", "--worktrees", "--yes"], ["next"]], ids=["clean", "next"])
    def test_what_git_cannot_tell_of_is_not_taken_for_unchanged(
        self, campaign: Campaign, tmp_path: Path, lost: str, command: list[str]
    ) -> None:
        worktree = write_by_code(campaign)
        (worktree / "helper.py").write_text("y = 'three hours'\n")
        if command == ["next"]:
            campaign.progress.write_text(campaign.text.replace("TESTING", "REJECTED"))
        if lost == "moved":
            campaign = Campaign(campaign.folder.rename(tmp_path / "moved"))
        elif lost == "index":
            (index,) = campaign.folder.glob(".git/gpudebug/worktrees/*/h1.index")
            index.write_bytes(b"junk")
        else:
            shutil.rmtree(worktree / ".git")
        campaign.run(*command)
        kept = [
            *campaign.folder.glob("hypotheses/patches/*"),
            *campaign.folder.glob("runs/worktrees/test/*/*"),
        ]
        assert any("three hours" in p.read_text() for p in kept if p.is_file())

    @pytest.mark.parametrize("lost", [False, True])
    def test_its_commit_is_kept_while_it_is_written_in(self, campaign: Campaign, lost: bool) -> None:
        worktree = write_by_code(campaign)
        (worktree / "helper.py").write_text("y = 2\n")
        (campaign.folder / "sub/deep.py").write_text("z = 7\n")
        commit_all(campaign.folder)
        campaign.json("baseline")
        if lost:
            (kept,) = git(
                campaign.folder, "for-each-ref", "--format=%(refname)", "refs/gpudebug/*/h1"
            ).split()
            git(campaign.folder, "update-ref", "-d", kept)
        git(campaign.folder, "reflog", "expire", "--expire=now", "--all")
        git(campaign.folder, "gc", "--quiet", "--prune=now")
        if not lost:
            assert campaign.json("next")["action"] == "tested"
            return
        answer = campaign.json("next", status=5)
        assert "git has lost the commit" in " ".join(answer["notes"])
        assert (worktree / "helper.py").read_text() == "y = 2\n"
        assert Path(answer["worktree"]).name == "h1-2"

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
    def test_another_user_takes_nothing_of_the_owners(self, campaign: Campaign, tmp_path: Path) -> None:
        scratch = tmp_path / "scratch"
        (scratch / "alice" / "Documents").mkdir(parents=True)
        (scratch / "alice" / "Documents" / "x").write_text("mine")
        (scratch / "alice").chmod(0o700)
        scratch.chmod(0o1777)
        for folder in (tmp_path, *tmp_path.parents[:-2]):
            folder.chmod(folder.stat().st_mode | 0o001)
        place = campaign.folder / "runs" / "worktrees"
        place.mkdir(parents=True)
        (place / "test").symlink_to(scratch / "alice")
        text = json.dumps(OLD)
        script = f"mkdir {scratch}/.alice && echo '{text}' > {scratch}/.alice/Documents.json"
        subprocess.run(
            ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", script], check=True
        )
        campaign.run("next")
        assert (scratch / "alice" / "Documents" / "x").read_text() == "mine"


class TestTheBase:
    def forged(self, campaign: Campaign, ref: str = "checkout") -> str:
        """Another commit with the same message in the place of the campaign's base."""
        names = git(campaign.folder, "for-each-ref", "--format=%(refname)", "refs/gpudebug").split()
        name = next(n for n in names if n.endswith(f"/{ref}"))
        index = {"GIT_INDEX_FILE": str(campaign.folder / ".git" / "forged")}
        blob = subprocess.run(
            ["git", "hash-object", "-w", "--stdin"],
            cwd=campaign.folder,
            input=b"y = 'another'\n",
            capture_output=True,
            check=True,
            env=environment(),
        ).stdout.decode()
        for words in (
            ["read-tree", name],
            ["update-index", "--cacheinfo", f"100644,{blob.strip()},helper.py"],
        ):
            subprocess.run(["git", *words], cwd=campaign.folder, check=True, env={**environment(), **index})
        tree = subprocess.run(
            ["git", "write-tree"],
            cwd=campaign.folder,
            check=True,
            capture_output=True,
            env={**environment(), **index},
        ).stdout.decode()
        message = git(campaign.folder, "log", "-1", "--format=%B", name)
        made = git(campaign.folder, "commit-tree", "-p", "HEAD", "-m", message, tree.strip()).strip()
        git(campaign.folder, "update-ref", name, made)
        return name

    def test_another_commit_in_its_place_is_an_error_that_a_person_puts_right(
        self, campaign: Campaign
    ) -> None:
        name = self.forged(campaign)
        write_patch(campaign, PATCH, {"sub/deep.py": "z = 2\n"})
        campaign.add(f"### Hypothesis 1: It\n- **Intervention**: --patch {PATCH}\n- **Status**: UNTESTED\n\n")
        for env in ({}, {"GPUDEBUG_SESSION": "a"}):
            error = campaign.json("next", status=1, env=env)["error"]
            assert name in error["message"]
            assert "gpudebug baseline" in error["next"]
        campaign.json("baseline")
        assert campaign.json("next")["action"] == "tested"
        assert "another" not in git(campaign.folder, "show", f"{name}:helper.py")

    def test_one_that_a_power_failure_emptied_is_written_again(self, campaign: Campaign) -> None:
        write_patch(campaign, PATCH, {"sub/deep.py": "z = 2\n"})
        (name,) = git(campaign.folder, "for-each-ref", "--format=%(refname)", "refs/gpudebug").split()
        campaign.folder.joinpath(".git", name).write_bytes(b"")
        campaign.add(f"### Hypothesis 1: It\n- **Intervention**: --patch {PATCH}\n- **Status**: UNTESTED\n\n")
        assert campaign.json("next")["action"] == "tested"

    def test_its_record_gone_too_it_is_made_of_the_checkout(self, campaign: Campaign) -> None:
        name = self.forged(campaign)
        shutil.rmtree(campaign.folder / ".git" / "gpudebug")
        write_patch(campaign, PATCH, {"sub/deep.py": "z = 2\n"})
        campaign.add(f"### Hypothesis 1: It\n- **Intervention**: --patch {PATCH}\n- **Status**: UNTESTED\n\n")
        campaign.json("next")
        assert "another" not in git(campaign.folder, "show", f"{name}:helper.py")

    def test_what_git_would_show_in_its_place_does_not_count(self, campaign: Campaign) -> None:
        names = git(campaign.folder, "for-each-ref", "--format=%(refname)", "refs/gpudebug").split()
        name = next(n for n in names if n.endswith("/checkout"))
        genuine = git(campaign.folder, "rev-parse", name).strip()
        self.forged(campaign)
        forged = git(campaign.folder, "rev-parse", name).strip()
        git(campaign.folder, "update-ref", name, genuine)
        git(campaign.folder, "replace", genuine, forged)
        worktree = write_by_code(campaign)
        assert (worktree / "helper.py").read_text() == "y = 1\n"

    def test_untracked_files_and_filters_are_no_reason(self, campaign: Campaign) -> None:
        """What the digest of the checkout does not count, or counts otherwise, is in the commit too."""
        folder = campaign.folder
        write_patch(campaign, PATCH, {"sub/deep.py": "z = 2\n"})
        (folder / "notes.txt").write_text("untracked, not counted\n")
        (folder / "tools").mkdir()
        (folder / "tools" / "run.py").write_text("untracked, in a folder of its own\n")
        (folder / "beside.py").write_text("untracked, counted\n")
        (folder / ".gitattributes").write_text("*.py filter=upper\n")
        git(folder, "config", "filter.upper.clean", "tr y Y")
        git(folder, "config", "filter.upper.smudge", "tr Y y")
        (folder / "helper.py").write_text("y = 3\n")
        campaign.json("next")
        (folder / "helper.py").write_text("y = 4\n")
        campaign.add(f"### Hypothesis 1: It\n- **Intervention**: --patch {PATCH}\n- **Status**: UNTESTED\n\n")
        assert campaign.json("next", env={"GPUDEBUG_SESSION": "a"})["action"] == "tested"

    def test_a_person_puts_it_right_where_a_patch_is_accepted(self, campaign: Campaign) -> None:
        write_patch(campaign, PATCH, {"sub/deep.py": "z = 2\n"})
        campaign.add(f"### Hypothesis 1: It\n- **Intervention**: --patch {PATCH}\n- **Status**: UNTESTED\n\n")
        assert campaign.json("next")["verdict"] == "VALIDATED"
        campaign.json("accept", "1")
        (name,) = git(
            campaign.folder, "for-each-ref", "--format=%(refname)", "refs/gpudebug/*/checkout"
        ).split()
        git(campaign.folder, "update-ref", name, "HEAD")
        assert campaign.json("baseline")["action"] == "recorded_baseline"


def shallow(origin: Path, place: Path) -> None:
    git(origin, "clone", "--quiet", "--depth=1", f"file://{origin}", str(place))


def partial(origin: Path, place: Path) -> None:
    git(origin, "config", "uploadpack.allowFilter", "true")
    git(origin, "clone", "--quiet", "--filter=blob:none", f"file://{origin}", str(place))


def sparse(origin: Path, place: Path) -> None:
    git(origin, "clone", "--quiet", str(origin), str(place))
    git(place, "sparse-checkout", "set", "--cone", "--sparse-index", "sub")


def sha256(origin: Path, place: Path) -> None:
    git(origin.parent, "init", "--quiet", "--object-format=sha256", str(place))
    copy_files(origin, place)


def reftable(origin: Path, place: Path) -> None:
    made = subprocess.run(["git", "init", "--quiet", "--ref-format=reftable", str(place)], check=False)
    if made.returncode:
        pytest.skip("this git has no reftable")
    copy_files(origin, place)


def borrowing(origin: Path, place: Path) -> None:
    git(origin, "clone", "--quiet", "--shared", str(origin), str(place))


def with_submodule(origin: Path, place: Path) -> None:
    git(origin, "clone", "--quiet", str(origin), str(place))
    git(place, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(origin), "lib")
    commit_all(place)


def a_submodule(origin: Path, place: Path) -> None:
    outer = place.parent / "outer"
    git(origin, "clone", "--quiet", str(origin), str(outer))
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(origin), "lib")
    place.symlink_to(outer / "lib")


def copy_files(origin: Path, place: Path) -> None:
    for name in git(origin, "ls-files").split():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(origin / name, place / name)
    commit_all(place)


KINDS = (shallow, partial, sparse, sha256, reftable, borrowing, with_submodule, a_submodule)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=[kind.__name__ for kind in KINDS])
def test_any_repository_from_proposal_to_export(
    recorded_once: Campaign, tmp_path: Path, kind: Callable[[Path, Path], None]
) -> None:
    kind(recorded_once.folder, tmp_path / "repo")
    campaign = Campaign((tmp_path / "repo").resolve())
    campaign.pin()
    campaign.json("next")
    campaign.propose("--code", "By code")
    worktree = Path(campaign.json("next", status=5)["worktree"])
    (worktree / "sub/deep.py").write_text("z = 2\n")
    before = users(campaign.folder)
    assert git(worktree, "log", "--format=%s", "-1") == "gpudebug: the tree as it lies\n"
    # Git refuses a link in the place of a submodule.
    if kind is not with_submodule:
        assert git(worktree, "status", "--porcelain") == " M sub/deep.py\n"
        commit_all(worktree, "Mine")
    assert campaign.json("next")["verdict"] == "VALIDATED"
    after = users(campaign.folder)
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"progress/test.md", "hypotheses/patches/h1-by-code.patch"}
    campaign.json("accept", "1")
    campaign.json("export", "-o", "out")
    (patch,) = (campaign.folder / "out").glob("0001-*.patch")
    git(campaign.folder, "apply", "--check", str(patch))
    assert "+z = 2" in patch.read_text()


def test_worktrees_lie_on_the_disk_that_runs_leads_to(campaign: Campaign, tmp_path: Path) -> None:
    (campaign.folder / "runs").rename(tmp_path / "disk")
    (campaign.folder / "runs").symlink_to(tmp_path / "disk")
    with (campaign.folder / ".git/info/exclude").open("a") as exclude:
        exclude.write("/runs\n")
    worktree = write_by_code(campaign)
    (worktree / "helper.py").write_text("y = 2\n")
    assert (tmp_path / "disk/worktrees/test/h1/helper.py").is_file()
    assert campaign.json("next")["verdict"] == "VALIDATED"
    assert [*(tmp_path / "disk/worktrees/test").iterdir()] == []
    assert campaign.json("verify")["ok"] is True


def test_linked_worktrees_of_git_measure_their_own_code(campaign: Campaign, tmp_path: Path) -> None:
    git(campaign.folder, "worktree", "add", "--quiet", "-b", "other", str(tmp_path / "other"))
    other = Campaign(tmp_path / "other")
    (other.folder / "helper.py").write_text("y = 77\n")
    commit_all(other.folder)
    other.pin()
    before = git(campaign.folder, "for-each-ref", "refs/gpudebug")
    other.json("baseline")
    assert before in git(campaign.folder, "for-each-ref", "refs/gpudebug")
    assert campaign.json("status", env={"GPUDEBUG_SESSION": "a"})["next"]["action"] == "propose"
    assert other.json("status", env={"GPUDEBUG_SESSION": "a"})["next"]["action"] == "propose"


def test_a_campaign_whose_git_is_gone_is_not_taken_up_by_the_repository_around_it(
    campaign: Campaign, tmp_path: Path
) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "other.py").write_text("")
    (tmp_path / ".gitignore").write_text("/recordings\n")
    shutil.rmtree(campaign.folder / ".git")
    commit_all(tmp_path)
    refused = campaign.run("next").expect(1).err
    assert f"another repository than {tmp_path}" in refused
    assert not (tmp_path / ".git/gpudebug/campaigns").exists()
    campaign.run("settings", "--accept").expect(0)
    campaign.run("next").expect(0)


LEAVES = {
    "a link": "os.rename(top, top + '-2'); os.symlink(os.sep, top)",
    "a file": "os.rename(top, top + '-2'); open(top, 'w').close()",
    "nothing": "os.rename(top, top + '-2')",
    "its code, changed": "open(top + '/train.py', 'a').write('# more\\n')",
}
TRAINING = """\
import os, time
top, change = os.getcwd(), 0
for step in range(150):
    print(f"step:{step} loss:{1 / (step + 1)}", flush=True)
    time.sleep(0.02)
if change == 1:
    os.chdir(os.sep)
    LEAVE
"""


@pytest.mark.parametrize(
    "leaves",
    [
        "a link",
        "its code, changed",
        *(pytest.param(n, marks=pytest.mark.heavy) for n in ("a file", "nothing")),
    ],
)
def test_what_a_training_leaves_in_place_of_its_worktree_costs_its_own_hypothesis(
    tmp_path: Path, leaves: str
) -> None:
    program = TRAINING.replace("LEAVE", LEAVES[leaves])
    campaign = make_campaign(tmp_path / "repo", files={"train.py": program}, max_runs=2)
    campaign.json("next")
    for number in (1, 2):
        name = f"hypotheses/patches/{number}.patch"
        write_patch(campaign, name, {"train.py": program.replace("getcwd(), 0", f"getcwd(), {number}")})
        campaign.propose(f"--patch {name}")
    first = campaign.json("next")
    assert (first["hypothesis"], first["verdict"]) == (1, "INVALID")
    why = (
        "changed the code that it ran" if "code" in leaves else "left something else in place of its worktree"
    )
    assert first["why"].startswith(f"the training {why}")
    second = campaign.json("next")
    assert second["hypothesis"] == 2
    assert why not in second["why"]
    verified = campaign.json("verify")
    assert verified["problems"] == []
