"""What a bundle says of a machine: enough to read the recording, nothing that names host, person or card."""

from __future__ import annotations

import json

import pytest
from tests.support import gpu_recordings as made
from tests.support import nvml
from tests.support.gpu_bundles import parsed_machine

from gpudebug.core.hardware.machine import (
    Gpu,
    Machine,
    is_raised,
    pseudonyms,
    records_alone,
    renamed,
    scrubbed,
    scrubbed_value,
    without_paths,
    written_machine,
)
from gpudebug.core.hardware.plan import plain_uuid


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
