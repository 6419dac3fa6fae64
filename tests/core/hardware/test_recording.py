"""Reading a recording of `doctor --gpu`: the loading process's times become the samples'."""

from __future__ import annotations

import json

import pytest
from tests.support import gpu_recordings as made
from tests.support import nvml
from tests.support.gpu_bundles import parsed_machine

from gpudebug.core.hardware.plan import plain_uuid
from gpudebug.core.hardware.recording import (
    SETTLED_S,
    Gpu,
    KernelTimer,
    Machine,
    is_raised,
    parse_recording,
    pseudonyms,
    records_alone,
    renamed,
    scrubbed,
    scrubbed_value,
    without_paths,
    written_machine,
)


def test_a_machine_survives_its_file() -> None:
    machine = made.machine(2, outcome="CRASHED", reason="exit status 1")
    assert parsed_machine(written_machine(machine, {"gpudebug": "1"})) == machine


def test_a_uuid_has_one_pseudonym_however_it_is_written() -> None:
    machine = made.machine(2)
    names = pseudonyms(machine)
    text = " ".join((nvml.uuid(1), plain_uuid(nvml.uuid(1)), nvml.uuid(0)))
    dashed, digits, other = renamed(text, names).split()
    assert plain_uuid(dashed) == digits != plain_uuid(other)
    assert "5ca1ab1" not in renamed(written_machine(machine, {}), names)
    assert parsed_machine(renamed(written_machine(machine, {}), names)).usable


@pytest.mark.parametrize(
    "uuid", [nvml.uuid(0), f"MIG-{nvml.uuid(0)}/7/0", "MIG-5ca1ab1e-0000-4000-8000-000000000000"]
)
def test_a_pseudonym_is_as_long_since_rows_count_the_logs_bytes(uuid: str) -> None:
    machine = Machine((Gpu(0, uuid, "x"),), 12040, ())
    assert len(pseudonyms(machine)[uuid]) == len(uuid)


def test_only_records_stay_of_a_log_and_its_length() -> None:
    log = '{"kind": "begin"}\nFile "/home/anna/x.py", Größe\n{"kind": "end"}\n'
    kept = records_alone(log)
    assert len(kept.encode()) == len(log.encode())
    assert kept.splitlines()[::2] == log.splitlines()[::2] and "anna" not in kept


def test_paths_are_left_out_and_units_are_not() -> None:
    assert without_paths("cannot read /home/anna/runs/x.csv: no") == "cannot read (a path): no"
    assert without_paths("44.1 GB/s there, 1/2") == "44.1 GB/s there, 1/2"


def test_what_names_somebody_is_left_out_and_figures_are_not() -> None:
    names = ("node17.lab", "node17", "lab", "al")
    said = "GPU 0 of al on node17.lab: 95.1 % (see `ls -l /dev/nvidia*`, /home/al/x); label, total"
    kept = "GPU 0 of (a name) on (a name): 95.1 % (see `ls -l /dev/nvidia*`, (a path)); label, total"
    assert scrubbed(said, names) == kept
    assert scrubbed("load: CUDA_ERROR_UNKNOWN: 3 of 4", ()) == "load: CUDA_ERROR_UNKNOWN: 3 of 4"
    assert scrubbed("exit status 1: a.b.FooError: at x\nand y", ()) == "exit status 1: a.b.FooError"


def test_an_exceptions_line_is_told_from_a_programs_own() -> None:
    assert is_raised("torch.cuda.OutOfMemoryError: x") and is_raised("KeyboardInterrupt: ")
    assert not is_raised("node17 died") and not is_raised("on node17: RuntimeError: x")


@pytest.mark.parametrize("host", ["db-4.lab.example", "10.0.0.7", "db-4", "größe.lab.example"])
def test_a_record_that_names_a_host_is_as_long_without(host: str) -> None:
    said = f'{{"kind": "failed", "at": 1.0, "message": "no answer of {host}"}}\n'
    log = said + '{"kind": "end"}\n{"kind": no record\n'
    kept = records_alone(log, ("db-4",))
    assert len(kept.encode()) == len(log.encode())
    first, *rest = kept.splitlines()
    message = json.loads(first)["message"]
    assert message.startswith("no answer of ") and "lab" not in kept and "db-4" not in kept
    assert "10.0" not in kept
    assert rest[0] == '{"kind": "end"}' and set(rest[1]) == {"#"}


def test_texts_within_a_value_name_nobody() -> None:
    value = {"missing": {"power_w": "asked node17"}, "lost": ["node18", 3, None], "interval": 0.1}
    clean = {"missing": {"power_w": "asked (a name)"}, "lost": ["(a name)", 3, None], "interval": 0.1}
    assert scrubbed_value(value, ("node17",)) == clean


GPU = nvml.uuid(0)


def test_the_loads_times_become_the_samples() -> None:
    found = made.recording()
    began = [span.began for span in found.truth.spans]
    assert began == pytest.approx([made.STARTED_S + 4 * i for i in range(5)], abs=made.INTERVAL)
    # A line is never dated before it was written.
    assert all(b >= made.STARTED_S + 4 * i for i, b in enumerate(began))


def test_a_phase_has_the_readings_that_are_about_it_alone() -> None:
    found = made.recording()
    span = found.span("work 50", GPU)
    assert span is not None and span.gpus == (GPU,)
    rows = found.of(GPU, span)
    assert {row.gpu_util for row in rows} == {50.0}
    assert (rows[0].elapsed or 0) >= span.began + SETTLED_S
    assert found.duty(GPU, span) == pytest.approx(50)


def test_phases_of_one_name_belong_to_their_gpus() -> None:
    found = made.recording(2)
    first, second = (found.span("work 15", nvml.uuid(i)) for i in (0, 1))
    assert first is not None and second is not None and first.began < second.began
    assert [s.name for s in found.without_load(GPU)] == [
        "idle",
        *["work 15", "work 50", "work 95", "spin 95"],
    ]


def test_what_was_tried_before_the_loads_is_there() -> None:
    truth = made.recording().truth
    assert truth.timers[GPU] == KernelTimer(0.05, 0.0501, 0.0503)
    assert truth.copies[GPU].same and truth.held[GPU] == 256 << 20 and truth.ended


def test_a_log_that_ends_early_ends_the_truth_not_the_reading() -> None:
    samples, log, notes = made.texts(until=9.0)
    torn = log[:-20] + "\nTraceback: no record\n" + '{"kind": 3}\n[1]\n'
    truth = parse_recording(samples, torn.encode(), notes).truth
    assert not truth.ended
    assert [span.name for span in truth.spans] == ["idle", "work 15"]


def test_a_failure_is_kept_in_the_words_of_the_process() -> None:
    line = {"kind": "failed", "message": "cuInit: nothing"}
    assert made.recording(more=(line,)).truth.failed == "cuInit: nothing"


def test_without_anything_all_is_unknown() -> None:
    found = parse_recording("", b"", "")
    assert (found.rows, found.truth.spans, found.notes.source) == ((), (), "none")
    with pytest.raises(ValueError):
        parse_recording("", b"", "{")


def test_notes_of_a_later_version_are_read_all_the_same() -> None:
    notes = json.dumps({"source": "rates", "ticks": 3, "lost": None, "new": 1})
    assert parse_recording("", b"", notes).notes[:3] == ("rates", 0.2, 3)
