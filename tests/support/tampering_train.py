"""A training for tests that does something to the files of its own run before it ends: `--attack NAME`."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import time
from pathlib import Path

JOB = Path(os.environ["GPUDEBUG_RUN_DIR"])
RUN = JOB.parent
RECORDS = RUN / "records"
SAMPLES, LOG = RUN / "samples.csv", RUN / "train.log"
# The warden looks four times a second.
SEEN_S = 0.8


def three_times_as_busy() -> None:
    header, *rows = SAMPLES.read_text().splitlines(keepends=True)
    cells = [row.split(",") for row in rows]
    busy = [[c[0], str(min(100.0, 3 * float(c[1] or 0))), *c[2:]] for c in cells]
    SAMPLES.write_text(header + "".join(",".join(row) for row in busy))


def one_digit() -> None:
    data = SAMPLES.read_bytes()
    at = data.index(b"\n") + 1
    with SAMPLES.open("r+b") as file:
        file.seek(at)
        file.write(b"9")


def three_gigabytes() -> None:
    os.truncate(SAMPLES, 3 << 30)


def shorter() -> None:
    os.truncate(SAMPLES, 40)


def more_rows() -> None:
    with SAMPLES.open("a") as file:
        file.write(SAMPLES.read_text().splitlines()[-1] + "\n")


def another_file() -> None:
    SAMPLES.rename(RUN / "before.csv")
    SAMPLES.write_bytes((RUN / "before.csv").read_bytes() + b"9,99\n")


def a_link() -> None:
    SAMPLES.unlink()
    SAMPLES.symlink_to(os.environ["VICTIM"] + "/data.csv")


def a_fifo() -> None:
    SAMPLES.unlink()
    os.mkfifo(SAMPLES)


def a_folder() -> None:
    SAMPLES.unlink()
    SAMPLES.mkdir()


def another_record() -> None:
    (RUN / "run.json").write_text((RUN / "run.json").read_text().replace("COMPLETED", "CRASHED") + " ")


def a_folder_as_record() -> None:
    (RUN / "run.json").unlink()
    (RUN / "run.json" / "below").mkdir(parents=True)
    (RUN / "run.json").chmod(0o500)


def another_change() -> None:
    (RUN / "change.patch").write_text("diff --git a/loader.py b/loader.py\n")


def no_change() -> None:
    (RUN / "change.patch").unlink()


def a_folder_as_change() -> None:
    no_change()
    (RUN / "change.patch").mkdir()


def the_past_of_the_log() -> None:
    time.sleep(SEEN_S)
    with LOG.open("r+b") as file:
        file.write(b"step 99999")


def a_log_begun_anew() -> None:
    time.sleep(SEEN_S)
    os.ftruncate(1, 0)
    print("step 1/1 loss 0.1", flush=True)


def a_log_that_is_a_link() -> None:
    LOG.unlink()
    LOG.symlink_to(os.environ["VICTIM"] + "/data.csv")


def the_past_of_the_probe_record() -> None:
    (RECORDS / "probe.jsonl").write_text('{"kind": "start", "pid": 1}\n')
    time.sleep(SEEN_S)
    (RECORDS / "probe.jsonl").write_text('{"kind": "start", "pid": 2}\n')


def the_rows_of_a_sampler_that_it_killed() -> None:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command, parent = (folder / "cmdline").read_bytes(), (folder / "stat").read_text()
        except OSError:
            continue
        if b"sampler.main" in command and int(parent.rpartition(")")[2].split()[1]) == os.getppid():
            one_digit()
            os.kill(int(folder.name), signal.SIGKILL)
    time.sleep(1.5)


def a_link_to_the_run_folder() -> None:
    RUN.rename(os.environ["VICTIM"] + "/moved")
    RUN.symlink_to(os.environ["VICTIM"])


def a_folder_of_the_users() -> None:
    RUN.rename(RUN.with_name("elsewhere"))
    Path(os.environ["VICTIM"]).rename(RUN)


def no_run_folder() -> None:
    RUN.rename(RUN.with_name("elsewhere"))


def links_beside_its_own_folder() -> None:
    for name in ("configuration", "probe.jsonl", "evidence.json", "sampler.json", "verdict.json"):
        (RUN / name).symlink_to(os.environ["VICTIM"])
    (JOB / "config.json").write_text('{"lr": 1}')


def a_change_that_is_none() -> None:
    another_change()


def a_link_to_its_own_folder() -> None:
    JOB.rename(RUN / "own")
    JOB.symlink_to(os.environ["VICTIM"])


def a_link_to_its_records() -> None:
    RECORDS.rename(RUN / "own")
    RECORDS.symlink_to(os.environ["VICTIM"])


def a_record_of_its_training() -> None:
    """As the probe writes it."""
    folder = Path(os.environ.get("GPUDEBUG_RECORDS_DIR", JOB))
    (folder / "probe.jsonl").write_text('{"kind": "start", "pid": 1}\n')
    time.sleep(SEEN_S)


def an_output_folder_begun_anew() -> None:
    """As trainers do that overwrite their output: what they find there goes."""
    a_record_of_its_training()
    shutil.rmtree(JOB)
    JOB.mkdir()


def an_output_folder_moved() -> None:
    a_record_of_its_training()
    JOB.rename(RUN / "finished")


def nothing() -> None:
    pass


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--attack", default="nothing")
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args()
    began, step = time.monotonic(), 0
    seconds = float(os.environ.get("SECONDS", options.seconds))
    while time.monotonic() - began < seconds:
        until = time.process_time() + 0.02
        while time.process_time() < until:
            pass
        time.sleep(0.08)
        step += 1
        print(f"step {step}/1000 loss {2.0 / step:.5f}", flush=True)
    globals()[options.attack]()


if __name__ == "__main__":
    main()
