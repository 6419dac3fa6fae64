"""What gpudebug writes: never over, into or in place of what is somebody else's, and whole after a kill."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
from pathlib import Path

import pytest
from tests.support.campaigns import (
    Campaign,
    commit_all,
    contents,
    copied,
    git,
    gpudebug,
    make_replay_campaign,
    make_repository,
    record,
)
from tests.support.processes import fork

from gpudebug.core.errors import BusyError, StoreError
from gpudebug.edges import store
from gpudebug.edges.store import hostlocks
from gpudebug.engine.campaign.files import find, progress_path, read_config, read_progress

NOBODY = 65534


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    folder = tmp_path_factory.mktemp("original")
    record(folder / "recordings", "0001-baseline-workload", util=20, rate=10)
    record(folder / "recordings", "0002-h1", util=60, rate=30)
    made = make_replay_campaign(folder / "repo", folder / "recordings")
    made.json("next")
    made.propose("--set --lr=0.2")
    made.json("next")
    return made


@pytest.fixture
def campaign(original: Campaign, tmp_path: Path) -> Campaign:
    return copied(original, tmp_path / "repo")


def refused(campaign: Campaign, *words: str, says: str) -> None:
    done = campaign.run(*words).expect(1)
    (line,) = done.err.splitlines()
    assert says in line and "; next: " in line


def of_git(folder: Path) -> dict[str, tuple[int, str]]:
    return {path: what for path, what in contents(folder).items() if path.startswith(".git/")}


# Links that lead elsewhere


def test_runs_that_a_clone_makes_a_link_are_not_followed(campaign: Campaign, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    (elsewhere / "notes").write_text("mine")
    shutil.rmtree(campaign.folder / "runs")
    (campaign.folder / "runs").symlink_to(elsewhere)
    git(campaign.folder, "add", "--force", "runs")
    for words in (["next"], ["status"], ["sample", "--device=cpu:1", "--", "true"]):
        done = campaign.run(*words)
        assert done.status in (1, 125) and "that git does not ignore" in done.err
    assert (elsewhere / "notes").read_text() == "mine"
    assert os.listdir(elsewhere) == ["notes"]


def test_runs_that_a_person_keeps_on_another_disk_are_followed(campaign: Campaign, tmp_path: Path) -> None:
    shutil.move(campaign.folder / "runs", tmp_path / "disk")
    (campaign.folder / "runs").symlink_to(tmp_path / "disk")
    exclude = campaign.folder / ".git" / "info" / "exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_text("/runs\n")
    assert campaign.json("status")["campaign"] == "test"


@pytest.mark.parametrize("name", [".array", ".leases", "sessions", "worktrees"])
def test_a_folder_of_gpudebugs_that_is_a_link_is_refused(
    campaign: Campaign, tmp_path: Path, name: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    shutil.rmtree(campaign.folder / "runs" / name, ignore_errors=True)
    (campaign.folder / "runs" / name).symlink_to(elsewhere)
    with pytest.raises(StoreError, match="is a link"):
        find(campaign.folder)
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o755 and os.listdir(elsewhere) == []


def test_runs_that_lead_into_gits_folder_are_not_followed(campaign: Campaign) -> None:
    shutil.move(campaign.folder / "runs", campaign.folder / ".git" / "runs")
    (campaign.folder / ".gitignore").write_text("/runs\n")
    (campaign.folder / "runs").symlink_to(".git/runs")
    refused(campaign, "next", says="leads into git's folder")


IN_GIT = {
    "gpudebug.yaml": "refs/heads/x",
    ".gitignore": "config",
    "AGENTS.md": "config",
    "CLAUDE.md": "refs/heads/x",
    "progress/repo.md": "refs/heads/x",
}


@pytest.mark.parametrize(("name", "target"), IN_GIT.items())
def test_no_link_of_a_clone_leads_a_write_into_gits_folder(tmp_path: Path, name: str, target: str) -> None:
    folder = make_repository(tmp_path / "repo", {"train.py": "print(1)\n"})
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).symlink_to(os.path.relpath(folder / ".git" / target, (folder / name).parent))
    commit_all(folder)
    before = of_git(folder)
    words = ("--command", "python train.py", "--agent", "codex", "--agent", "claude")
    done = gpudebug(folder, "init", *words).expect(1)
    (line,) = done.err.splitlines()
    assert name in line and "leads into git's folder" in line and "; next: " in line
    assert of_git(folder) == before


@pytest.mark.parametrize(
    "words",
    [
        ("report", "-o", "out/F.html"),
        ("export", "-o", "out/F"),
        ("sample", "--device=cpu:1", "-o", "out/F.csv", "--", "true"),
    ],
    ids=lambda words: words[0],
)
def test_no_output_goes_into_the_git_folder_of_a_submodule(
    campaign: Campaign, words: tuple[str, ...]
) -> None:
    git(campaign.folder, "init", "--quiet", f"--separate-git-dir={campaign.folder}/vendored", "sub")
    before = contents(campaign.folder / "vendored")
    (campaign.folder / "out").symlink_to("vendored/refs/heads")
    done = campaign.run(*words)
    assert done.status in (1, 125) and "; next: " in done.err
    assert contents(campaign.folder / "vendored") == before


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("patches", ".git/refs/heads"),
        ("patches", "vendored/refs/heads"),
        ("patches", "bare"),
        ("patches/new.patch", "sub/.git"),
        ("patches/new.patch", "sub/.GIT/x"),
    ],
)
def test_no_patch_is_placed_in_a_git_folder(tmp_path: Path, link: str, target: str) -> None:
    top = make_repository(tmp_path / "repo", {"train.py": "print(1)\n"})
    git(top, "init", "--quiet", f"--separate-git-dir={top}/vendored", "sub")
    git(top, "init", "--quiet", "--bare", "bare")
    (top / link).parent.mkdir(exist_ok=True)
    (top / link).symlink_to(top / target)
    before = contents(top)
    with pytest.raises(StoreError, match="leads into git's folder"):
        store.place_new(top, "patches/new.patch", b"x")
    assert contents(top) == before


def test_a_work_tree_within_a_git_folder_is_no_part_of_it(tmp_path: Path) -> None:
    """As `git worktree add` makes one beside the branches of a bare clone."""
    origin = make_repository(tmp_path / "origin", {"train.py": "print(1)\n"})
    git(tmp_path, "clone", "--quiet", "--bare", str(origin), "bare")
    git(tmp_path / "bare", "worktree", "add", "--quiet", "here", "main")
    assert store.place_new(tmp_path / "bare" / "here", "patches/new.patch", b"x")


def test_a_training_that_replaces_its_run_folder_by_a_link_gets_nothing_written_there(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    run = store.Workspace(tmp_path).new_run("h1")
    for replace in (
        lambda: run.path.symlink_to(tmp_path / "elsewhere"),
        run.path.mkdir,
    ):
        if os.path.lexists(run.path):
            run.path.unlink() if run.path.is_symlink() else run.path.rename(tmp_path / "moved")
        replace()
        for write in (lambda: run.keep("run.json", b"{}"), run.seal, lambda: run.drop("x")):
            with pytest.raises(StoreError, match=r"is a link|is not the folder"):
                write()
    assert os.listdir(tmp_path / "elsewhere") == [] and os.listdir(run.path) == []


def test_a_run_folder_and_its_files_are_closed_to_others(campaign: Campaign) -> None:
    run = campaign.folder / "runs" / "0001-baseline-workload"
    assert stat.S_IMODE(run.stat().st_mode) == 0o700
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in run.iterdir() if p.is_file()}
    ours = ("run.json", "evidence.json", "manifest.json", "samples.csv", "sampler.json", "train.log")
    assert {name: modes[name] for name in ours} == dict.fromkeys(ours, 0o600)


# Names that a user gives


def test_a_sample_never_replaces_what_gpudebug_did_not_write(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("mine\n")
    sample = ("sample", "--device=cpu:1")
    done = gpudebug(tmp_path, *sample, "-o", "train.py", "--", "true").expect(125)
    assert "not a file that gpudebug wrote" in done.err and "--force" in done.err
    assert (tmp_path / "train.py").read_text() == "mine\n"
    (tmp_path / "sample-1.csv").symlink_to(tmp_path / "nowhere.csv")
    (tmp_path / "sample-2.log").symlink_to(tmp_path / "nowhere.log")
    gpudebug(tmp_path, *sample, "--", "true").expect(0)
    assert (tmp_path / "sample-3.csv").is_file()
    assert not os.path.lexists(tmp_path / "nowhere.csv") and not os.path.lexists(tmp_path / "nowhere.log")
    # One of its own is replaced.
    gpudebug(tmp_path, *sample, "-o", "sample-3.csv", "--", "true").expect(0)
    gpudebug(tmp_path, *sample, "-o", "train.py", "--force", "--", "true").expect(0)


def test_an_output_never_replaces_evidence_or_settings_even_with_force(campaign: Campaign) -> None:
    log = "runs/0001-baseline-workload/train.log"
    before = {name: (campaign.folder / name).read_bytes() for name in ("gpudebug.yaml", "progress/test.md")}
    for target, says in (
        ("runs/0001-baseline-workload/evidence.json", "run folder 0001-baseline-workload"),
        ("gpudebug.yaml", "settings of a campaign"),
        ("progress/test.md", "is a progress file"),
        (".git/config", ".git"),
    ):
        refused(campaign, "analyze", log, "--output", target, "--force", says=says)
    assert before == {name: (campaign.folder / name).read_bytes() for name in before}
    assert campaign.json("verify")["ok"] is True


# The progress file


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("g/config", "git's folder"),
        ("train.py", "not a progress file"),
        ("gpudebug.yaml", "gpudebug.yaml itself"),
        ("notes.md", "'## Hypotheses'"),
        ("new.txt", "not Markdown"),
    ],
)
def test_progress_never_leads_onto_another_kind_of_file(tmp_path: Path, name: str, says: str) -> None:
    for folder in ("objects", "refs"):
        (tmp_path / ".git" / folder).mkdir(parents=True)
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / ".git" / "config").write_text("[core]\n")
    (tmp_path / "g").symlink_to(".git")
    (tmp_path / "train.py").write_text("print(1)\n")
    (tmp_path / "notes.md").write_text("# Groceries\n\nMilk.\n")
    (tmp_path / "gpudebug.yaml").write_text(f"progress: {name}\nworkload: {{command: python train.py}}\n")
    before = contents(tmp_path)
    done = gpudebug(tmp_path, "propose", "--title=x", "--set=--lr=1").expect(1)
    assert says in done.err and "; next: " in done.err and len(done.err.splitlines()) == 1
    assert contents(tmp_path) == before


def test_a_file_of_ones_own_becomes_the_progress_file_by_one_heading(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Groceries\n\n## Hypotheses\n")
    (tmp_path / "gpudebug.yaml").write_text("progress: notes.md\nworkload: {command: python train.py}\n")
    workspace = find(tmp_path)
    path = progress_path(workspace, read_config(workspace))
    assert read_progress(path).data == b"# Groceries\n\n## Hypotheses\n"


# After a kill


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_what_a_killed_init_left_goes_with_the_next(tmp_path: Path, call: str) -> None:
    def killed() -> None:
        from gpudebug.engine.tools.init import init

        real = getattr(os, call)

        def die(fd: int, *more: object) -> object:
            if ".gpudebug-" in os.readlink(f"/proc/self/fd/{fd}") and not os.listdir(tmp_path / "runs"):
                os.kill(os.getpid(), signal.SIGKILL)
            return real(fd, *more)

        setattr(os, call, die)
        init(tmp_path, command="python train.py")

    git(tmp_path, "init", "--quiet")
    (tmp_path / "train.py").write_text("print(1)\n")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "-m", "Start")
    (tmp_path / "progress").mkdir()
    (tmp_path / "progress" / f"{tmp_path.name[:40].lower()}.md").touch()
    os.waitpid(fork(killed), 0)
    assert not (tmp_path / "gpudebug.yaml").exists()
    gpudebug(tmp_path, "init", "--command", "python train.py").expect(0)
    assert [p for p in tmp_path.rglob(".gpudebug-*") if ".git" not in p.parts] == []


def unseal(campaign: Campaign, name: str = "0001-baseline-workload") -> Path:
    run = campaign.folder / "runs" / name
    (run / "manifest.json").unlink()
    return run


def huge(run: Path) -> None:
    os.truncate(run / "samples.csv", 1 << 42)


def broken(run: Path) -> None:
    (run / "evidence.json").unlink()
    (run / "evidence.json").mkdir()
    (run / "verdict.json").mkdir()
    (run / "verdict.json" / "x").write_text("[" * 100_000)
    (run / "sampler.json").write_text("{")
    os.mkfifo(run / "pipe")


def closed(run: Path) -> None:
    (run / "deep").mkdir()
    (run / "deep" / "x").write_text("x")
    (run / "deep").chmod(0)
    run.chmod(0o500)


@pytest.mark.parametrize("spoil", [huge, broken, closed])
def test_one_bad_run_never_blocks_a_campaign(campaign: Campaign, spoil: object) -> None:
    run = unseal(campaign)
    spoil(run)  # type: ignore[operator]
    answer = campaign.json("next")
    assert (answer["action"], answer["run"]) == ("recovered", run.name)
    assert json.loads((run / "run.json").read_text())["outcome"] == "INTERRUPTED"
    assert campaign.json("status")["next"]["action"] != "recover"
    (run / "deep").chmod(0o700) if (run / "deep").exists() else None


@pytest.mark.parametrize(
    "text",
    [
        '{"hypothesis": 1, "status": "VALIDATED"}',
        '{"hypothesis": 1, "status": "VALIDATED", "gates": 3, "delta": "much", "runs": [1]}',
        "[" * 100_000,
        '{"before": NaN}',
        "",
    ],
)
def test_a_verdict_that_somebody_edited_stops_no_command(campaign: Campaign, text: str) -> None:
    run = next(p.parent for p in sorted((campaign.folder / "runs").glob("*/verdict.json")))
    (run / "verdict.json").write_text(text)
    # Sealed again, so that it passes for the one that was judged.
    store.RunFolder(run, str).seal()
    assert campaign.json("status")["hypotheses"][0]["verified"] is False
    for words in (["show", "1"], ["report"]):
        campaign.run(*words).expect(0)
    assert campaign.run("next").status != 3


# Locks of devices


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="makes a folder of another user, which only root may")
def test_whoever_owns_the_folder_of_the_locks_takes_no_lock_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared, lines = tmp_path / "locks", list[str]()
    shared.mkdir()
    shared.chmod(0o1777)
    os.chown(shared, NOBODY, NOBODY)
    monkeypatch.delenv(hostlocks.VARIABLE)
    monkeypatch.setattr(hostlocks, "FOLDER", shared)
    with store.device_locks(["GPU-1"], {}, None, lines.append):
        (shared / "GPU-1.lock").unlink()
        with pytest.raises(BusyError, match="in use"):
            store.device_locks(["GPU-1"], {}).__enter__()
    (line,) = lines
    assert "belongs to user nobody" in line and "chown root" in line


# What is left


def test_clean_lists_all_and_removes_only_what_a_person_chooses(campaign: Campaign) -> None:
    run = campaign.folder / "runs" / "0009-notes"
    run.mkdir()
    (run / "mine.txt").write_text("mine")
    campaign.run("sample", "--device=cpu:1", "--", "true").expect(0)
    sample = next(p.name for p in (campaign.folder / "runs").iterdir() if p.name.endswith("-sample"))
    listed = campaign.json("clean")
    kinds = {Path(one["path"]).name: one["kind"] for one in listed["left"]}
    assert kinds[sample] == "unused run" and kinds["0001-baseline-workload"] == "evidence"
    assert "0009-notes" not in kinds and listed["removed"] == []
    assert campaign.run("clean", "--unused-runs").expect(2).err.count("\n") == 1
    campaign.run("clean", "--unused-runs", "--yes", env={"GPUDEBUG_SESSION": "a"}).expect(2)
    done = campaign.json("clean", "--unused-runs", "--yes")
    assert [Path(path).name for path in done["removed"]] == [sample]
    assert (run / "mine.txt").read_text() == "mine" and campaign.json("verify")["ok"] is True


def test_clean_takes_worktrees_and_references_and_keeps_what_was_written(campaign: Campaign) -> None:
    campaign.propose("--code", title="Another loader")
    asked = campaign.json("next", status=5)
    worktree = Path(asked["worktree"])
    (worktree / "train.py").write_text((worktree / "train.py").read_text() + "# written\n")
    (campaign.folder / "runs" / "worktrees" / "test" / "mine").mkdir()
    left = {(one["kind"], one["path"]) for one in campaign.json("clean")["left"]}
    references = git(campaign.folder, "for-each-ref", "--format=%(refname)", "refs/gpudebug").split()
    assert references
    expected = {("worktree", str(worktree)), *(("reference", name) for name in references)}
    assert {one for one in left if one[0] in ("worktree", "reference")} == expected
    done = campaign.json("clean", "--worktrees", "--yes")
    assert {*done["removed"]} == {path for _, path in expected} and done["kept"] == []
    assert not worktree.exists()
    assert (campaign.folder / "runs" / "worktrees" / "test" / "mine").is_dir()
    assert git(campaign.folder, "for-each-ref", "refs/gpudebug") == ""
    assert any("# written" in p.read_text() for p in campaign.folder.glob("hypotheses/patches/*"))
