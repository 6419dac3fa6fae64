"""Which files are binary, and what they are called."""

from __future__ import annotations

import bz2
import io
import pickle
import random
import struct
import zipfile

import pytest

from gpudebug.core.recordings.formats import binary_format, is_text, next_step


def zipped(name: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as f:
        f.writestr(name, b"\x80\x02}q")
    return out.getvalue()


BINARY = {
    "an SQLite database": b"SQLite format 3\0\x10\0" + bytes(80),
    "a W&B run file": b":W&B\x00\xbe\xe1\x00" + bytes(40),
    "an Nsight Compute report (.ncu-rep)": b"NVR\0" + bytes(40),
    "an ELF program or library": b"\x7fELF\x02\x01\x01" + bytes(9),
    "a Parquet table": b"PAR1\x15\x04",
    "a zstd archive": b"\x28\xb5\x2f\xfd\x04",
    "a PyTorch checkpoint (zip)": zipped("archive/data.pkl"),
    "NumPy arrays (.npz)": zipped("weights.npy"),
    "a zip archive": zipped("notes.txt"),
    "a Python pickle or an old PyTorch checkpoint": pickle.dumps({"loss": [0.1] * 9}),
    "safetensors model weights": struct.pack("<Q", 90) + b'{"__metadata__":{}}',
    "text in UTF-16": "timestamp, index\n".encode("utf-16"),
    "a tar archive": b"run/train.log".ljust(257, b"\0") + b"ustar\x0000",
    "a TensorBoard event file": struct.pack("<QI", 24, 77)
    + b"\t\0\0\x80\x1b\xa1\x99\xdaA\x1a\rbrain.Event:2",
}


@pytest.mark.parametrize("kind", BINARY)
def test_binary_files_have_a_name(kind: str) -> None:
    assert binary_format(BINARY[kind]) == kind


ALIKE = {
    "an ORC table": (b"ORC\x0a\x06\x12\x04\x08\x01\x50\x00", b"ORCHESTRATOR starting\nstep 1 loss 2.0\n"),
    "a bzip2 archive": (bz2.compress(b"step 1 loss 2.0\n" * 9), b"BZhang's run\nstep 1 loss 2.0\n"),
    "GGUF model weights": (b"GGUF\x03\0\0\0" + bytes(16), b"GGUF loader: step 1 loss 2.0\n"),
    "a Parquet table": (b"PAR1\x15\x04\x15\x10", b"PAR1S cluster\nstep 1 loss 2.0\n"),
    "an Arrow table": (b"ARROW1\0\0\xff\xff", b"ARROW1 up\nstep 1 loss 2.0\n"),
    "a Feather table": (b"FEA1\0\0\0\0\x08\0", b"FEA1 model of loss\n"),
    "a GIF picture": (b"GIF89a\x01\0\x01\0\x80", b"GIF8 frames written\n"),
}


@pytest.mark.parametrize("kind", ALIKE)
def test_a_log_that_begins_with_a_formats_letters_is_text(kind: str) -> None:
    binary, log = ALIKE[kind]
    assert (binary_format(binary), binary_format(log)) == (kind, None)


def test_reports_without_magic_bytes_are_named_by_their_ending() -> None:
    data = random.Random(1).randbytes(4096)
    assert binary_format(data, "report1.nsys-rep") == "an Nsight Systems report (.nsys-rep)"
    assert binary_format(data, "REPORT.QDREP") == "an Nsight Systems report (.qdrep)"
    assert binary_format(data, "what") == "a binary file of an unknown format"
    # A log that someone called so is still a log.
    assert binary_format(b"step 1 loss 0.5\n", "model.pt") is None


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"step 1 loss 0.5\n",
        "Époque 3 perte 0,5\n".encode("latin-1") * 20,
        "学習 step 1 損失 0.5\n".encode(),
        "学習 step 1 損失 0.5\n".encode("shift-jis"),
        b"\x1b[32m 10%|#   | 1/10\x1b[0m\r" * 40,
        # Truncated by its owner while the job went on to write at its old place.
        bytes(5000) + b"step 9 loss 0.1\n",
        b"ok\x00\x00 step 3 loss 0.5\n",
        bytes(5000),
        "шаг 3 потери 0.5\n".encode("cp1251") * 9,
    ],
)
def test_logs_are_text(text: bytes) -> None:
    assert is_text(text)
    assert binary_format(text, "train.log") is None


def test_what_to_do_next() -> None:
    assert "nsys export" in next_step("an Nsight Systems report (.nsys-rep)", "a log")
    assert "iconv" in next_step("text in UTF-16", "a log")
    assert next_step("an ELF program or library", "a log") == "give a log"
