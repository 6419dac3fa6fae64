"""Run folders: numbered, redacted, sealed with the digest of every file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from gpudebug.core.errors import StoreError
from gpudebug.core.records import RunRecord
from gpudebug.core.redaction.redact import Redactor
from gpudebug.edges import removal, store, temporary


def a_record(**changes: object) -> RunRecord:
    facts: dict[str, object] = {
        "name": "0001-x",
        "campaign": "c",
        "role": "h1",
        "command": "python train.py",
        "argv": ("python", "train.py"),
        "cwd": "/",
        "start": "2026-01-01T00:00:00",
        **changes,
    }
    return RunRecord.model_validate(facts)


class TestRunFolders:
    def test_numbers_go_up_and_are_never_used_twice(self, tmp_path: Path) -> None:
        workspace = store.Workspace(tmp_path)
        assert workspace.run_names() == []
        assert [workspace.new_run(n).name for n in ("a", "b", "a")] == ["0001-a", "0002-b", "0003-a"]
        (tmp_path / "runs" / "0041-by-hand").mkdir()
        (tmp_path / "runs" / "notes").mkdir()
        (tmp_path / "runs" / "0099-file").touch()
        assert workspace.new_run("c").name == "0042-c"
        (tmp_path / "runs" / "9999-last").mkdir()
        assert workspace.new_run("d").name == "10000-d"
        assert workspace.run_names()[-2:] == ["9999-last", "10000-d"]

    def test_a_name_that_is_taken_by_a_file_is_passed_over(self, tmp_path: Path) -> None:
        (tmp_path / "runs").mkdir()
        (tmp_path / "runs" / "0001-a").touch()
        assert store.Workspace(tmp_path).new_run("a").name == "0002-a"

    def test_what_a_kill_left_where_nobody_began_a_run_goes(self, tmp_path: Path) -> None:
        workspace = store.Workspace(tmp_path)
        for name in ("b", "c"):
            run = workspace.new_run(name).path
            (run / "new").write_bytes(b"{")
            (run / "new").rename(run / temporary.name_of(removal.identity_of((run / "new").stat())))
            (run / "mine.tmp").touch()
        workspace.new_run("d")
        left = {str(path.relative_to(tmp_path / "runs")) for path in tmp_path.glob("runs/*/*.tmp")}
        assert left == {"0001-b/mine.tmp", "0002-c/mine.tmp"}

    @pytest.mark.parametrize("make", [Path.touch, os.mkfifo], ids=["a file", "a FIFO"])
    def test_runs_that_is_no_folder_is_refused(self, tmp_path: Path, make: object) -> None:
        make(tmp_path / "runs")  # type: ignore[operator]
        with pytest.raises(StoreError) as caught:
            store.Workspace(tmp_path).new_run("a")
        assert caught.value.file == str(tmp_path / "runs")

    def test_a_record_of_another_format_is_told_from_a_broken_one(self, tmp_path: Path) -> None:
        run = store.Workspace(tmp_path).new_run("h1")
        (run.path / "run.json").write_text('{"format": 2}')
        (run.path / "evidence.json").write_text('{"format": 2')
        with pytest.raises(store.OtherFormat, match="has format 2, this gpudebug reads 1") as caught:
            run.read("run.json")
        assert (caught.value.found, caught.value.file) == (2, str(run.path / "run.json"))
        with pytest.raises(StoreError, match="not readable as JSON") as broken:
            run.read("evidence.json")
        assert not isinstance(broken.value, store.OtherFormat)

    def test_a_name_that_is_no_text_is_read_as_it_was_written(self, tmp_path: Path) -> None:
        workspace = store.Workspace(tmp_path)
        run = workspace.new_run("h1")
        name = os.fsdecode(b"caf\xe9.bin")
        (run.path / name).write_bytes(b"1")
        workspace.seal(run)
        assert name in run.read("manifest.json")["files"]

    def test_a_sealed_run_has_the_digest_of_every_file(self, tmp_path: Path) -> None:
        workspace = store.Workspace(tmp_path)
        run = workspace.new_run("h1")
        run.write("run.json", a_record())
        run.log.write_bytes(b"\xff\x00 output\n")
        store.copy_into(run.samples, b"elapsed,gpu_util\n")
        assert not run.sealed
        workspace.seal(run)
        assert run.sealed
        manifest = run.read("manifest.json")
        assert manifest["run"] == run.name
        assert set(manifest["files"]) == {"run.json", "train.log", "samples.csv"}
        for name, said in manifest["files"].items():
            assert said == store.digest((run.path / name).read_bytes())
        run.log.write_bytes(b"edited\n")
        assert run.digests()["train.log"] != manifest["files"]["train.log"]

    def test_every_text_of_a_record_is_redacted(self, tmp_path: Path) -> None:
        token = "hf_" + "Ab3" * 12
        scrub = Redactor({"DB_PASSWORD": "correct-horse"}, ()).redact
        run = store.Workspace(tmp_path, scrub).new_run("h1")
        record = a_record(
            command=f"train --token {token}",
            argv=("train", token),
            identity={"command": f"x {token}"},
            reason="password was correct-horse",
            packages={"a": token},
        )
        run.write("run.json", record)
        text = (run.path / "run.json").read_text()
        assert token not in text
        assert "correct-horse" not in text
        assert text.count("[redacted]") == 5

    @pytest.mark.parametrize("data", [b"{", b"\xff", b""])
    def test_a_broken_record_is_one_clear_error(self, tmp_path: Path, data: bytes) -> None:
        run = store.Workspace(tmp_path).new_run("h1")
        (run.path / "run.json").write_bytes(data)
        with pytest.raises(StoreError, match="not readable as JSON") as caught:
            run.read("run.json")
        assert caught.value.file == str(run.path / "run.json")

    def test_logs_and_samples_are_private(self, tmp_path: Path) -> None:
        store.start_file(tmp_path / "F.log")
        store.copy_into(tmp_path / "F.csv", b"x")
        for name in ("F.log", "F.csv"):
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600

    @pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
    def test_output_into_what_is_no_file_is_refused(self, tmp_path: Path, make: object) -> None:
        make(tmp_path / "F.csv")  # type: ignore[operator]
        with pytest.raises(StoreError, match="not a regular file"):
            store.start_file(tmp_path / "F.csv")
