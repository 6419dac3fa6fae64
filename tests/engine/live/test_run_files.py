"""One run as it is followed: the end of its log without secrets, and its files coming and going."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from tests.support.growing import GrowingRun

from gpudebug.core.redaction.redact import Redactor
from gpudebug.core.samples.row import HEADER, DeviceReading, csv_row
from gpudebug.core.trainlog.reader import LogReader
from gpudebug.edges import store
from gpudebug.engine.live import run_files
from gpudebug.engine.live.run_files import FollowedRun, LogFacts

TOKEN = "hf_" + "a1B2c3D4e5" * 3
KEY = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + "".join(f"{n:02}" + "kM" * 31 + "\n" for n in range(20))
    + "-----END RSA PRIVATE KEY-----\n"
)


def followed(run: GrowingRun, **env: str) -> FollowedRun:
    return FollowedRun(store.RunFolder(run.path, Redactor(env).redact))


def test_the_log_is_shown_as_a_terminal_would_and_without_secrets(tmp_path: Path) -> None:
    run = GrowingRun(tmp_path)
    seen = followed(run, API_KEY="open sesame")
    run.print(f"token {TOKEN}\n\x1b[31mkey open sesame\x1b[0m\n{KEY}\r 10%\r 20%")
    seen.look(None)
    assert seen.log_rows == ("token [redacted]", "key [redacted]", "[redacted]", " 20%")
    run.print("\r 30%")
    seen.look(None)
    assert seen.log_rows[-1] == " 30%"


def test_the_devices_of_other_nodes_are_followed_in_their_own_files(tmp_path: Path) -> None:
    run = GrowingRun(tmp_path)
    run.tell(devices=[{"index": 0, "uuid": f"GPU-{node}", "node": node} for node in ("n0", "n1", "../n2")])
    for name, uuid, util in (("samples.csv", "GPU-n0", 80.0), ("samples.n1.csv", "GPU-n1", 20.0)):
        row = DeviceReading(elapsed=1.0, gpu_util=util, gpu_index=0, gpu_uuid=uuid, new_samples=1)
        (run.path / name).write_text(HEADER + csv_row(row))
    seen = followed(run)
    seen.look(None)
    assert [(now.node, now.uuid, now.gpu_util) for now in seen.readings] == [
        ("n0", "GPU-n0", 80.0),
        ("n1", "GPU-n1", 20.0),
    ]


@pytest.mark.parametrize("secret", [TOKEN, KEY], ids=["token", "key"])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_secret_that_the_end_of_the_log_cuts_in_two_is_not_shown(
    tmp_path: Path, secret: str, at_once: bool
) -> None:
    run = GrowingRun(tmp_path)
    seen = followed(run)
    if not at_once:
        run.print("x\n")
        seen.look(None)
    after = "".join(f"line {n}\n" for n in range(5000))[: run_files._LOG - len(secret) // 2]
    run.print("y\n" * 50_000 + secret + "\n" + after)
    seen.look(None)
    shown = "\n".join(seen.log_rows)
    assert secret[-12:].strip() not in shown and "kMkM" not in shown and "line" in shown
    assert len(seen.log_rows) == run_files.ROWS


def test_a_bar_that_never_ends_its_line(tmp_path: Path) -> None:
    run = GrowingRun(tmp_path)
    seen = followed(run)
    for part in range(3):
        run.print("".join(f"\r{n}%|{'#' * 50}|" for n in range(1000 * part, 1000 * part + 1000)))
        seen.look(None)
        assert seen.log_rows == (f"{1000 * part + 999}%|{'#' * 50}|",)


def test_a_line_longer_than_what_is_read_is_cut_at_a_word(tmp_path: Path) -> None:
    run = GrowingRun(tmp_path)
    seen = followed(run)
    run.print("a" * 100_000 + " end")
    seen.look(None)
    assert seen.log_rows == ("end",)
    run.print("b" * 100_000)
    seen.look(None)
    assert seen.log_rows == ()


def test_long_lines_are_cut_once_they_are_clean(tmp_path: Path) -> None:
    run = GrowingRun(tmp_path)
    seen = followed(run)
    run.print("a" * (run_files.LONGEST_ROW - 10) + " " + TOKEN + " rest\n")
    seen.look(None)
    assert len(seen.log_rows[0]) == run_files.LONGEST_ROW and "hf_" not in seen.log_rows[0]


def test_files_come_and_go(tmp_path: Path) -> None:
    run = GrowingRun(tmp_path)
    seen = followed(run)
    for name in ("samples.csv", "train.log", "run.json"):
        (run.path / name).unlink()
    seen.look(None)
    assert (seen.record, seen.devices, seen.latest.devices, seen.log_rows) == ({}, [], [], ())
    run.tell()
    run.grow("step 1\n", 1.0)
    seen.look(1.0)
    assert len(seen.devices) == 2 and len(seen.latest.devices) == 2 and seen.log_rows == ("step 1",)
    shutil.rmtree(run.path)
    seen.look(1.0)
    assert seen.log_rows == ("step 1",)


def test_since_when_there_was_no_step(tmp_path: Path) -> None:
    run = GrowingRun(tmp_path)
    seen = followed(run)
    seen.look(1.0)
    assert seen.quiet((), 1.0) is None
    assert seen.quiet([(2.0, 5)], 9.0) == 7.0
    run.beat(4.0, 10)
    seen.look(6.0)
    assert seen.quiet((), 9.0) == 3.0 and seen.quiet([(7.0, 5)], 9.0) == 2.0
    late = followed(run)
    late.look(6.0)
    assert late.quiet((), 9.0) is None


def test_what_the_log_says_as_a_whole_is_asked_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = GrowingRun(tmp_path)
    seen, reader = followed(run), LogReader()
    assert seen.facts(None) == LogFacts()
    text = "".join(f"step {n}/500 loss {2 - n / 500:.4f} data_s:0.030 updt_s:0.010\n" for n in range(300))
    run.print(text)
    reader.feed(text.encode())
    seen.look(None)
    told = seen.facts(reader)
    assert (told.step_unit, told.loss_trend) == ("step", "CONVERGING")
    assert told.data_share == pytest.approx(0.75)
    assert 20 <= len(told.losses) <= 100 and told.losses[-1] == pytest.approx(2 - 299 / 500)
    reader.feed(b"step 300/500 loss nan\n")
    run.print("step 300/500 loss nan\n")
    seen.look(None)
    assert seen.facts(reader) is told
    assert seen.facts(reader, at_once=True).loss_trend == "NAN"
    later = time.monotonic() + run_files.FACTS_EVERY_S
    run.print("step 301/500 loss nan\n")
    seen.look(None)
    monkeypatch.setattr("time.monotonic", lambda: later)
    assert seen.facts(reader).loss_trend == "NAN"
