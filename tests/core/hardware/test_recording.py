"""Reading a recording of `doctor --gpu`: the loading process's times become the samples'."""

from __future__ import annotations

import json

import pytest
from tests.support import gpu_recordings as made
from tests.support import nvml

from gpudebug.core.hardware.recording import SETTLED_S, KernelTimer, parse_recording

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
