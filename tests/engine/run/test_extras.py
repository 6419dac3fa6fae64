"""Configurations that a training saves are kept with its run."""

from __future__ import annotations

import os
from pathlib import Path

from gpudebug.core.redaction.redact import Redactor
from gpudebug.engine.run.extras import FOLDER, collect, read_collected


def run_folder(folder: Path) -> Path:
    run = folder / "0001-h1"
    run.mkdir()
    (run / "run.json").write_text("{}")
    return run


def save(path: Path, text: str, *, age: float = 0.0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if age:
        os.utime(path, (path.stat().st_mtime - age,) * 2)


def test_what_lies_in_the_run_folder_and_the_output_folder_is_kept(tmp_path: Path) -> None:
    run = run_folder(tmp_path)
    save(run / "job" / "out" / "train_config.json", '{"lr": 0.1}')
    save(tmp_path / "outputs" / "tmp" / "0001-h1" / "deep" / "hparams.yaml", "seed: 3\n")
    save(tmp_path / "outputs" / "tmp" / "0001-h1" / "model.json", '{"x": 1}')
    collect(run, ["python", "train.py", "--output_dir=outputs/tmp/0001-h1"], tmp_path, Redactor())
    assert sorted(p.name for p in (run / FOLDER).iterdir()) == ["1-train_config.json", "2-hparams.yaml"]
    assert read_collected(run) == [{"lr": "0.1"}, {"seed": "3"}]


def test_what_an_earlier_run_saved_is_not_this_ones(tmp_path: Path) -> None:
    run = run_folder(tmp_path)
    save(tmp_path / "out" / "config.json", '{"lr": 0.1}', age=60)
    collect(run, ["python", "train.py", "--output_dir", "out"], tmp_path, Redactor())
    assert read_collected(run) == []
    assert not (run / FOLDER).exists()


def test_secrets_are_redacted_and_links_and_large_files_left_out(tmp_path: Path) -> None:
    run = run_folder(tmp_path)
    save(run / "job" / "a" / "config.json", '{"lr": 1, "note": "hf_abcdefghijklmnopqrstuvwxyz"}')
    save(run / "job" / "b" / "config.json", '{"x": "' + "x" * 300_000 + '"}')
    (run / "job" / "c").symlink_to(tmp_path)
    (run / "job" / "args.json").symlink_to(run / "job" / "a" / "config.json")
    collect(run, ["python", "train.py"], tmp_path, Redactor())
    (kept,) = (run / FOLDER).iterdir()
    assert "hf_" not in kept.read_text()
    assert read_collected(run)[0]["lr"] == "1"


def test_only_a_few_are_kept(tmp_path: Path) -> None:
    run = run_folder(tmp_path)
    for number in range(9):
        save(run / "job" / f"fold{number}" / "config.json", f'{{"fold": {number}}}')
    collect(run, ["python", "train.py"], tmp_path, Redactor())
    assert [found["fold"] for found in read_collected(run)] == ["0", "1", "2", "3"]
